//! The log on stderr. Off by default; a server logs warnings, `-v` and `--log-format json` enable more. Only `cog run -vv` logs
//! what models write; the format never decides about that.

use std::io::{self, Write};

use cog_host::{CONTENTS, settings::Redactor};
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{Console, console::ERASE_LINE, text::for_terminal};
use crate::args::{Cli, LogFormat};

/// The target of the events about context that modules read and store. A server always logs them: they show who used whose data.
const AUDIT: &str = "cog::context";

/// Starts the log. With `--log-format json` it is on without `-v`, since a program reads it. A server always logs
/// warnings: nothing else reports a full disk or a provider that is down.
pub(crate) fn start(cli: &Cli, console: &Console) {
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
    let ours = if is_server { ours.with_target(AUDIT, level.max(LevelFilter::INFO)) } else { ours };
    let is_terminal = console.err().is_terminal;
    let redactor = console.redactor().clone();
    let lines = fmt::layer()
        .with_writer(move || Safe { is_terminal, redactor: redactor.clone() })
        .with_ansi(console.err().palette.is_on());
    let registry = tracing_subscriber::registry();
    let started = match global.log_format {
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
