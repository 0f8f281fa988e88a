//! A drawing for Graphviz.

use super::diagram::{Diagram, NodeKind};

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
