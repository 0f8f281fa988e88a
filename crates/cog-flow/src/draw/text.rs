//! A drawing as text: one edge per line.

use super::diagram::{Diagram, DiagramEdge, DiagramNode, truncated};

impl Diagram {
    /// Returns the drawing as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} ({})\n", truncated(&self.name), self.pattern);
        let name =
            |index: usize| self.nodes.get(index).map_or_else(String::new, |node| truncated(&node.name));
        let arrows: Vec<String> =
            self.edges.iter().map(|edge| arrow(edge, &name(edge.from), &name(edge.to))).collect();
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
}

fn arrow(edge: &DiagramEdge, from: &str, to: &str) -> String {
    let sign = if edge.kind.is_dashed() { "⇢" } else { "→" };
    format!("{from} {sign} {to}")
}

fn detail(node: &DiagramNode, width: usize) -> String {
    format!("  {:width$}  {}\n", node.name, node.detail)
}
