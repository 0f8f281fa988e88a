//! The two streams of the process.

use std::io::{self, IsTerminal as _, Write as _};

use cog_json::ToJson;

use super::{Paint, text::for_terminal};
use crate::{
    args::{ColorChoice, Global, LogFormat},
    settings::{Environment, Redactor},
};

/// The width of text where the terminal does not tell one.
const WIDTH: usize = 80;
/// Its rows, likewise.
const HEIGHT: usize = 24;

/// MediaCapabilities back the line on which the cursor stands.
pub(super) const ERASE_LINE: &str = "\r\x1b[2K";

/// stdout and stderr, and how each may be written to.
#[derive(Debug)]
pub(crate) struct Console {
    out: Stream,
    err: Stream,
    width: usize,
    logs_json: bool,
    /// Whether a person looks at stdout, whose lines cannot be drawn anew.
    is_typewriter: bool,
    veil: Redactor,
}

/// One of the two streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Whether a person looks at it.
    pub(crate) is_terminal: bool,
    /// How it is coloured.
    pub(crate) paint: Paint,
}

impl Console {
    /// The streams of the process. What a program reads is never coloured, nor drawn anew.
    pub(crate) fn new(environment: &Environment, global: &Global) -> Self {
        let is_dumb = environment.get("TERM").as_deref() == Some("dumb");
        let logs_json = global.log_format == LogFormat::Json;
        let stream = |is_terminal: bool| {
            let coloured = match global.color {
                ColorChoice::Auto => is_terminal && environment.get("NO_COLOR").is_none(),
                ColorChoice::Always => true,
                ColorChoice::Never => false,
            };
            Stream { is_terminal, paint: Paint::new(coloured) }
        };
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
        let is_quiet = global.verbose == 0 && !logs_json;
        let out_is_terminal = io::stdout().is_terminal();
        Self {
            is_typewriter: out_is_terminal && (is_dumb || !is_quiet),
            out: stream(out_is_terminal && !is_dumb),
            err: stream(io::stderr().is_terminal() && !is_dumb && !logs_json),
            width: width.clamp(20, 120),
            logs_json,
            veil: environment.veil().clone(),
        }
    }

    /// Masks keys on stderr. stdout is data and is not masked.
    pub(super) fn veil(&self) -> &Redactor {
        &self.veil
    }

    /// Whether what is told is JSON, for a program.
    pub(super) fn logs_json(&self) -> bool {
        self.logs_json
    }

    /// What stdout is.
    pub(crate) fn out(&self) -> Stream {
        self.out
    }

    /// What stderr is.
    pub(crate) fn err(&self) -> Stream {
        self.err
    }

    /// The columns of the terminal, within reason.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The columns for a table on stdout; none where nobody looks, so that nothing is cut.
    pub(crate) fn out_columns(&self) -> Option<usize> {
        self.out.is_terminal.then_some(self.width)
    }

    /// Writes data to stdout, with a line break at its end.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let text = if self.is_watched() { &for_terminal(text) } else { text };
        out.write_all(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Writes a value to stdout as JSON: with line breaks on a terminal, on one line in a pipe.
    pub(crate) fn print_json(&self, value: &(impl ToJson + ?Sized)) -> io::Result<()> {
        self.print(&if self.out.is_terminal { value.to_json_pretty() } else { value.to_json() })
    }

    /// Tells the person something on stderr, with a line break at its end. That nobody hears it is no
    /// fault.
    pub(super) fn tell(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let text = self.veil.over(text);
        let text = if self.err.is_terminal { for_terminal(&text) } else { text };
        let _ = write!(io::stderr().lock(), "{text}{end}");
    }

    /// Whether a person looks at stdout.
    pub(crate) fn is_watched(&self) -> bool {
        self.out.is_terminal || self.is_typewriter
    }

    /// Whether a person looks at stdout, and nothing may be drawn anew there: the terminal cannot, or the log stands
    /// between the lines.
    pub(crate) fn is_typewriter(&self) -> bool {
        self.is_typewriter
    }

    /// The columns and rows of the terminal as they are now.
    pub(super) fn window(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or((WIDTH, HEIGHT), |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Writes to stdout what moves the cursor, and so is safe already.
    pub(super) fn draw(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Puts a text in place of the line of stderr on which the cursor stands, and leaves the cursor there.
    pub(crate) fn replace_line(&self, text: &str) {
        let text = self.veil.over(text);
        let mut err = io::stderr().lock();
        let _ = write!(err, "{ERASE_LINE}{text}").and_then(|()| err.flush());
    }
}
