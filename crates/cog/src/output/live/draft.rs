//! What there is of an answer, as lines of a terminal: the tree of the card, with what is still open.

use cog_json::Path;
use serde_json::Value;

use super::{Note, screen::Line};
use crate::output::{
    Paint,
    text::{cut, printable, width, wrap},
};

/// The widest text of a line, however wide the terminal.
pub(super) const WIDEST: usize = 120;
/// What is left for text however deep it stands, in columns; a narrower window shows no draft.
pub(super) const NARROWEST: usize = 16;

/// Lays out a draft in lines narrower than `columns`.
pub(super) struct Draft<'a> {
    pub(super) paint: Paint,
    pub(super) columns: usize,
    /// The field that grows.
    pub(super) growing: Option<&'a Path>,
    pub(super) notes: &'a [Note],
}

impl Draft<'_> {
    /// The lines of `data`, each violation below the field that it is about.
    pub(super) fn lines(&self, data: Option<&Value>) -> Vec<Line> {
        let mut lines = Lines { draft: self, path: Path::default(), lines: Vec::new(), told: Vec::new() };
        lines.path.push_key("data");
        if let Some(data) = data {
            lines.children(data, Lead::default(), 0);
        }
        lines.notes_of_others();
        lines.lines
    }
}

/// What a line begins with.
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
    /// The place of what is laid out.
    path: Path,
    lines: Vec<Line>,
    /// The notes that stand below their field.
    told: Vec<usize>,
}

impl Lines<'_> {
    /// The members or elements of a container; the first of them on the line that `lead` begins.
    fn children(&mut self, value: &Value, lead: Lead, indent: usize) {
        let mut lead = Some(lead);
        let mut begin = move || lead.take().unwrap_or_else(|| Lead::indented(indent));
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    self.path.push_key(key);
                    self.member(key, member, begin(), indent);
                    self.path.pop();
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.path.push_index(index);
                    self.element(element, begin(), indent);
                    self.path.pop();
                }
            }
            _ => {}
        }
        self.notes_of_absent(indent);
    }

    fn member(&mut self, key: &str, value: &Value, lead: Lead, indent: usize) {
        let (paint, inner) = (self.draft.paint, self.deeper(indent));
        let key = cut(&printable(key), self.room(indent) / 2);
        let lead = lead.with(&format!("{}:", paint.name(&key)), width(&key) + 1);
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                let count = format!(" {}", elements.len());
                self.lines.push(lead.with(&paint.dim(&count), width(&count)).0);
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

    /// `- ` and the element; its first member stands on the same line, where there is room.
    fn element(&mut self, value: &Value, lead: Lead, indent: usize) {
        let (lead, inner) = (lead.with("- ", 2), self.deeper(indent));
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

    /// A value on the line that is begun; where it needs more lines, they stand at `indent`.
    fn scalar(&mut self, value: &Value, lead: Lead, indent: usize) {
        let paint = self.draft.paint;
        let cursor = if self.draft.growing == Some(&self.path) { "…" } else { "" };
        let Value::String(text) = value else {
            let shown = cut(&value.to_string(), self.draft.columns.saturating_sub(lead.0.width));
            return self.lines.push(lead.with(&paint.bold(&shown), width(&shown)).0);
        };
        let is_short = lead.0.width + width(text) + width(cursor) <= self.draft.columns;
        if is_short && !text.contains('\n') {
            let text = format!("{}{cursor}", printable(text));
            return self.lines.push(lead.with(&text, width(&text)).0);
        }
        self.lines.push(lead.0);
        let mut wrapped = wrap(text, self.room(indent) - 1);
        wrapped.last_mut().into_iter().for_each(|line| line.push_str(cursor));
        for line in wrapped {
            self.lines.push(Lead::indented(indent).with(&line, width(&line)).0);
        }
    }

    /// The violations of what was just laid out.
    fn notes(&mut self, indent: usize) {
        self.notes_where(indent, |note, here| note.path.as_ref() == Some(here));
    }

    /// The violations of what a container that was just laid out should hold.
    fn notes_of_absent(&mut self, indent: usize) {
        self.notes_where(indent, |note, here| note.path.as_ref().is_some_and(|path| path.starts_with(here)));
    }

    fn notes_where(&mut self, indent: usize, is_meant: impl Fn(&Note, &Path) -> bool) {
        for (index, note) in self.draft.notes.iter().enumerate() {
            if is_meant(note, &self.path) && !self.told.contains(&index) {
                self.told.push(index);
                self.note(&note.message, indent);
            }
        }
    }

    /// The violations of what is not data.
    fn notes_of_others(&mut self) {
        for (index, note) in self.draft.notes.iter().enumerate() {
            if !self.told.contains(&index) {
                self.note(&format!("{}: {}", note.place, note.message), 0);
            }
        }
    }

    fn note(&mut self, message: &str, indent: usize) {
        let paint = self.draft.paint;
        for (index, line) in wrap(message, self.room(indent + 2)).iter().enumerate() {
            let mark = if index == 0 { "! " } else { "  " };
            let lead = Lead::indented(indent).with(&paint.bad(mark), 2);
            self.lines.push(lead.with(&paint.odd(line), width(line)).0);
        }
    }

    /// The columns right of an indentation.
    fn room(&self, indent: usize) -> usize {
        self.draft.columns.saturating_sub(indent).max(2)
    }

    /// Two columns further in, as long as there is room for text.
    fn deeper(&self, indent: usize) -> usize {
        if self.room(indent) > NARROWEST { indent + 2 } else { indent }
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

    fn laid_out(data: &Value, columns: usize, growing: &str, notes: &[Note]) -> Vec<String> {
        let growing = growing.parse().ok();
        let draft = Draft { paint: Paint::new(false), columns, growing: growing.as_ref(), notes };
        let lines = draft.lines(Some(data));
        for line in &lines {
            assert_eq!(line.width, width(&line.text), "{line:?}");
            assert!(line.width <= columns, "{line:?}");
        }
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn arrays_are_counted_and_the_growing_field_is_marked() {
        let data =
            json!({ "verdict": "no", "issues": [{ "title": "a", "lines": [1, 2] }, { "title": "b" }] });
        let lines = laid_out(&data, 40, "data.issues[1].title", &[]);
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
    fn a_violation_stands_below_its_field() {
        let data = json!({ "a": "x", "b": { "c": 1 } });
        let notes = [
            Note::new("data.a", "is not a colour"),
            Note::new("data.b.d", "`d` is required"),
            Note::new("meta.risk", "is not a string"),
        ];
        let lines = laid_out(&data, 40, "", &notes);
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
    fn no_line_is_wider_than_the_window_however_deep_or_wide_its_text() {
        let mut data =
            json!("语言模型的回答 with a\nline break, \u{1b}[2J and averyverylongwordthatdoesnotfitanywhere");
        for depth in 0..30 {
            data = json!({ format!("a key of some length at depth {depth}"): [data] });
        }
        let lines = laid_out(&data, 39, "", &[Note::new("data.x", "审查".repeat(40))]);
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }
}
