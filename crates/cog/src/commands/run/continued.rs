//! Runs that continue: a halted run, after a confirmation from the flags or typed on a terminal; an interrupted run, from
//! its directory; and the conversation of `-c`, from the log of runs.

use std::{
    io::{BufRead as _, IsTerminal as _, stdin},
    path::PathBuf,
};

use cog_host::{
    run_log::{Contents, Entries},
    settings::Settings,
};
use cog_json::{Node, Object, ToJson as _, Value};
use cog_module::{Finder, Module, Origin, Trust, load_manifest};
use cog_run::{
    RunInput, RunOptions,
    sessions::{RunRecord, StoredRun, StoredRuns},
    tools::{Approval, Decision},
};
use cog_spec::{Code, Envelope, ErrorBody};
use serde_json::json;

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
/// terminal, and if the text is neither YES nor NO: then a person can decide later.
pub(super) fn prompt(envelope: &Envelope, console: &Console) -> Result<Option<Approval>, CliError> {
    let Some((id, tool, arguments)) = halted(envelope) else { return Ok(None) };
    let approval = typed(&id, &tool, &arguments, console)?;
    if approval.is_none() {
        console.note(&format!(
            "`cog run --continue {id} --confirm YES` executes the call of `{tool}`, `--deny` continues without it"
        ));
    }
    Ok(approval)
}

fn typed(id: &str, tool: &str, arguments: &Value, console: &Console) -> Result<Option<Approval>, CliError> {
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
    Ok(Some(Approval { id: id.to_owned(), decision }))
}

/// Returns the id of the halted run, the tool and its arguments.
fn halted(envelope: &Envelope) -> Option<(String, String, Value)> {
    let halted = envelope.error()?.detail("halted")?;
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

// The conversation that `-c` continues, from the log of runs.

/// The type of context that contains a conversation.
const HISTORY: &str = "conversation_history";

/// The member of an input that contains its context.
const CONTEXT: &str = "_context";

/// The last conversation with a module.
pub(in crate::commands) struct Conversation {
    /// The ID of its last run.
    id: String,
    /// `_context` of its next run.
    context: Object,
    /// Whether the arguments name the module; otherwise the log does.
    pub(super) is_module_given: bool,
}

/// Returns the conversation whose last run is the newest successful run of the module, or of any module if none is
/// given. Adds the module, provider and model of that run to the arguments, unless they are given.
///
/// # Errors
/// E4006 if there is no such module, E1001 if it accepts no conversation, E1006 if no such run is in the log or the log has
/// not stored its contents.
pub(super) fn last(args: &mut RunArgs, settings: &Settings) -> Result<Conversation, ErrorBody> {
    let finder = settings.finder();
    let given = args.request.input.module.as_deref().map(|name| accepting(&finder, name)).transpose()?;
    let entries = Entries::read(settings)?;
    let entry = entries
        .newest_first()
        .find(|entry| entry.ok && given.as_ref().is_none_or(|origin| entry.is_of(origin)))
        .ok_or_else(missing)?;
    if given.is_none() {
        accepting(&finder, entry.target())?;
    }
    let context = context_after(entry.stored_contents()?);
    args.request.input.module.get_or_insert_with(|| entry.target().to_owned());
    args.request.model.select_earlier(&entry);
    Ok(Conversation { id: entry.id, context, is_module_given: given.is_some() })
}

/// Finds a module that accepts a conversation. A module that does not load is found too: its run reports why.
fn accepting(finder: &Finder, name: &str) -> Result<Origin, ErrorBody> {
    let origin = finder.find(name).map_err(|error| CliError::from(error).to_body())?;
    match load_manifest(&origin) {
        Ok(manifest) if manifest.context.accepts.iter().all(|accepted| accepted.name != HISTORY) => {
            let message = format!("{} does not accept a conversation", manifest.name);
            let suggestion = "Add `context: {accepts: [{type: conversation_history}]}` to its manifest, or run it without -c.";
            Err(ErrorBody::new(Code::InvalidInput, message).suggest(suggestion))
        }
        _ => Ok(origin),
    }
}

/// Returns the context of the run that follows: the logged context, with the input and the answer as the last turn.
fn context_after(contents: &Contents) -> Object {
    let input = contents.input.as_ref().map(Value::node);
    let mut input = input.map(Object::from_node).unwrap_or_default();
    let context = input.remove(CONTEXT).unwrap_or_default();
    let mut context = Object::from_node(context.node());
    let question = contents.args.clone().unwrap_or_else(|| text_of(input.to_value().node()));
    let data = contents.envelope.get("data").map(text_of).unwrap_or_default();
    let history = context.remove(HISTORY).unwrap_or_default();
    let mut history: Vec<Value> = history.elements().map(Node::to_value).collect();
    history.push(json!({ "role": "user", "content": question }).into());
    history.push(json!({ "role": "assistant", "content": data }).into());
    context.insert(HISTORY, cog_json::to_value(&history).unwrap_or_default());
    context
}

/// Returns the only text of an object; any other value as JSON.
fn text_of(value: Node<'_>) -> String {
    let mut members = value.members().map(|(_, member)| member.as_str());
    match (members.next(), members.next()) {
        (Some(Some(text)), None) => text.to_owned(),
        _ => value.to_string(),
    }
}

impl Conversation {
    /// Adds the conversation to the input of its next run. Context in the input replaces the context of the last run.
    ///
    /// # Errors
    /// E1001 if the input has a conversation of its own.
    pub(super) fn add_to(self, input: RunInput) -> Result<RunInput, ErrorBody> {
        match input {
            RunInput::Args(text) => Ok(RunInput::ArgsWith(text, self.merged(Object::default())?)),
            RunInput::ArgsWith(text, rest) => {
                Ok(RunInput::ArgsWith(text, self.merged(Object::from_node(rest.node()))?))
            }
            RunInput::Json(value) if value.is_object() => {
                Ok(RunInput::Json(self.merged(Object::from_node(value.node()))?))
            }
            other => Ok(other), // the check of the input rejects it
        }
    }

    fn merged(mut self, mut input: Object) -> Result<Value, ErrorBody> {
        let context = match input.remove(CONTEXT) {
            None => self.context.to_value(),
            Some(own) if own.get(HISTORY).is_some() => return Err(two_conversations()),
            Some(own) if own.is_object() => {
                own.members().for_each(|(name, value)| self.context.insert(name, value.to_value()));
                self.context.to_value()
            }
            Some(invalid) => invalid, // the check of the input rejects it
        };
        input.insert(CONTEXT, context);
        Ok(input.to_value())
    }

    /// Returns the note for the user.
    pub(super) fn note(&self) -> String {
        format!("continuing the conversation of the run `{}`", self.id)
    }
}

fn missing() -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, "the log contains no successful run to continue").suggest(
        "Start the conversation without -c; COG_LOGS_CONTENTS=true stores its inputs and answers in the log.",
    )
}

fn two_conversations() -> ErrorBody {
    let message = "input._context.conversation_history: -c continues a conversation, and the input contains another one";
    ErrorBody::new(Code::InvalidInput, message).suggest("Remove it from the input, or run without -c.")
}
