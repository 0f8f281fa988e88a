//! The progress line on stderr while a model works.

use std::{borrow::Cow, time::Duration};

use cog_spec::Chunk;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Console, text::printable};

/// The longest path that is shown, so that the line never fills the terminal: `^C` would break it.
const LONGEST_FIELD: usize = 40;

/// A line that says what arrives, until it is dropped; nothing where nobody looks at stderr.
#[derive(Debug)]
pub(crate) struct Progress {
    line: ProgressBar,
    characters: usize,
}

impl Progress {
    /// Begins the line: `asking openai/gpt-…`.
    pub(crate) fn begin(console: &Console, what: impl Into<Cow<'static, str>>) -> Self {
        let line = ProgressBar::with_draw_target(None, target(console))
            .with_style(style(console))
            .with_message(what);
        if !line.is_hidden() {
            line.enable_steady_tick(Duration::from_millis(100));
        }
        Self { line, characters: 0 }
    }

    /// Shows the field that arrives, and how much there is.
    pub(crate) fn see(&mut self, chunk: &Chunk) {
        let field = match chunk {
            Chunk::Delta { field, delta, .. } => {
                self.characters += delta.chars().count();
                field
            }
            Chunk::Snapshot { field: Some(field), .. } if field != "meta" => field,
            _ => return,
        };
        if !self.line.is_hidden() {
            let field: String = printable(field).chars().take(LONGEST_FIELD).collect();
            self.line.set_message(format!("{field} · {} characters", self.characters));
        }
    }
}

/// The line goes when the work does, also when it is interrupted.
impl Drop for Progress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

fn target(console: &Console) -> ProgressDrawTarget {
    if console.err().is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

fn style(console: &Console) -> ProgressStyle {
    let template = if console.err().paint.is_on() {
        "{spinner:.cyan} {msg} {elapsed:.dim}"
    } else {
        "{spinner} {msg} {elapsed}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
