//! The progress line on stderr while a model works.

use std::time::{Duration, Instant};

use cog_spec::Chunk;

use super::{
    Console,
    text::{cut, printable},
};

/// A line that says what arrives, until it is dropped; nothing where nobody looks at stderr.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    console: &'a Console,
    what: String,
    characters: usize,
    begun: Instant,
}

/// How long a frame of the wheel lasts.
const TICK: Duration = Duration::from_millis(100);

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The longest path that is shown, in characters.
const MAX_LEN: usize = 40;

impl<'a> Progress<'a> {
    /// Begins the line with what is waited for.
    pub(crate) fn begin(console: &'a Console, what: impl Into<String>) -> Self {
        let progress = Self { console, what: what.into(), characters: 0, begun: Instant::now() };
        progress.draw();
        progress
    }

    /// Whether there is a line, and so anything to draw anew.
    pub(crate) fn is_shown(&self) -> bool {
        self.console.err().is_terminal
    }

    /// MediaCapabilities in the field that arrives, and how much there is.
    pub(crate) fn see(&mut self, chunk: &Chunk) {
        let field = match chunk {
            Chunk::Delta { field, delta, .. } => {
                self.characters += delta.chars().count();
                field
            }
            Chunk::Snapshot { field: Some(field), .. } if field != "meta" => field,
            _ => return,
        };
        let field: String = printable(field).chars().take(MAX_LEN).collect();
        self.what = format!("{field} · {} characters", self.characters);
    }

    /// Draws the line where the last one stood.
    pub(crate) fn draw(&self) {
        if !self.is_shown() {
            return;
        }
        let paint = self.console.err().paint;
        let elapsed = self.begun.elapsed();
        let seconds = format!("{} s", elapsed.as_secs());
        // A line that the terminal breaks cannot be taken back.
        let what = cut(&self.what, self.console.width().saturating_sub(seconds.len() + 4));
        self.console.replace_line(&format!("{} {what} {}", paint.name(frame(elapsed)), paint.dim(seconds)));
    }
}

/// The image of the wheel that turns while something is waited for.
pub(super) fn frame(elapsed: Duration) -> char {
    let turn = usize::try_from(elapsed.as_millis() / TICK.as_millis()).unwrap_or_default();
    FRAMES.get(turn % FRAMES.len()).copied().unwrap_or(' ')
}

/// The line goes when the work does, also when it is interrupted.
impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.is_shown() {
            self.console.replace_line("");
        }
    }
}
