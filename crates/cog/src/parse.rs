//! The command-line arguments of the process.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, error::ErrorKind};
use cog_host::settings::Deprecated;

use crate::{args::Cli, exit::Exit};

/// Returns the arguments of the hidden command that reads media, if it was called.
pub(crate) fn internal_media() -> Option<Vec<OsString>> {
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

/// Parses the arguments, and returns the deprecated flags among them. Prints help, version and errors.
pub(crate) fn parse() -> Result<(Cli, Vec<Deprecated>), Exit> {
    let mut command = Cli::command();
    let parsed = command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| {
        let deprecated = deprecated_flags(&command, &matches, std::env::args_os());
        Ok((Cli::from_arg_matches(&matches)?, deprecated))
    });
    parsed.map_err(|error| match error.kind() {
        ErrorKind::InvalidUtf8 => print(&invalid_utf8()),
        _ => print(&error),
    })
}

/// Returns the deprecated flags among the arguments: the hidden aliases of the flags of the command that was called.
fn deprecated_flags(
    command: &Command,
    matches: &ArgMatches,
    arguments: impl Iterator<Item = OsString>,
) -> Vec<Deprecated> {
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return deprecated_flags(command, matches, arguments);
    }
    let given: Vec<_> = arguments.filter_map(|argument| argument.into_string().ok()).collect();
    let is_given = |flag: &str| given.iter().any(|text| text.split('=').next() == Some(flag));
    let mut used = Vec::new();
    for arg in command.get_arguments() {
        let visible = arg.get_visible_aliases().unwrap_or_default();
        for alias in arg.get_all_aliases().unwrap_or_default() {
            let old = format!("--{alias}");
            if !visible.contains(&alias) && is_given(&old) {
                used.push(Deprecated { old, new: format!("--{}", arg.get_long().unwrap_or_default()) });
            }
        }
    }
    used
}

/// Names the argument that is not UTF-8, which clap's own error does not.
fn invalid_utf8() -> clap::Error {
    let mut arguments = std::env::args_os().skip(1);
    let argument = arguments.find(|argument| argument.to_str().is_none()).unwrap_or_default();
    let message = format!(
        "the argument `{}` is not valid UTF-8; only the names of input and output files may be",
        argument.to_string_lossy().escape_debug()
    );
    Cli::command().error(ErrorKind::InvalidUtf8, message)
}

fn print(error: &clap::Error) -> Exit {
    match error.print() {
        _ if error.use_stderr() => Exit::Usage,
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
        _ => Exit::Ok,
    }
}
