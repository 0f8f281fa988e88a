//! A partial answer as lines of a terminal.

use cog_json::Path;
use serde_json::Value;

use super::{Line, Note};
use crate::output::{
    Palette,
    text::{printable, truncate, width, wrap},
};

/// The maximum width of a line.
pub(super) const MAX_COLUMNS: usize = 120;
/// The minimum columns for text at any depth; a narrower window shows no draft.
pub(super) const MIN_COLUMNS: usize = 16;

/// A draft to lay out in lines of at most `columns`.
pub(super) struct Draft<'a> {
    pub(super) palette: Palette,
    pub(super) columns: usize,
    /// The field that is still growing.
    pub(super) growing: Option<&'a Path>,
    pub(super) notes: &'a [Note],
}

impl Draft<'_> {
    /// Returns the lines of `data`, with violations below their fields.
    pub(super) fn lines(&self, data: Option<&Value>) -> Vec<Line> {
        let mut lines = Lines { draft: self, path: Path::default(), lines: Vec::new(), shown: Vec::new() };
        lines.path.push_key("data");
        if let Some(data) = data {
            lines.children(data, Lead::default(), 0);
        }
        lines.notes_outside_data();
        lines.lines
    }
}

/// The beginning of a line.
#[derive(Debug, Clone, Default)]
struct Lead(Line);

impl Lead {
    fn indented(columns: usize) -> Self {
        Self(Line { text: " ".repeat(columns), width: columns })
    }

    fn with(mut self, painted: &str, columns: usize) -> Self {
        self.0.text += painted;
        self.0.width += columns;
        self
    }
}

struct Lines<'a> {
    draft: &'a Draft<'a>,
    /// The path of the value that is laid out.
    path: Path,
    lines: Vec<Line>,
    /// The notes that are shown already.
    shown: Vec<usize>,
}

impl Lines<'_> {
    /// Lays out the members or elements of a container; the first one on the line of `lead`.
    fn children(&mut self, value: &Value, lead: Lead, indent: usize) {
        let mut first = Some(lead);
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    self.path.push_key(key);
                    let lead = first.take().unwrap_or_else(|| Lead::indented(indent));
                    self.member(key, member, lead, indent);
                    self.path.pop();
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.path.push_index(index);
                    let lead = first.take().unwrap_or_else(|| Lead::indented(indent));
                    self.element(element, lead, indent);
                    self.path.pop();
                }
            }
            _ => {}
        }
        self.notes_on_missing(indent);
    }

    fn member(&mut self, key: &str, value: &Value, lead: Lead, indent: usize) {
        let palette = self.draft.palette;
        let inner = self.next_level(indent);
        let key = truncate(&printable(key), self.available(indent) / 2);
        let lead = lead.with(&format!("{}:", palette.name(&key)), width(&key) + 1);
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                let count = format!(" {}", elements.len());
                self.lines.push(lead.with(&palette.dim(&count), width(&count)).0);
            }
            value if is_container(value) => self.lines.push(lead.0),
            _ => {
                self.scalar(value, lead.with(" ", 1), inner);
                return self.notes(inner);
            }
        }
        self.notes(inner);
        self.children(value, Lead::indented(inner), inner);
    }

    /// Lays out `- ` and the element; its first member goes on the same line if it fits.
    fn element(&mut self, value: &Value, lead: Lead, indent: usize) {
        let lead = lead.with("- ", 2);
        let inner = self.next_level(indent);
        if !is_container(value) {
            self.scalar(value, lead, inner);
        } else if inner > indent {
            self.children(value, lead, inner);
        } else {
            self.lines.push(lead.0);
            self.children(value, Lead::indented(inner), inner);
        }
        self.notes(inner);
    }

    /// Lays out a value on the line of `lead`; further lines are indented by `indent`.
    fn scalar(&mut self, value: &Value, lead: Lead, indent: usize) {
        let palette = self.draft.palette;
        let cursor = if self.draft.growing == Some(&self.path) { "…" } else { "" };
        let Value::String(text) = value else {
            let shown = truncate(&value.to_string(), self.draft.columns.saturating_sub(lead.0.width));
            return self.lines.push(lead.with(&palette.bold(&shown), width(&shown)).0);
        };
        let is_short = lead.0.width + width(text) + width(cursor) <= self.draft.columns;
        if is_short && !text.contains('\n') {
            let text = format!("{}{cursor}", printable(text));
            return self.lines.push(lead.with(&text, width(&text)).0);
        }
        self.lines.push(lead.0);
        let mut wrapped = wrap(text, self.available(indent) - 1);
        wrapped.last_mut().into_iter().for_each(|line| line.push_str(cursor));
        for line in wrapped {
            self.lines.push(Lead::indented(indent).with(&line, width(&line)).0);
        }
    }

    /// Shows the violations of the value that was just laid out.
    fn notes(&mut self, indent: usize) {
        self.notes_where(indent, |note, here| note.path.as_ref() == Some(here));
    }

    /// Shows the violations of members that the last container lacks.
    fn notes_on_missing(&mut self, indent: usize) {
        self.notes_where(indent, |note, here| note.path.as_ref().is_some_and(|path| path.starts_with(here)));
    }

    fn notes_where(&mut self, indent: usize, matches: impl Fn(&Note, &Path) -> bool) {
        for (index, note) in self.draft.notes.iter().enumerate() {
            if matches(note, &self.path) && !self.shown.contains(&index) {
                self.shown.push(index);
                self.note(&note.message, indent);
            }
        }
    }

    /// Shows the violations outside `data`.
    fn notes_outside_data(&mut self) {
        for (index, note) in self.draft.notes.iter().enumerate() {
            if !self.shown.contains(&index) {
                self.note(&format!("{}: {}", note.location, note.message), 0);
            }
        }
    }

    fn note(&mut self, message: &str, indent: usize) {
        let palette = self.draft.palette;
        for (index, line) in wrap(message, self.available(indent + 2)).iter().enumerate() {
            let mark = if index == 0 { "! " } else { "  " };
            let lead = Lead::indented(indent).with(&palette.error(mark), 2);
            self.lines.push(lead.with(&palette.warning(line), width(line)).0);
        }
    }

    /// Returns the columns after an indentation.
    fn available(&self, indent: usize) -> usize {
        self.draft.columns.saturating_sub(indent).max(2)
    }

    /// Returns the indentation of the next level, if there is room for text.
    fn next_level(&self, indent: usize) -> usize {
        if self.available(indent) > MIN_COLUMNS { indent + 2 } else { indent }
    }
}

fn is_container(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lay_out(data: &Value, columns: usize, growing: &str, notes: &[Note]) -> Vec<String> {
        let growing = growing.parse().ok();
        let draft = Draft { palette: Palette::new(false), columns, growing: growing.as_ref(), notes };
        let lines = draft.lines(Some(data));
        for line in &lines {
            assert_eq!(line.width, width(&line.text), "{line:?}");
            assert!(line.width <= columns, "{line:?}");
        }
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn counts_arrays_and_marks_growing_field() {
        let data =
            json!({ "verdict": "no", "issues": [{ "title": "a", "lines": [1, 2] }, { "title": "b" }] });
        let lines = lay_out(&data, 40, "data.issues[1].title", &[]);
        let expected = [
            "verdict: no",
            "issues: 2",
            "  - title: a",
            "    lines: 2",
            "      - 1",
            "      - 2",
            "  - title: b…",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn violation_is_below_its_field() {
        let data = json!({ "a": "x", "b": { "c": 1 } });
        let notes = [
            Note::new("data.a", "is not a colour"),
            Note::new("data.b.d", "`d` is required"),
            Note::new("meta.risk", "is not a string"),
        ];
        let lines = lay_out(&data, 40, "", &notes);
        assert_eq!(
            lines,
            [
                "a: x",
                "  ! is not a colour",
                "b:",
                "  c: 1",
                "  ! `d` is required",
                "! meta.risk: is not a string"
            ]
        );
    }

    #[test]
    fn lines_fit_the_window() {
        let mut data =
            json!("语言模型的回答 with a\nline break, \u{1b}[2J and averyverylongwordthatdoesnotfitanywhere");
        for depth in 0..30 {
            data = json!({ format!("a key of some length at depth {depth}"): [data] });
        }
        let lines = lay_out(&data, 39, "", &[Note::new("data.x", "审查".repeat(40))]);
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }
}
