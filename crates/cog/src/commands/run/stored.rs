//! The files of a run from which it continues if it is interrupted.

use std::path::{Path, PathBuf};

use cog_host::settings::Settings;
use cog_module::{Module, Origin, Trust};
use cog_run::{
    RunInput, RunOptions,
    sessions::{RunRecord, StoredRun, StoredRuns},
};
use cog_spec::{Code, ErrorBody};

use crate::{args::RunArgs, commands::example::quoted, output::Console};

/// The beginning of the ids of stored runs. Those of runs that wait for a confirmation have another one.
pub(super) const PREFIX: &str = "sess_";

/// Opens the run that `--continue` names; none if it names a run that waits for a confirmation.
///
/// # Errors
/// E1001 without the directory of the run, or with a decision about a tool call; those of [`StoredRuns::open`].
pub(super) fn opened(args: &RunArgs, settings: &Settings) -> Result<Option<StoredRun>, ErrorBody> {
    let Some(id) = args.tools.continues.as_deref().filter(|id| id.starts_with(PREFIX)) else {
        return Ok(None);
    };
    if args.tools.confirm.is_some() || args.tools.deny {
        let message = format!("the run `{id}` was interrupted; no tool call of it waits for a confirmation");
        return Err(
            ErrorBody::new(Code::InvalidInput, message).suggest("Continue it without --confirm and --deny.")
        );
    }
    let opened =
        directory(args, settings, true).map(|directory| StoredRuns::in_directory(directory).open(id));
    match opened {
        Some(Err(error)) if args.state_dir.is_none() && error.code == Code::SessionExpired.into() => {
            Err(without_directory(id))
        }
        None => Err(without_directory(id)),
        Some(opened) => opened.map(Some),
    }
}

fn without_directory(id: &str) -> ErrorBody {
    let message = format!("the directory of the run `{id}` is missing");
    ErrorBody::new(Code::InvalidInput, message).suggest("Add the --state-dir that it was started with.")
}

/// Returns the directory of stored runs. A run that continues after a confirmation has one also without `--state-dir`: its
/// confirmation counts only once.
fn directory(args: &RunArgs, settings: &Settings, is_continued: bool) -> Option<PathBuf> {
    let halted = || settings.tools.state_dir().filter(|_| is_continued);
    args.state_dir.as_deref().or_else(halted).map(|directory| directory.join("runs"))
}

/// Stores a composition and a run that may call tools with `--state-dir`, and each run that continues after a confirmation. One
/// that cannot be stored runs nevertheless.
pub(super) fn created(
    args: &RunArgs,
    module: &Module,
    input: &RunInput,
    options: RunOptions,
    settings: &Settings,
    console: &Console,
) -> Option<StoredRun> {
    let is_continued = options.approval.is_some();
    let is_stored = is_continued || module.calls_modules() || module.manifest.policies.tools_allowed;
    let directory = directory(args, settings, is_continued).filter(|_| is_stored)?;
    let mut record = RunRecord::new(target(module), input.clone(), options);
    record.provider.clone_from(&settings.provider.value);
    record.model.clone_from(&settings.model.value);
    record.is_trusted_for_run = module.trust == Trust::ForThisRun;
    let created = StoredRuns::in_directory(directory).create(record);
    let report = |error| console.note(&format!("this run cannot be continued if it is interrupted: {error}"));
    created.map_err(report).ok()
}

/// Reports how to continue a run that has started: one that is killed reports nothing.
pub(super) fn announce(run: &StoredRun, args: &RunArgs, console: &Console) {
    console.note(&format!("if this run is interrupted, {}", command(run, args)));
}

/// Ends a run, and reports how to continue it if it was interrupted.
pub(super) fn close(run: StoredRun, args: &RunArgs, console: &Console) {
    let command = command(&run, args);
    if run.close() {
        console.note(&command);
    }
}

/// Returns the sentence with the command that continues a run.
fn command(run: &StoredRun, args: &RunArgs) -> String {
    let quoted = |directory: &Path| format!(" --state-dir {}", quoted(&directory.to_string_lossy()));
    let directory = args.state_dir.as_deref().map(quoted).unwrap_or_default();
    format!("continue it with `cog run --continue {}{directory}`", run.id())
}

/// Returns what finds the module from any working directory.
fn target(module: &Module) -> String {
    match &module.origin {
        Origin::Directory(directory) => {
            let absolute = std::path::absolute(directory);
            absolute.as_ref().unwrap_or(directory).display().to_string()
        }
        _ => module.manifest.name.clone(),
    }
}
