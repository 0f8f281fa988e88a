//! Draws a composition: as text, Mermaid, Graphviz DOT, SVG, or JSON.

mod diagram;
mod layout;

use cog_json::{ToJson, Writer};

pub use self::diagram::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};
use self::{
    diagram::{Builder, truncated},
    layout::{LINE, Point, Rectangle, backward, layout},
};
use crate::Flow;

impl Diagram {
    /// Returns the drawing of a composition. The modules that its parts call are drawn as calls.
    pub fn new(flow: &Flow) -> Self {
        let mut builder = Builder::new(flow, diagram::uses_prompt(flow.root()));
        diagram::add(&mut builder);
        builder.diagram
    }
}

// A drawing as data.

/// Written by hand: edges name their nodes by index, absent members are left out.
impl ToJson for Diagram {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("pattern", self.pattern);
            w.key("nodes").array(|w| self.nodes.iter().for_each(|node| write_node(node, w)));
            w.key("edges").array(|w| self.edges.iter().for_each(|edge| write_edge(edge, w)));
            if self.omitted > 0 {
                w.field("omitted", &self.omitted);
            }
        });
    }
}

fn write_node(node: &DiagramNode, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("name", &node.name);
        w.field("kind", node.kind.as_str());
        if !node.detail.is_empty() {
            w.field("detail", &node.detail);
        }
    });
}

fn write_edge(edge: &DiagramEdge, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("from", &edge.from);
        w.field("to", &edge.to);
        w.field("kind", edge.kind.as_str());
        if !edge.fields.is_empty() {
            w.key("fields").array(|w| edge.fields.iter().for_each(|field| write_field(field, w)));
        }
        w.optional("note", &edge.note);
    });
}

fn write_field(field: &DiagramField, w: &mut Writer<'_>) {
    w.object(|w| {
        if !field.name.is_empty() {
            w.field("name", &field.name);
        }
        w.field("type", &field.types);
        w.optional("path", &field.path);
    });
}

// A drawing as text: one edge per line.

impl Diagram {
    /// Returns the drawing as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} ({})\n", truncated(&self.name), self.pattern);
        let arrows: Vec<String> = self.edges.iter().map(|edge| self.arrow(edge)).collect();
        let width = arrows.iter().map(|arrow| arrow.chars().count()).max().unwrap_or_default();
        for (edge, arrow) in self.edges.iter().zip(&arrows) {
            let fields: Vec<String> = edge.fields.iter().map(|field| field.label()).collect();
            let label = [fields.join(", "), edge.note.as_deref().map(truncated).unwrap_or_default()];
            let label: Vec<String> = label.into_iter().filter(|part| !part.is_empty()).collect();
            text += format!("  {arrow:width$}  {}", label.join("; ")).trim_end();
            text.push('\n');
        }
        if self.omitted > 0 {
            text += &format!("  {} more edges are not shown\n", self.omitted);
        }
        let details = self.nodes.iter().filter(|node| !node.detail.is_empty());
        let width = details.clone().map(|node| node.name.len()).max().unwrap_or_default();
        let lines: Vec<String> = details.map(|node| detail(node, width)).collect();
        if lines.is_empty() { text } else { format!("{text}\n{}", lines.concat()) }
    }

    fn arrow(&self, edge: &DiagramEdge) -> String {
        let sign = if edge.kind.is_dashed() { "⇢" } else { "→" };
        format!("{} {sign} {}", self.shown_name(edge.from), self.shown_name(edge.to))
    }

    fn shown_name(&self, node: usize) -> String {
        self.nodes.get(node).map_or_else(String::new, |node| truncated(&node.name))
    }
}

fn detail(node: &DiagramNode, width: usize) -> String {
    format!("  {:width$}  {}\n", node.name, node.detail)
}

// A drawing for Mermaid.

impl Diagram {
    /// Returns the drawing as a Mermaid flowchart.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for (index, node) in self.nodes.iter().enumerate() {
            let detail =
                if node.detail.is_empty() { String::new() } else { format!("<br>{}", escaped(&node.detail)) };
            let label = format!("\"{}{detail}\"", escaped(&truncated(&node.name)));
            let shape = match node.kind {
                NodeKind::Input | NodeKind::Output => format!("([{label}])"),
                NodeKind::Module | NodeKind::Missing => format!("[{label}]"),
                NodeKind::Prompt => format!("[[{label}]]"),
            };
            text += &format!("    n{index}{shape}\n");
        }
        for edge in &self.edges {
            let sign = if edge.kind.is_dashed() { "-.->" } else { "-->" };
            let lines: Vec<String> = edge.lines().iter().map(|line| escaped(line)).collect();
            let label =
                if lines.is_empty() { String::new() } else { format!("|\"{}\"|", lines.join("<br>")) };
            text += &format!("    n{} {sign}{label} n{}\n", edge.from, edge.to);
        }
        text
    }
}

/// Returns text for a label in quotes. Everything that Mermaid or HTML reads is written by its number.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if c.is_alphanumeric() || " -_.,:$[]()=+…".contains(c) {
            escaped.push(c);
        } else {
            escaped += &format!("#{};", u32::from(c));
        }
    }
    escaped
}

// A drawing for Graphviz.

impl Diagram {
    /// Returns the drawing in the language DOT.
    pub fn to_dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n",
            quoted(&self.name)
        );
        for (index, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                NodeKind::Input | NodeKind::Output => "shape=ellipse",
                NodeKind::Module => "shape=box",
                NodeKind::Missing => "shape=box, style=dashed",
                NodeKind::Prompt => "shape=box, peripheries=2",
            };
            let lines = [node.name.as_str(), node.detail.as_str()];
            let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            text += &format!("    n{index} [label={}, {shape}];\n", quoted(&lines.join("\n")));
        }
        for edge in &self.edges {
            let style = if edge.kind.is_dashed() { ", style=dashed" } else { "" };
            let label = quoted(&edge.lines().join("\n"));
            text += &format!("    n{} -> n{} [label={label}{style}];\n", edge.from, edge.to);
        }
        text + "}\n"
    }
}

/// Returns a quoted string of DOT, in which `\n` centres a line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

// A drawing as an SVG image.

/// The space before the text of a label.
const PADDING: usize = 4;

const STYLE: &str = "text{font:12px ui-monospace,monospace;fill:#1f2328}.name{font-weight:600}.detail,.label{fill:#59636e}\
.node{fill:#fff;stroke:#59636e;stroke-width:1.2}.end{fill:#ddf4ff}.missing{stroke:#cf222e;stroke-dasharray:4 3}\
.prompt{fill:#fff8c5}.edge{fill:none;stroke:#818b98;stroke-width:1.2}.dashed{stroke-dasharray:5 4}.back{fill:#fff}";

const ARROW: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#818b98\"/></marker></defs>\n";

impl Diagram {
    /// Returns the drawing as an SVG image without scripts, fonts or links.
    pub fn to_svg(&self) -> String {
        let layout = layout(self);
        let backward = backward(self, &layout);
        let right = backward.iter().map(|edge| edge.label.x + edge.label.width + LINE).max();
        let width = layout.width.max(right.unwrap_or_default());
        let height = backward.last().map_or(layout.height, |last| last.bottom);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n{ARROW}\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            xml(&truncated(&self.name))
        );
        for (edge, route) in self.edges.iter().zip(&layout.routes) {
            text += &curve(edge, route);
        }
        for back in &backward {
            text += &path_of(back.edge, &back.path);
        }
        let labels = self.edges.iter().zip(layout.labels.iter().copied());
        for (edge, at) in labels.chain(backward.iter().map(|back| (back.edge, back.label))) {
            text += &label(edge, at);
        }
        for (node, at) in self.nodes.iter().zip(&layout.nodes) {
            text += &shape(node, *at);
        }
        text + "</svg>\n"
    }
}

/// Returns the label of an edge; nothing for an empty one.
fn label(edge: &DiagramEdge, at: Rectangle) -> String {
    let Rectangle { x, y, width, height } = at;
    if height == 0 {
        return String::new();
    }
    let start = x + PADDING;
    let mut text =
        format!("<rect class=\"back\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n");
    for (index, line) in edge.lines().iter().enumerate() {
        let baseline = y + index * LINE + 12;
        text += &format!("<text class=\"label\" x=\"{start}\" y=\"{baseline}\">{}</text>\n", xml(line));
    }
    text
}

fn shape(node: &DiagramNode, at: Rectangle) -> String {
    let Rectangle { x, y, width, height } = at;
    let (class, radius) = match node.kind {
        NodeKind::Input | NodeKind::Output => ("node end", height / 2),
        NodeKind::Module => ("node", 6),
        NodeKind::Missing => ("node missing", 6),
        NodeKind::Prompt => ("node prompt", 6),
    };
    let middle = x + width / 2;
    let first = y + if node.detail.is_empty() { height / 2 + 4 } else { height / 2 - 4 };
    let mut text = format!(
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>\
         <text class=\"name\" x=\"{middle}\" y=\"{first}\" text-anchor=\"middle\">{}</text>\n",
        xml(&truncated(&node.name))
    );
    if !node.detail.is_empty() {
        let second = first + LINE;
        let detail = xml(&node.detail);
        text += &format!(
            "<text class=\"detail\" x=\"{middle}\" y=\"{second}\" text-anchor=\"middle\">{detail}</text>\n"
        );
    }
    text
}

/// Returns the line of an edge through its points; nothing for an edge that leads back.
fn curve(edge: &DiagramEdge, route: &[Point]) -> String {
    let Some(((x, y), rest)) = route.split_first() else { return String::new() };
    let mut path = format!("M{x} {y}");
    let mut last = (*x, *y);
    for (x, y) in rest {
        let bend = usize::midpoint(last.0, *x);
        path += &format!("C{bend} {} {bend} {y} {x} {y}", last.1);
        last = (*x, *y);
    }
    path_of(edge, &path)
}

fn path_of(edge: &DiagramEdge, path: &str) -> String {
    let class = if edge.kind.is_dashed() { "edge dashed" } else { "edge" };
    format!("<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#arrow)\"/>\n")
}

/// Returns text for XML.
fn xml(text: &str) -> String {
    let mut xml = String::new();
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\'' => xml.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => xml.push(' '),
            c => xml.push(c),
        }
    }
    xml
}

#[cfg(test)]
mod tests;
