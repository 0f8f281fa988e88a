//! The log on stderr: off, unless `-v` or `--log-format json` asks for it.

use std::io::{self, Write};

use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::{Console, console::ERASE_LINE, text::for_terminal};
use crate::{
    args::{Global, LogFormat},
    settings::Redactor,
};

/// Starts the log. With `--log-format json` it is on without `-v`, since a program reads it.
pub(crate) fn start(global: &Global, console: &Console) {
    let is_json = global.log_format == LogFormat::Json;
    let level = match global.verbose {
        0 if !is_json => return,
        0 | 1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Other people's crates stay quiet: what they log may hold headers.
    let ours = Targets::new().with_target("cog", level);
    let (is_terminal, veil) = (console.err().is_terminal, console.veil().clone());
    let safe = move || Safe { is_terminal, veil: veil.clone() };
    let lines = fmt::layer().with_writer(safe).with_ansi(console.err().paint.is_on());
    let registry = tracing_subscriber::registry();
    let started = match global.log_format {
        LogFormat::Text => {
            registry.with(lines.without_time().with_target(false).with_filter(ours)).try_init()
        }
        LogFormat::Json => registry.with(lines.json().flatten_event(true).with_filter(ours)).try_init(),
    };
    // A log that is there already belongs to whoever embeds this program.
    let _ = started;
}

/// stderr for lines that hold what a model or a vendor said. On a terminal each takes the place of the
/// progress line, which is drawn anew below it.
struct Safe {
    is_terminal: bool,
    veil: Redactor,
}

impl Write for Safe {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let begin = if self.is_terminal { ERASE_LINE } else { "" };
        let text = for_terminal(&self.veil.over(&String::from_utf8_lossy(line)));
        write!(io::stderr().lock(), "{begin}{text}").map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
