//! The fields of a run as lines, for a terminal that lines are only appended to.

use std::io;

use cog_answer::DataAccumulator;
use cog_json::Value;
use cog_spec::{Chunk, Progress};

use super::{Console, progress::is_status, text::printable};

/// Prints one line per field, once the field is complete.
pub(crate) struct LineView<'a> {
    console: &'a Console,
    fields: Fields,
}

impl<'a> LineView<'a> {
    /// Creates the view.
    pub(crate) fn begin(console: &'a Console) -> Self {
        Self { console, fields: Fields::default() }
    }

    /// Prints the fields that this chunk completes.
    pub(crate) fn push(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.fields.lines(chunk).into_iter().try_for_each(|line| self.console.print(&line))
    }
}

#[derive(Default)]
struct Fields {
    data: DataAccumulator,
    /// The string field that is still growing.
    growing: Option<String>,
}

impl Fields {
    fn lines(&mut self, chunk: &Chunk) -> Vec<String> {
        let mut lines = Vec::new();
        if !matches!(chunk, Chunk::Delta { field, .. } if self.growing.as_ref() == Some(field)) {
            lines.extend(self.growing.take().and_then(|field| self.grown(&field)));
        }
        self.data.apply(chunk);
        match chunk {
            Chunk::Delta { field, .. } => self.growing = Some(field.clone()),
            Chunk::Snapshot { field: Some(field), data, .. } if field != "meta" => {
                lines.push(line(field, data));
            }
            Chunk::Snapshot { field: None, data, .. } if data.node().is_empty() => {
                lines.push("the output so far is retracted; the model is called again".to_owned());
            }
            Chunk::Progress(Progress { violation: Some(found), .. }) => {
                lines.push(printable(&format!("! {}: {}", found.path, found.message)));
            }
            Chunk::Progress(progress) if is_status(progress) || progress.tool.is_some() => {
                lines.extend(progress.description().map(|text| printable(&text)));
            }
            Chunk::Progress(_) => {}
            Chunk::Meta { .. } | Chunk::Snapshot { .. } | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
        lines
    }

    fn grown(&self, field: &str) -> Option<String> {
        Some(line(field, &Value::from(self.data.at(field)?.clone())))
    }
}

/// Returns `data.verdict: approve`, with spaces in place of line breaks.
fn line(field: &str, value: &Value) -> String {
    match value.node().as_str() {
        Some(text) => printable(&format!("{field}: {}", text.replace('\n', " "))),
        None => printable(&format!("{field}: {}", value.node())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_field_when_next_begins() {
        let delta = |seq, field: &str, delta: &str| Chunk::Delta {
            seq,
            field: field.to_owned(),
            delta: delta.to_owned(),
            checkpoint: None,
        };
        let mut fields = Fields::default();
        assert!(fields.lines(&delta(1, "data.a", "one\n")).is_empty());
        assert!(fields.lines(&delta(2, "data.a", "two\u{1b}")).is_empty());
        assert_eq!(fields.lines(&delta(3, "data.b", "x")), ["data.a: one two\u{fffd}"]);
        let number =
            Chunk::Snapshot { seq: 4, field: Some("data.n".to_owned()), data: Value::parse("1.50").unwrap() };
        assert_eq!(fields.lines(&number), ["data.b: x", "data.n: 1.50"]);
    }
}
