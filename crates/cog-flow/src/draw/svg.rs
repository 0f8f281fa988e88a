//! A drawing as an SVG image.

use super::{
    diagram::{Diagram, DiagramEdge, DiagramNode, NodeKind, truncated},
    layout::{LINE, Point, Rectangle, backward, layout},
};

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
        let bottom = backward.last().map_or(layout.height, |last| last.bottom);
        let right = backward.iter().map(|edge| edge.label.x + edge.label.width + LINE).max();
        let (width, height) = (layout.width.max(right.unwrap_or_default()), bottom);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n{ARROW}\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            escaped(&truncated(&self.name))
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
        text += &format!("<text class=\"label\" x=\"{start}\" y=\"{baseline}\">{}</text>\n", escaped(line));
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
        escaped(&truncated(&node.name))
    );
    if !node.detail.is_empty() {
        let (second, detail) = (first + LINE, escaped(&node.detail));
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

/// Returns a text for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
