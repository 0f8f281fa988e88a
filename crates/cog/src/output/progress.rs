//! The progress of a run: one line on stderr that is redrawn, or a line for each field on a terminal that is only appended to.

use std::{
    io,
    time::{Duration, Instant},
};

use cog_answer::DataAccumulator;
use cog_json::Value;
use cog_spec::{Chunk, Progress as RunProgress};

use super::{
    Console,
    text::{printable, truncate},
};

/// A progress line on a terminal, until it is dropped.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    console: &'a Console,
    what: String,
    characters: usize,
    started: Instant,
}

/// The duration of one frame of the spinner.
const TICK: Duration = Duration::from_millis(100);

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The maximum length of a path, in characters.
const MAX_PATH: usize = 40;

impl<'a> Progress<'a> {
    /// Shows the line with its first text.
    pub(crate) fn begin(console: &'a Console, what: impl Into<String>) -> Self {
        let progress = Self { console, what: what.into(), characters: 0, started: Instant::now() };
        progress.draw();
        progress
    }

    /// Whether the line is shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.console.err().is_terminal
    }

    /// Replaces the text of the line.
    pub(crate) fn show(&mut self, what: impl Into<String>) {
        self.what = what.into();
        self.draw();
    }

    /// Updates the line with the field and the number of characters so far.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        let field = match chunk {
            Chunk::Delta { field, delta, .. } => {
                self.characters += delta.chars().count();
                field
            }
            Chunk::Snapshot { field: Some(field), .. } if field != "meta" => field,
            Chunk::Progress(progress) if is_status(progress) || progress.tool.is_some() => {
                self.what = printable(&progress.description().unwrap_or_default());
                return;
            }
            Chunk::Meta { .. }
            | Chunk::Snapshot { .. }
            | Chunk::Progress(_)
            | Chunk::Final { .. }
            | Chunk::Error { .. } => return,
        };
        let field = truncate(&printable(field), MAX_PATH);
        self.what = format!("{field} · {} characters", self.characters);
    }

    /// Redraws the line.
    pub(crate) fn draw(&self) {
        if !self.is_shown() {
            return;
        }
        let palette = self.console.err().palette;
        let elapsed = self.started.elapsed();
        let seconds = format!("{} s", elapsed.as_secs());
        // A line that wraps cannot be erased.
        let what = truncate(&self.what, self.console.width().saturating_sub(seconds.len() + 4));
        self.console.replace_line(&format!(
            "{} {what} {}",
            palette.name(frame(elapsed)),
            palette.dim(seconds)
        ));
    }
}

/// Whether the progress is the new status of a part.
pub(super) fn is_status(progress: &RunProgress) -> bool {
    progress.part.as_ref().is_some_and(|part| part.status.is_some())
}

/// Returns the frame of the spinner.
pub(super) fn frame(elapsed: Duration) -> char {
    let turn = usize::try_from(elapsed.as_millis() / TICK.as_millis()).unwrap_or_default();
    FRAMES.get(turn % FRAMES.len()).copied().unwrap_or(' ')
}

/// Erases the line, also after an interruption.
impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.is_shown() {
            self.console.replace_line("");
        }
    }
}

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
        // A string is complete when another chunk than its next delta arrives.
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
            Chunk::Progress(RunProgress { violation: Some(found), .. }) => {
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

/// Returns `data.verdict: approve`, with spaces instead of line breaks.
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
