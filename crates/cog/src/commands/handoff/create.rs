//! `cog handoff new`.

use std::time::SystemTime;

use cog_harmony::{
    Conversation,
    handoff::{Draft, Handoff, losses},
};
use cog_host::settings::{Environment, Flags, Settings};
use cog_json::{Path, Value};
use cog_spec::{Code, ErrorBody};

use super::{
    super::{emit, input, runtime},
    packet,
};
use crate::{args::HandoffNewArgs, error::CliError, exit::Exit, output::Console};

/// Creates a packet from the arguments, and lists what it loses.
pub(super) fn new(
    args: &HandoffNewArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let parent = match &args.parent {
        Some(source) => match runtime::wait(packet::read_valid(source, &settings.media))? {
            Some(parent) => Some(parent?),
            None => return Ok(Exit::Interrupted),
        },
        None => None,
    };
    let draft = draft(args, parent.as_ref())?;
    let history = args.history.as_deref().map(history).transpose()?.unwrap_or_default();
    let lost = losses(&draft, parent.as_ref(), &history);
    for loss in &lost {
        console.note(&format!("lost: {}: {}", loss.path, loss.message));
    }
    let sealed = Handoff::seal(&draft, parent.as_ref()).map_err(|findings| packet::refused(&findings))?;
    if args.strict && !lost.is_empty() {
        let message = format!("the handoff would lose {} things, and --strict refuses it", lost.len());
        let error = ErrorBody::new(Code::ConstraintViolation, message);
        return Err(error.suggest("Add a summary and the artifacts, or omit --strict.").into());
    }
    emit::json(&sealed, &args.output, console)?;
    Ok(Exit::Ok)
}

fn draft(args: &HandoffNewArgs, parent: Option<&Handoff>) -> Result<Draft, CliError> {
    let mut draft = parent.map(Draft::after).unwrap_or_default();
    if let Some(file) = &args.answer {
        draft = with_answer(draft, &input::json_of(file)?)?;
    }
    if let Some(source) = &args.from {
        draft.source_agent.clone_from(source);
    }
    draft.target_agent.clone_from(&args.to);
    draft.timestamp = now();
    let replace = |field: &mut Option<String>, new: &Option<String>| *field = new.clone().or(field.take());
    draft.primary_objective = args.objective.clone().unwrap_or(draft.primary_objective);
    replace(&mut draft.status, &args.status);
    replace(&mut draft.next_immediate_step, &args.next);
    replace(&mut draft.history_summary, &args.summary);
    draft.completed_steps.extend(args.done.iter().cloned());
    draft.constraints.extend(args.constraint.iter().cloned());
    for (name, reference) in &args.artifact {
        draft.set_artifact(name, cog_json::to_value(reference).unwrap_or_default());
    }
    Ok(draft)
}

/// Adds `data.handoff` of an envelope, or `handoff` of data.
fn with_answer(draft: Draft, answer: &Value) -> Result<Draft, CliError> {
    let (node, path) = match answer.pointer("/data/handoff") {
        Some(node) => (Some(node), "data.handoff"),
        None => (answer.get("handoff"), "handoff"),
    };
    let Some(node) = node else {
        let error = ErrorBody::new(Code::InvalidInput, "the answer has no `handoff` in its data");
        return Err(error
            .suggest("Use a module whose data have a member `handoff`, as docs/handoff.md describes.")
            .into());
    };
    let path: Path = path.parse().unwrap_or_default();
    draft.with_context(node, &path).map_err(|findings| packet::refused(&findings).into())
}

fn history(file: &std::path::Path) -> Result<Conversation, CliError> {
    let value = input::json_of(file)?;
    let messages = Conversation::read(value.get("messages").unwrap_or(value.node()));
    Ok(messages.map_err(|problems| {
        let list: Vec<_> =
            problems.iter().take(20).map(|one| format!("{}: {}", one.path, one.message)).collect();
        ErrorBody::new(Code::InvalidInput, format!("the history is invalid: {}", list.join("; ")))
            .suggest("`cog verify --kind messages` lists every problem.")
    })?)
}

#[expect(clippy::disallowed_methods, reason = "the command line is the edge")]
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
