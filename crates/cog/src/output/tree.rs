//! A JSON value as an indented tree, without brackets and quotes.

use cog_json::{Kind, Node};

use super::{
    Palette,
    text::{printable, truncate},
    wrap,
};

/// A longer text without spaces, in bytes, is truncated: media as base64.
const MAX_UNBROKEN: usize = 1024;

/// The format of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Its colours.
    pub(crate) palette: Palette,
    /// The width of the terminal.
    pub(crate) width: usize,
}

impl Layout {
    /// Formats the value as lines, indented by `indent` columns.
    pub(crate) fn tree(self, node: Node<'_>, indent: usize) -> String {
        let mut lines = Lines { layout: self, text: String::new() };
        lines.value(node, indent);
        lines.text
    }
}

struct Lines {
    layout: Layout,
    text: String,
}

impl Lines {
    fn value(&mut self, node: Node<'_>, indent: usize) {
        match node.kind() {
            Kind::Object if !node.is_empty() => {
                node.members().for_each(|(key, value)| self.member(key, value, indent));
            }
            Kind::Array if !node.is_empty() => {
                node.elements().for_each(|value| self.element(value, indent));
            }
            _ => self.scalar(node, indent, indent),
        }
    }

    fn member(&mut self, key: &str, value: Node<'_>, indent: usize) {
        let key = printable(key);
        self.start(indent);
        self.text += &format!("{}:", self.layout.palette.name(&key));
        if is_container(value) {
            self.text.push('\n');
            self.value(value, indent + 2);
        } else {
            self.text.push(' ');
            self.scalar(value, indent + super::width(&key) + 2, indent + 2);
        }
    }

    /// Formats `- ` and the element; an object's first member goes on the same line.
    fn element(&mut self, value: Node<'_>, indent: usize) {
        if !is_container(value) {
            self.start(indent);
            self.text += "- ";
            return self.scalar(value, indent + 2, indent + 2);
        }
        let from = self.text.len();
        self.value(value, indent + 2);
        // The dash goes into the indentation of the first line.
        self.text.replace_range(from..from + indent + 2, &format!("{}- ", " ".repeat(indent)));
    }

    /// Formats a value on the current line at column `at`; further lines are indented by `indent`.
    fn scalar(&mut self, node: Node<'_>, at: usize, indent: usize) {
        let palette = self.layout.palette;
        let Some(text) = node.as_str().filter(|text| !text.is_empty()) else {
            return self.text.push_str(&format!("{}\n", palette.bold(node)));
        };
        if text.len() > MAX_UNBROKEN && !text.contains(char::is_whitespace) {
            let length = text.chars().count();
            let shown = printable(&truncate(text, 25));
            return self.text.push_str(&format!("{shown} ({length} characters)\n"));
        }
        if !text.contains('\n') && at + super::width(text) <= self.layout.width {
            return self.text.push_str(&format!("{}\n", printable(text)));
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
        for line in wrap(text, self.layout.width.saturating_sub(indent).max(20)) {
            if !line.is_empty() {
                self.start(indent);
            }
            self.text += &format!("{line}\n");
        }
    }

    fn start(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

fn is_container(node: Node<'_>) -> bool {
    (node.is_object() || node.is_array()) && !node.is_empty()
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn tree(json: &str) -> String {
        let layout = Layout { palette: Palette::new(false), width: 40 };
        layout.tree(Value::parse(json).unwrap().node(), 0)
    }

    #[test]
    fn one_member_per_line() {
        assert_eq!(tree(r#"{"a": "x", "b": {"c": 1.50, "d": null}}"#), "a: x\nb:\n  c: 1.50\n  d: null\n");
    }

    #[test]
    fn truncates_base64() {
        let json = format!(r#"{{"data": "{}"}}"#, "QUJD".repeat(300));
        assert_eq!(tree(&json), format!("data: {}… (1200 characters)\n", "QUJD".repeat(6)));
    }

    #[test]
    fn marks_elements_with_dashes() {
        let text = tree(r#"{"a": ["x", {"b": 1, "c": [2]}, [], {}]}"#);
        assert_eq!(text, "a:\n  - x\n  - b: 1\n    c:\n      - 2\n  - []\n  - {}\n");
    }

    #[test]
    fn wraps_long_text_below_its_key() {
        let text = tree(r#"{"why": "a text that is longer than the terminal is wide", "n": 1}"#);
        assert_eq!(text, "why:\n  a text that is longer than the\n  terminal is wide\nn: 1\n");
    }

    #[test]
    fn preserves_line_breaks() {
        assert_eq!(tree(r#"{"code": "one\n\n  two"}"#), "code:\n  one\n\n    two\n");
        assert_eq!(tree(r#"{"empty": ""}"#), "empty: \"\"\n");
    }
}
