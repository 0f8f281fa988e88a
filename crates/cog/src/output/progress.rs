//! The progress line on stderr while a model generates.

use std::time::{Duration, Instant};

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
