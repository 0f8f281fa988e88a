//! A drawing as an SVG image.

use super::{
    diagram::{Diagram, DiagramEdge, DiagramNode, NodeKind, truncated},
    layout::{CHARACTER, LINE, Layout, Rectangle, is_forward, layout},
};

const STYLE: &str = "text{font:12px ui-monospace,monospace;fill:#1f2328}.name{font-weight:600}.detail,.label{fill:#59636e}\
.node{fill:#fff;stroke:#59636e;stroke-width:1.2}.end{fill:#ddf4ff}.missing{stroke:#cf222e;stroke-dasharray:4 3}\
.prompt{fill:#fff8c5}.edge{fill:none;stroke:#59636e;stroke-width:1.2}.dashed{stroke-dasharray:5 4}\
.back{fill:#fff;fill-opacity:.85}";

const ARROW: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" \
markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#59636e\"/></marker></defs>\n";

impl Diagram {
    /// Returns the drawing as an SVG image without scripts, fonts or links.
    pub fn to_svg(&self) -> String {
        let layout = layout(self);
        let rounds = self.edges.iter().filter(|edge| !is_forward(edge)).count();
        let (width, height) = (layout.width, layout.height + rounds * 3 * LINE);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n{ARROW}\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            escaped(&truncated(&self.name))
        );
        let mut labels = Labels { layout: &layout, used: vec![0; self.nodes.len()], text: String::new() };
        for edge in &self.edges {
            text += &curve(edge, &layout);
            labels.add(self, edge);
        }
        for (node, rectangle) in self.nodes.iter().zip(&layout.nodes) {
            text += &shape(node, *rectangle);
        }
        text + &labels.text + "</svg>\n"
    }
}

/// The labels of the edges. Those that lead to the same node are below each other, to its left.
struct Labels<'l> {
    layout: &'l Layout,
    /// The number of lines so far beside each node.
    used: Vec<usize>,
    text: String,
}

impl Labels<'_> {
    fn add(&mut self, diagram: &Diagram, edge: &DiagramEdge) {
        let lines = edge.lines();
        let Some(target) = self.layout.nodes.get(edge.to) else { return };
        let (x, first) = if is_forward(edge) {
            let all: usize = diagram
                .edges
                .iter()
                .filter(|other| other.to == edge.to && is_forward(other))
                .map(|other| other.lines().len())
                .sum();
            let used = self
                .used
                .get_mut(edge.to)
                .map(|used| std::mem::replace(used, *used + lines.len()))
                .unwrap_or_default();
            let middle = target.y + target.height / 2;
            (target.x.saturating_sub(20), (middle + used * LINE).saturating_sub(all * LINE / 2) + LINE / 2)
        } else {
            (target.x + target.width, self.layout.height + LINE)
        };
        for (index, line) in lines.iter().enumerate() {
            let (y, width) = (first + index * LINE, line.chars().count() * CHARACTER);
            let left = x.saturating_sub(width);
            self.text += &format!(
                "<rect class=\"back\" x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"{LINE}\"/>\
                 <text class=\"label\" x=\"{left}\" y=\"{y}\">{}</text>\n",
                y.saturating_sub(12),
                escaped(line)
            );
        }
    }
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
        let second = first + LINE;
        let detail = escaped(&node.detail);
        text += &format!(
            "<text class=\"detail\" x=\"{middle}\" y=\"{second}\" text-anchor=\"middle\">{detail}</text>\n"
        );
    }
    text
}

/// Returns the line of an edge. One that leads back passes below the drawing.
fn curve(edge: &DiagramEdge, layout: &Layout) -> String {
    let (Some(from), Some(to)) = (layout.nodes.get(edge.from), layout.nodes.get(edge.to)) else {
        return String::new();
    };
    let class = if edge.kind.is_dashed() { "edge dashed" } else { "edge" };
    let path = if is_forward(edge) && to.x > from.x {
        let (x1, y1) = (from.x + from.width, from.y + from.height / 2);
        let (x2, y2) = (to.x, to.y + to.height / 2);
        let bend = (x2 - x1) / 2;
        format!("M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}", x1 + bend, x2 - bend)
    } else {
        let (x1, y1) = (from.x + from.width / 2, from.y + from.height);
        let (x2, y2) = (to.x + to.width / 2, to.y + to.height);
        let low = layout.height + 2 * LINE;
        format!("M{x1} {y1}C{x1} {low} {x2} {low} {x2} {y2}")
    };
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
