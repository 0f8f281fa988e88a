//! The command-line arguments of the process.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use clap::{
    FromArgMatches as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use cog_schema::nearest;

use crate::{
    args::{Cli, command},
    error::Exit,
};

/// Returns the arguments of the hidden command that reads media, if it was called.
pub(crate) fn internal_media() -> Option<Vec<OsString>> {
    // Without clap: this process limits itself before it does anything else, and its arguments need not be UTF-8.
    let mut arguments = std::env::args_os().skip(1);
    arguments.next().is_some_and(|command| command == "internal-media").then(|| arguments.collect())
}

/// Returns the name of the program as called: `cog` or `cogn` (ruling R1).
pub(crate) fn program() -> &'static str {
    let path = std::env::args_os().next().map(PathBuf::from);
    match path.as_deref().and_then(Path::file_stem) {
        Some(stem) if stem == "cogn" => "cogn",
        _ => "cog",
    }
}

/// Parses the arguments. Prints help, version and errors.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let matches = command().color(color()).try_get_matches();
    // `format` adds the usage, which an error of the second step lacks.
    let parsed = matches.and_then(|matches| {
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command().color(color())))
    });
    parsed.map_err(|error| match error.kind() {
        ErrorKind::InvalidUtf8 => print(&invalid_utf8()),
        kind if wants_upgrade(&error) => print(&command().color(color()).error(kind, UPGRADE)),
        kind if wants_nats(&error) => print(&command().color(color()).error(kind, WITHOUT_NATS)),
        _ => print(&with_nearest(error)),
    })
}

/// Replaces what clap finds similar by what [`nearest`] does: clap compares the beginnings of names, and takes `migrate` for `upgrade`.
fn with_nearest(mut error: clap::Error) -> clap::Error {
    for (wrong, similar) in [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(text)) = error.get(wrong) else { continue };
        let names = match similar {
            ContextKind::SuggestedSubcommand => subcommands(text),
            ContextKind::SuggestedValue => texts(error.get(ContextKind::ValidValue)),
            _ => texts(error.get(similar)),
        };
        let near = nearest(text, names.iter().map(String::as_str)).map(str::to_owned);
        error.remove(similar);
        if similar == ContextKind::SuggestedSubcommand {
            // How to pass the word as a value, which no command with subcommands accepts.
            error.remove(ContextKind::Suggested);
        }
        if let Some(near) = near {
            error.insert(similar, ContextValue::String(near));
        }
    }
    error
}

fn texts(value: Option<&ContextValue>) -> Vec<String> {
    match value {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns the names of the commands where this one was expected.
fn subcommands(unknown: &str) -> Vec<String> {
    let cog = command();
    let mut at = &cog;
    let words = std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok());
    for word in words.take_while(|word| word != unknown) {
        at = at.find_subcommand(&word).unwrap_or(at);
    }
    at.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Returns when help and errors of the arguments have colours: as `--color` says, which is not parsed yet, otherwise as clap decides.
fn color() -> clap::ColorChoice {
    let mut arguments = std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok());
    let mut chosen = None;
    while let Some(argument) = arguments.next() {
        match argument.split_once('=') {
            Some(("--color", value)) => chosen = Some(value.to_owned()),
            None if argument == "--color" => chosen = arguments.next(),
            _ if argument == "--" => break,
            _ => {}
        }
    }
    chosen.and_then(|value| value.parse().ok()).unwrap_or(clap::ColorChoice::Auto)
}

/// What a program says that is compiled without the feature `nats`.
pub(crate) const WITHOUT_NATS: &str = "this program is compiled without NATS; released programs have `cog worker` and `--nats`, \
    and so does `cargo install --locked --path crates/cog --features nats`";

/// What to do for a newer version of the program.
const UPGRADE: &str = "cog does not replace itself: install the new version in the way you installed this one, for example with \
    `sh install.sh` or `pip install --upgrade`; `cog migrate` upgrades modules";

/// Whether the command that is missing would replace the program.
fn wants_upgrade(error: &clap::Error) -> bool {
    matches!(
        error.get(ContextKind::InvalidSubcommand),
        Some(ContextValue::String(name)) if matches!(name.as_str(), "upgrade" | "update" | "self-update" | "self")
    )
}

/// Whether the command or option that is missing is one of the feature `nats`.
fn wants_nats(error: &clap::Error) -> bool {
    let missing = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].map(|kind| error.get(kind));
    cfg!(not(feature = "nats"))
        && missing.into_iter().flatten().any(|value| match value {
            ContextValue::String(name) => name == "worker" || name == "--nats",
            _ => false,
        })
}

/// Names the argument that is not UTF-8, which clap's own error does not.
fn invalid_utf8() -> clap::Error {
    let mut arguments = std::env::args_os().skip(1);
    let argument = arguments.find(|argument| argument.to_str().is_none()).unwrap_or_default();
    let message = format!(
        "the argument `{}` is not valid UTF-8; only the names of input and output files may be",
        argument.to_string_lossy().escape_debug()
    );
    command().color(color()).error(ErrorKind::InvalidUtf8, message)
}

fn print(error: &clap::Error) -> Exit {
    match error.print() {
        _ if error.use_stderr() => Exit::Usage,
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
        _ => Exit::Ok,
    }
}
