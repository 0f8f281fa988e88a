//! Runs that continue: a halted run, after a confirmation from the flags or typed on a terminal; an interrupted run, from its files.

use std::{
    io::{BufRead as _, IsTerminal as _, stdin},
    path::PathBuf,
};

use cog_host::settings::Settings;
use cog_json::{ToJson as _, Value};
use cog_module::{Module, Origin, Trust};
use cog_run::{
    RunInput, RunOptions,
    sessions::{RunRecord, StoredRun, StoredRuns},
    tools::{Approval, Decision},
};
use cog_spec::{Code, Envelope, ErrorBody};

use crate::{
    args::{RunArgs, ToolArgs},
    commands::input::quoted,
    error::CliError,
    output::Console,
};

/// The maximum length of a line that is read, in bytes.
const MAX_LINE: u64 = 1024;

/// Returns the halted run that the flags continue; none if they continue an interrupted one. Without `--confirm` and `--deny` it stays halted.
pub(super) fn from_args(args: &ToolArgs) -> Option<Approval> {
    let id = args.continues.clone().filter(|id| !id.starts_with(PREFIX))?;
    let decision = match args.deny {
        true => Decision::Deny,
        false => Decision::Approve(args.confirm.clone().unwrap_or_default()),
    };
    Some(Approval { id, decision })
}

/// Shows the call for which a run was halted, and reads the decision. None if the run was not halted, if there is no
/// terminal, and if the text is neither YES nor NO.
pub(super) fn prompt(envelope: &Envelope, console: &Console) -> Result<Option<Approval>, CliError> {
    let Some((id, tool, arguments)) = halted(envelope) else { return Ok(None) };
    if !console.err().is_terminal || !stdin().is_terminal() {
        return Ok(None);
    }
    console.note(&format!("`{tool}` needs a confirmation. Its arguments:\n{}", arguments.to_json_pretty()));
    console.note("Type YES to execute it, or NO to continue without it. Press Enter to decide later.");
    let mut line = String::new();
    std::io::Read::take(stdin().lock(), MAX_LINE).read_line(&mut line)?;
    let decision = match line.trim_end_matches(['\r', '\n']) {
        "YES" => Decision::yes(),
        "NO" => Decision::Deny,
        _ => return Ok(None),
    };
    Ok(Some(Approval { id, decision }))
}

/// Returns the id of the halted run, the tool and its arguments.
fn halted(envelope: &Envelope) -> Option<(String, String, Value)> {
    let halted = envelope.error()?.details.as_ref()?.get("halted")?;
    let id = halted.get("id")?.as_str()?.to_owned();
    let tool = halted.get("tool")?.as_str()?.to_owned();
    Some((id, tool, halted.get("arguments")?.to_value()))
}

/// The beginning of the ids of stored runs. The ids of runs that wait for a confirmation begin differently.
const PREFIX: &str = "sess_";

/// Opens the run that `--continue` names; none if it names a run that waits for a confirmation.
///
/// # Errors
/// E1001 without the directory of the run, or with a decision about a tool call; the errors of [`StoredRuns::open`].
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
    let of_settings = settings.tools.state_dir().filter(|_| is_continued);
    args.state_dir.as_deref().or(of_settings).map(|directory| directory.join("runs"))
}

/// Stores the run if it can continue later: with `--state-dir`, a composition or a run that may call tools; always, a run that continues
/// after a confirmation. A run that cannot be stored runs nevertheless.
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
    let record = RunRecord {
        module: target(module),
        input: input.clone(),
        options,
        provider: settings.provider.value.clone(),
        model: settings.model.value.clone(),
        is_trusted_for_run: module.trust == Trust::ForThisRun,
    };
    match StoredRuns::in_directory(directory).create(record) {
        Ok(stored) => Some(stored),
        Err(error) => {
            console.note(&format!("this run cannot be continued if it is interrupted: {error}"));
            None
        }
    }
}

/// Reports how to continue a run at its start: a killed process can report nothing.
pub(super) fn announce(run: &StoredRun, args: &RunArgs, console: &Console) {
    console.note(&format!("if this run is interrupted, {}", command(run, args)));
}

/// Ends a run, and reports how to continue it if it was interrupted.
pub(super) fn close(run: StoredRun, args: &RunArgs, console: &Console) {
    let command = command(&run, args);
    // `close` removes the files of a run that has ended, and says whether there is something to continue.
    if run.close() {
        console.note(&command);
    }
}

/// Returns the sentence with the command that continues a run.
fn command(run: &StoredRun, args: &RunArgs) -> String {
    let directory = match &args.state_dir {
        Some(directory) => format!(" --state-dir {}", quoted(&directory.to_string_lossy())),
        None => String::new(),
    };
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
