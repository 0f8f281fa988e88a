//! The conversation that `-c` continues, from the log of runs.

use cog_host::{
    run_log::{Contents, Entries},
    settings::Settings,
};
use cog_json::{ToJson as _, Value};
use cog_module::{Finder, Origin, load_manifest};
use cog_run::RunInput;
use cog_spec::{Code, ErrorBody};
use serde_json::{Map, json};

use crate::{args::RunArgs, error::CliError};

/// The type of context that contains a conversation.
const HISTORY: &str = "conversation_history";

/// The member of an input that contains its context.
const CONTEXT: &str = "_context";

/// The last conversation with a module.
pub(in crate::commands) struct Conversation {
    /// The ID of its last run.
    id: String,
    /// `_context` of its next run.
    context: Map<String, serde_json::Value>,
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
fn context_after(contents: &Contents) -> Map<String, serde_json::Value> {
    let mut input = contents.input.as_ref().map_or(serde_json::Value::Null, Value::to_serde);
    let context = input.as_object_mut().and_then(|input| input.remove(CONTEXT));
    let mut context = object(context.unwrap_or_default());
    let question = contents.args.clone().unwrap_or_else(|| text_of(input));
    let data = contents.envelope.get("data").map(|data| data.to_value().to_serde()).unwrap_or_default();
    let mut history = match context.remove(HISTORY) {
        Some(serde_json::Value::Array(history)) => history,
        _ => Vec::new(),
    };
    history.push(json!({ "role": "user", "content": question }));
    history.push(json!({ "role": "assistant", "content": text_of(data) }));
    context.insert(HISTORY.to_owned(), history.into());
    context
}

/// Returns the only text of an object; any other value as JSON.
fn text_of(value: serde_json::Value) -> String {
    let mut members = value.as_object().into_iter().flat_map(Map::values);
    match (members.next(), members.next()) {
        (Some(serde_json::Value::String(text)), None) => text.clone(),
        _ => Value::from(value).to_json(),
    }
}

fn object(value: serde_json::Value) -> Map<String, serde_json::Value> {
    match value {
        serde_json::Value::Object(members) => members,
        _ => Map::new(),
    }
}

impl Conversation {
    /// Adds the conversation to the input of its next run. Context in the input replaces the context of the last run.
    ///
    /// # Errors
    /// E1001 if the input has a conversation of its own.
    pub(super) fn add_to(self, input: RunInput) -> Result<RunInput, ErrorBody> {
        match input {
            RunInput::Args(text) => Ok(RunInput::ArgsWith(text, self.merged(Map::new())?)),
            RunInput::ArgsWith(text, rest) => {
                Ok(RunInput::ArgsWith(text, self.merged(object(rest.to_serde()))?))
            }
            RunInput::Json(value) if value.is_object() => {
                Ok(RunInput::Json(self.merged(object(value.to_serde()))?))
            }
            other => Ok(other), // the check of the input rejects it
        }
    }

    fn merged(mut self, mut input: Map<String, serde_json::Value>) -> Result<Value, ErrorBody> {
        let context = match input.remove(CONTEXT) {
            None => self.context.into(),
            Some(serde_json::Value::Object(own)) if own.contains_key(HISTORY) => {
                return Err(two_conversations());
            }
            Some(serde_json::Value::Object(own)) => {
                self.context.extend(own);
                self.context.into()
            }
            Some(invalid) => invalid, // the check of the input rejects it
        };
        input.insert(CONTEXT.to_owned(), context);
        Ok(Value::from(serde_json::Value::from(input)))
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
