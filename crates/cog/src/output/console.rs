//! stdout and stderr of the process: data, messages (text, or one line of JSON with `--log-format json`), and colours.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write},
};

use anstyle::{AnsiColor, Style};
use cog_host::{
    CONTENTS,
    settings::{Environment, Redactor},
};
use cog_json::ToJson;
use cog_module::{Diagnostic, Severity};
use cog_spec::{ErrorBody, Risk, Warning};
use tracing::{error, info, warn};
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::text::{for_terminal, printable_lines};
use crate::args::{Cli, ColorChoice, Global, ListFormat, LogFormat};

/// The default width of a terminal.
const WIDTH: usize = 80;
/// The default height of a terminal.
const HEIGHT: usize = 24;

/// Erases the line of the cursor.
pub(super) const ERASE_LINE: &str = "\r\x1b[2K";

/// stdout and stderr, and the format of each.
#[derive(Debug, Clone)]
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

impl Stream {
    fn new(is_terminal: bool, color: ColorChoice) -> Self {
        let is_coloured = match color {
            ColorChoice::Auto => is_terminal,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self { is_terminal, palette: Palette::new(is_coloured) }
    }
}

impl Console {
    /// Detects the formats of the streams. A pipe gets neither colours nor redrawn lines.
    pub(crate) fn new(environment: &Environment, global: &Global) -> Self {
        let is_dumb = environment.get("TERM").as_deref() == Some("dumb");
        let logs_json = global.log_format == LogFormat::Json;
        let has_no_color = environment.get("NO_COLOR").is_some();
        let is_forced = ["CLICOLOR_FORCE", "FORCE_COLOR"]
            .into_iter()
            .any(|name| environment.get(name).is_some_and(|value| value != "0"));
        let color = match global.color {
            ColorChoice::Auto if has_no_color => ColorChoice::Never,
            ColorChoice::Auto if is_forced => ColorChoice::Always,
            color => color,
        };
        // Lines of more than 120 columns are hard to read; below 20 nothing fits.
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
        let is_quiet = global.verbose == 0 && !logs_json;
        let out_is_terminal = io::stdout().is_terminal();
        Self {
            is_append_only: out_is_terminal && (is_dumb || !is_quiet),
            out: Stream::new(out_is_terminal && !is_dumb, color),
            err: Stream::new(io::stderr().is_terminal() && !is_dumb && !logs_json, color),
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
        // Keys are masked first: a key in which a character is replaced would not be recognised.
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
    pub(crate) fn window(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size();
        size.map_or((WIDTH, HEIGHT), |(width, height)| (usize::from(width.0), usize::from(height.0)))
    }

    /// Writes cursor movements and safe text to stdout.
    pub(crate) fn draw(&self, text: &str) -> io::Result<()> {
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

/// An error, as it is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorReport<'a> {
    /// The code, if the specification has one.
    pub(crate) code: Option<&'a str>,
    /// What happened.
    pub(crate) message: &'a str,
    /// The file, with the line if it is known.
    pub(crate) location: Option<&'a str>,
    /// What to do about it.
    pub(crate) help: Option<&'a str>,
}

impl<'a> From<&'a ErrorBody> for ErrorReport<'a> {
    fn from(error: &'a ErrorBody) -> Self {
        let code = Some(error.code.as_str());
        Self { code, message: &error.message, location: None, help: error.suggestion.as_deref() }
    }
}

impl Console {
    /// Prints a note: `note: …`.
    pub(crate) fn note(&self, text: &str) {
        if self.logs_json() {
            return info!("{text}");
        }
        self.write_stderr(&format!("{} {}", self.err().palette.dim("note:"), printable_lines(text)));
    }

    /// Prints a warning that belongs to no run: `warning: …`.
    pub(crate) fn caution(&self, text: &str) {
        if self.logs_json() {
            return warn!("{text}");
        }
        self.write_stderr(&format!("{} {}", self.err().palette.warning("warning:"), printable_lines(text)));
    }

    /// Prints lines of a name and its value.
    pub(crate) fn table(&self, lines: &[(&str, String)]) {
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, value) in lines {
            if self.logs_json() {
                info!(name, "{value}");
            } else {
                let name = self.err().palette.dim(format_args!("{name:width$}"));
                self.write_stderr(&format!("{name}  {}", printable_lines(value)));
            }
        }
    }

    /// Prints a warning of a run: `warning[W4001]: …`.
    pub(crate) fn warn(&self, warning: &Warning) {
        let Warning { code, message, .. } = warning;
        if self.logs_json() {
            return warn!(code = code.as_str(), "{message}");
        }
        let head = self.err().palette.warning(format_args!("warning[{code}]"));
        self.write_stderr(&format!("{head}: {}", printable_lines(message)));
    }

    /// Prints an error: `error[E4006]: …`, the location, `help: …`.
    pub(crate) fn error(&self, report: &ErrorReport<'_>) {
        let ErrorReport { code, message, location, help } = *report;
        if self.logs_json() {
            return error!(code, location, help, "{message}");
        }
        let palette = self.err().palette;
        let head = code.map_or_else(|| "error".to_owned(), |code| format!("error[{code}]"));
        let mut text = format!("{}: {}", palette.error(head), palette.bold(printable_lines(message)));
        if let Some(location) = location {
            text += &format!("\n  {} {}", palette.dim("-->"), printable_lines(location));
        }
        if let Some(help) = help {
            text += &format!("\n  {} {}", palette.name("help:"), printable_lines(help));
        }
        self.write_stderr(&text);
    }

    /// Prints the findings about a module, each with its source text.
    pub(crate) fn diagnose(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            if self.logs_json() {
                log(diagnostic);
            } else {
                self.write_stderr(&format!("{}\n\n", diagnostic.render(self.err().palette.is_on())));
            }
        }
    }
}

fn log(diagnostic: &Diagnostic) {
    let Diagnostic { severity, rule, message, file, location, suggestion } = diagnostic;
    let rule = rule.as_str();
    let file = file.to_string_lossy();
    let help = suggestion.as_deref();
    let line = location.as_ref().map(|location| location.line);
    match severity {
        Severity::Error => error!(rule, %file, line, help, "{message}"),
        Severity::Warning => warn!(rule, %file, line, help, "{message}"),
    }
}

/// Colours text, if colours are on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    on: bool,
}

impl Palette {
    /// Creates a palette with or without colours.
    pub(crate) const fn new(on: bool) -> Self {
        Self { on }
    }

    /// Whether colours are on.
    pub(crate) const fn is_on(self) -> bool {
        self.on
    }

    /// Formats a title or an important value.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Formats secondary text.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Formats a name: a module, a field.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }

    /// Formats success.
    pub(crate) fn success(self, text: impl Display) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// Formats a warning.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Formats an error.
    pub(crate) fn error(self, text: impl Display) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// Formats text in the colour of a risk.
    pub(crate) fn risk(self, level: Risk, text: impl Display) -> String {
        match level {
            Risk::None | Risk::Low => self.success(text),
            Risk::Medium => self.warning(text),
            Risk::High => self.error(text),
        }
    }

    fn with(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

// The log on stderr. Off by default; a server logs warnings, `-v` and `--log-format json` enable more. Only `cog run -vv` logs
// what models write; the format never decides about that.

/// The targets of the events about context that modules read and store, and about calls of tools. A server always logs them: they
/// show who used whose data, and who decided about a call.
const AUDITS: [&str; 2] = ["cog::context", "cog::tools"];

/// Starts the log. With `--log-format json` it is on without `-v`, since a program reads it. A server always logs
/// warnings: nothing else reports a full disk or a provider that is down.
pub(crate) fn start_log(cli: &Cli, console: &Console) {
    let global = &cli.global;
    let is_server = cli.command.is_server();
    let is_json = global.log_format == LogFormat::Json;
    let level = match global.verbose {
        0 if !is_json && is_server => LevelFilter::WARN,
        0 if !is_json => return,
        0 | 1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Other crates are not logged: their messages may contain headers.
    let has_contents = cli.command.may_log_contents() && level >= LevelFilter::DEBUG;
    let contents = if has_contents { level } else { LevelFilter::OFF };
    let ours = Targets::new().with_target("cog", level).with_target(CONTENTS, contents);
    let audits = AUDITS.iter().filter(|_| is_server).map(|target| (*target, level.max(LevelFilter::INFO)));
    let ours = ours.with_targets(audits);
    let is_terminal = console.err().is_terminal;
    let redactor = console.redactor().clone();
    let lines = fmt::layer()
        .with_writer(move || Safe { is_terminal, redactor: redactor.clone() })
        .with_ansi(console.err().palette.is_on());
    let registry = tracing_subscriber::registry();
    let started = match global.log_format {
        // Whoever reads the log of a server later asks when; whoever runs a command sees it.
        LogFormat::Text if is_server => registry.with(lines.with_target(false).with_filter(ours)).try_init(),
        LogFormat::Text => {
            registry.with(lines.without_time().with_target(false).with_filter(ours)).try_init()
        }
        LogFormat::Json => registry.with(lines.json().flatten_event(true).with_filter(ours)).try_init(),
    };
    // Fails if the program that embeds this one has a log already.
    let _ = started;
    if has_contents {
        console.note("this log contains what the model writes; with -v it has no contents");
    }
}

/// stderr for log lines, with keys masked and escape sequences removed. On a terminal, a line replaces the progress
/// line, which is then redrawn below.
struct Safe {
    is_terminal: bool,
    redactor: Redactor,
}

impl Write for Safe {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let begin = if self.is_terminal { ERASE_LINE } else { "" };
        let text = for_terminal(&self.redactor.redact(&String::from_utf8_lossy(line)));
        write!(io::stderr().lock(), "{begin}{text}").map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
