//! A run as lines below each other, for a terminal on which nothing can be drawn anew.

use std::io;

use cog_answer::DataAccumulator;
use cog_json::Value;
use cog_spec::Chunk;

use super::{Console, text::printable};

/// Tells each field in a line of its own, once it has come to its end.
pub(crate) struct Plain<'a> {
    console: &'a Console,
    fields: Fields,
}

impl<'a> Plain<'a> {
    /// Nothing told yet.
    pub(crate) fn begin(console: &'a Console) -> Self {
        Self { console, fields: Fields::default() }
    }

    /// Tells what this chunk brings to an end.
    pub(crate) fn see(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.fields.lines(chunk).into_iter().try_for_each(|line| self.console.print(&line))
    }
}

#[derive(Default)]
struct Fields {
    image: DataAccumulator,
    /// The string that grows.
    growing: Option<String>,
}

impl Fields {
    fn lines(&mut self, chunk: &Chunk) -> Vec<String> {
        let mut lines = Vec::new();
        if !matches!(chunk, Chunk::Delta { field, .. } if self.growing.as_ref() == Some(field)) {
            lines.extend(self.growing.take().and_then(|field| self.grown(&field)));
        }
        self.image.apply(chunk);
        match chunk {
            Chunk::Delta { field, .. } => self.growing = Some(field.clone()),
            Chunk::Snapshot { field: Some(field), data, .. } if field != "meta" => {
                lines.push(line(field, data));
            }
            Chunk::Snapshot { field: None, data, .. } if data.node().is_empty() => {
                lines.push("the output so far is retracted; the model is called again".to_owned());
            }
            Chunk::Progress(progress) => lines.extend(
                progress
                    .violation
                    .as_ref()
                    .map(|found| printable(&format!("! {}: {}", found.path, found.message))),
            ),
            _ => {}
        }
        lines
    }

    fn grown(&self, field: &str) -> Option<String> {
        Some(line(field, &Value::from(self.image.at(field)?.clone())))
    }
}

/// `data.verdict: approve`; line breaks of a text become blanks.
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
    fn a_field_is_told_when_the_next_begins() {
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
