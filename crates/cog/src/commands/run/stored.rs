//! The file of a run with `--state-dir`, from which an interrupted composition continues.

use std::path::Path;

use cog_host::settings::Settings;
use cog_module::{Module, Origin};
use cog_run::{
    RunInput, RunOptions,
    composition::is_composed,
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
pub(super) fn opened(args: &RunArgs) -> Result<Option<StoredRun>, ErrorBody> {
    let Some(id) = args.tools.continues.as_deref().filter(|id| id.starts_with(PREFIX)) else {
        return Ok(None);
    };
    if args.tools.confirm.is_some() || args.tools.deny {
        let message = format!("the run `{id}` was interrupted; no tool call of it waits for a confirmation");
        return Err(
            ErrorBody::new(Code::InvalidInput, message).suggest("Continue it without --confirm and --deny.")
        );
    }
    let Some(directory) = &args.state_dir else {
        let message = format!("the directory of the run `{id}` is missing");
        return Err(ErrorBody::new(Code::InvalidInput, message)
            .suggest("Add the --state-dir that it was started with."));
    };
    runs(directory).open(id).map(Some)
}

/// Stores a composition with `--state-dir`. One that cannot be stored runs nevertheless. A run that continues another is not
/// stored: the other one can continue only once.
pub(super) fn created(
    args: &RunArgs,
    module: &Module,
    (input, options): (&RunInput, RunOptions),
    settings: &Settings,
    console: &Console,
) -> Option<StoredRun> {
    let is_stored = is_composed(module) && options.continuation.is_none();
    let directory = args.state_dir.as_deref().filter(|_| is_stored)?;
    let mut record = RunRecord::new(target(module), input.clone(), options);
    record.provider.clone_from(&settings.provider.value);
    record.model.clone_from(&settings.model.value);
    let created = runs(directory).create(record);
    let report = |error| console.note(&format!("this run cannot be continued if it is interrupted: {error}"));
    created.map_err(report).ok()
}

/// Reports how to continue a run that has started: one that is killed reports nothing.
pub(super) fn announce(run: &StoredRun, args: &RunArgs, console: &Console) {
    if let Some(directory) = &args.state_dir {
        console.note(&format!("if this run is interrupted, {}", command(run, directory)));
    }
}

/// Ends a run, and reports how to continue it if it was interrupted.
pub(super) fn close(run: StoredRun, args: &RunArgs, console: &Console) {
    let command = args.state_dir.as_deref().map(|directory| command(&run, directory));
    if let Some(command) = command.filter(|_| run.close()) {
        console.note(&command);
    }
}

/// Returns the sentence with the command that continues a run.
fn command(run: &StoredRun, directory: &Path) -> String {
    let directory = quoted(&directory.to_string_lossy());
    format!("continue it with `cog run --continue {} --state-dir {directory}`", run.id())
}

fn runs(directory: &Path) -> StoredRuns {
    StoredRuns::in_directory(directory.join("runs"))
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
