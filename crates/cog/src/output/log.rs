//! The log on stderr: off, unless `-v` or `--log-format json` asks for it.

use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::Console;
use crate::args::{Global, LogFormat};

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
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(console.err().paint.is_on());
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
