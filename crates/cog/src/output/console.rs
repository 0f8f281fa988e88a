//! stdout and stderr of the process.

use std::io::{self, IsTerminal as _, Write as _};

use cog_host::settings::{Environment, Redactor};
use cog_json::ToJson;

use super::{Palette, text::for_terminal};
use crate::args::{ColorChoice, Global, ListFormat, LogFormat};

/// The default width of a terminal.
const WIDTH: usize = 80;
/// The default height of a terminal.
const HEIGHT: usize = 24;

/// Erases the line of the cursor.
pub(super) const ERASE_LINE: &str = "\r\x1b[2K";

/// stdout and stderr, and the format of each.
#[derive(Debug)]
pub(crate) struct Console {
    out: Stream,
    err: Stream,
    width: usize,
    logs_json: bool,
    /// Whether stdout is a terminal that lines are only appended to.
    is_append_only: bool,
    redactor: Redactor,
}

/// The format of one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Whether it is a terminal.
    pub(crate) is_terminal: bool,
    /// Its colours.
    pub(crate) palette: Palette,
}

impl Console {
    /// Detects the formats of the streams. A pipe gets neither colours nor redrawn lines.
    pub(crate) fn new(environment: &Environment, global: &Global) -> Self {
        let is_dumb = environment.get("TERM").as_deref() == Some("dumb");
        let logs_json = global.log_format == LogFormat::Json;
        let stream = |is_terminal: bool| {
            let is_coloured = match global.color {
                ColorChoice::Auto => is_terminal && environment.get("NO_COLOR").is_none(),
                ColorChoice::Always => true,
                ColorChoice::Never => false,
            };
            Stream { is_terminal, palette: Palette::new(is_coloured) }
        };
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
        let is_quiet = global.verbose == 0 && !logs_json;
        let out_is_terminal = io::stdout().is_terminal();
        Self {
            is_append_only: out_is_terminal && (is_dumb || !is_quiet),
            out: stream(out_is_terminal && !is_dumb),
            err: stream(io::stderr().is_terminal() && !is_dumb && !logs_json),
            width: width.clamp(20, 120),
            logs_json,
            redactor: environment.redactor().clone(),
        }
    }

    /// Masks keys on stderr. stdout is data and is not masked.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether messages are JSON.
    pub(super) fn logs_json(&self) -> bool {
        self.logs_json
    }

    /// Returns the format of stdout.
    pub(crate) fn out(&self) -> Stream {
        self.out
    }

    /// Returns the format of stderr.
    pub(crate) fn err(&self) -> Stream {
        self.err
    }

    /// Returns the width of the terminal, from 20 to 120 columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns the width for a table on stdout; none in a pipe, where nothing is truncated.
    pub(crate) fn out_columns(&self) -> Option<usize> {
        self.out.is_terminal.then_some(self.width)
    }

    /// Whether a command prints JSON: by its `--format`, otherwise unless stdout is a terminal.
    pub(crate) fn prints_json(&self, format: ListFormat) -> bool {
        format.is_json() || !(self.out.is_terminal || format.is_human())
    }

    /// Writes text to stdout, with a final line break: in one write, so that the lines of parallel processes stay apart.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut text = if self.is_interactive() { for_terminal(text) } else { text.to_owned() };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes a value to stdout as JSON; indented on a terminal, on one line in a pipe.
    pub(crate) fn print_json(&self, value: &(impl ToJson + ?Sized)) -> io::Result<()> {
        self.print(&if self.out.is_terminal { value.to_json_pretty() } else { value.to_json() })
    }

    /// Writes a message to stderr, with a final line break. Write errors are ignored.
    pub(super) fn write_stderr(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let text = self.redactor.redact(text);
        let text = if self.err.is_terminal { for_terminal(&text) } else { text };
        let _ = write!(io::stderr().lock(), "{text}{end}");
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_interactive(&self) -> bool {
        self.out.is_terminal || self.is_append_only
    }

    /// Whether stdout is a terminal that lines are only appended to: it cannot move the cursor, or the log is on it
    /// too.
    pub(crate) fn is_append_only(&self) -> bool {
        self.is_append_only
    }

    /// Returns the current columns and rows of the terminal.
    pub(super) fn window(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or((WIDTH, HEIGHT), |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Writes cursor movements and safe text to stdout.
    pub(super) fn draw(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Replaces the current line of stderr.
    pub(crate) fn replace_line(&self, text: &str) {
        let text = self.redactor.redact(text);
        let mut err = io::stderr().lock();
        let _ = write!(err, "{ERASE_LINE}{text}").and_then(|()| err.flush());
    }
}
