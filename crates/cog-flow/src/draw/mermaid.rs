//! A drawing for Mermaid.

use super::diagram::{Diagram, NodeKind, truncated};

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

/// Returns a text for a label in quotes. Everything that Mermaid or HTML reads is written by its number.
fn escaped(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " -_.,:$[]()=+…".contains(c);
    let escape = |c: char| if plain(c) { c.to_string() } else { format!("#{};", u32::from(c)) };
    text.chars().filter(|c| !c.is_control()).map(escape).collect()
}
