//! The start of a run: a new one, or one that continues after a confirmation.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use cog_harmony::Message;
use cog_json::Value;
use cog_module::Module;
use cog_spec::{Code, ErrorBody};

use super::{
    PendingApprovals, Round,
    logged::{self, Logged},
    round::HaltedCalls,
    state::{HaltedState, Progressed, changed},
};
use crate::{
    RunContext, RunInput, RunOptions,
    call_log::CallLog,
    error,
    options::{Approval, Decision},
    parts_state::HaltedPart,
};

/// What a run starts from.
pub(crate) struct Restored<'a> {
    pub(crate) options: Cow<'a, RunOptions>,
    pub(crate) context: RunContext,
    pub(crate) input: RunInput,
    pub(crate) continued: Option<Box<Continued>>,
    /// The halted parts of a composition.
    pub(crate) halted_parts: Vec<ContinuedPart>,
}

/// A part of a halted composition that waits for a confirmation, and how it continues.
pub(crate) struct ContinuedPart {
    pub(crate) part: HaltedPart,
    pub(crate) approval: Approval,
}

/// A run that continues after tool calls: one that was halted, or one that was interrupted and starts again.
pub(crate) struct Continued {
    /// The messages after the prompt and the input.
    pub(super) messages: Vec<Message>,
    /// The round that is not complete.
    pub(super) round: Option<Round>,
    pub(super) progressed: Progressed,
    /// The ids of calls that began before the run was interrupted.
    pub(super) started: HashSet<String>,
    /// The calls for which the run was halted.
    pub(super) halted_calls: HaltedCalls,
    pub(crate) claim: Option<Claim>,
}

impl Continued {
    /// Returns the messages after the prompt and the input.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Message> {
        self.messages.iter().cloned()
    }

    /// Returns the ids of all calls so far.
    pub(super) fn call_ids(&self) -> HashSet<String> {
        let calls = self.messages.iter().flat_map(|message| &message.tool_calls);
        calls.map(|call| call.id.clone()).collect()
    }
}

/// Returns the start of a run: its own input and options, or the input and options of the halted run that it continues. A run that was
/// interrupted starts after its tool calls.
///
/// # Errors
/// E4013 and E4014 for an id that is unknown, belongs to another owner or was used, and for a module that has changed; the
/// error of the halted run if the call is not confirmed.
pub(crate) fn restore<'a>(
    pending_approvals: &PendingApprovals,
    module: &Module,
    input: RunInput,
    options: &'a RunOptions,
    mut context: RunContext,
) -> Result<Restored<'a>, ErrorBody> {
    if let Some(logged) = interrupted(module, context.call_log.as_ref())? {
        return Ok(after_calls(pending_approvals, logged, input, options, context));
    }
    let Some(Approval { id, decision }) = &options.approval else {
        let options = Cow::Borrowed(options);
        return Ok(Restored { options, context, input, continued: None, halted_parts: Vec::new() });
    };
    let state = pending_approvals.open(id, options.owner.as_deref())?;
    check_unchanged(&state, module)?;
    if state.own_round().is_some() {
        check_trust(module)?;
    }
    let is_confirmed = match decision {
        Decision::Approve(text) if text == Decision::YES => true,
        Decision::Approve(_) => return Err(state.error()),
        Decision::Deny => false,
    };
    if state.halted_call().is_none() {
        return Err(state.error());
    }
    let log = context.call_log.clone();
    let entry = log.is_some().then(|| logged::continued(&state, is_confirmed));
    let round = state.own_round().cloned();
    let continued = Continued {
        messages: state.messages.clone(),
        halted_calls: round.as_ref().map(|round| HaltedCalls::new(round, is_confirmed)).unwrap_or_default(),
        round,
        progressed: state.progressed.clone(),
        started: HashSet::new(),
        claim: Some(Claim {
            halted: pending_approvals.clone(),
            id: id.clone(),
            owner: state.owner.clone(),
            log,
            decision: entry,
        }),
    };
    let mut media = pending_approvals.media(&state);
    media.extend(context.stored_media.iter().map(|(source, media)| (source.clone(), media.clone())));
    context.stored_media = Arc::new(media);
    Ok(continue_from(state, continued, decision, options, context))
}

/// Returns the start of a run that continues this halted one: its input, its options and its parts.
fn continue_from(
    state: HaltedState,
    continued: Continued,
    decision: &Decision,
    options: &RunOptions,
    mut context: RunContext,
) -> Restored<'static> {
    let HaltedState { input, parts, options: halted, .. } = state;
    let mut halted_parts = Vec::new();
    if let Some(before) = parts {
        // What this run has stored since counts before what the halted one had.
        let now = context.finished_parts.take();
        context.finished_parts =
            Some(now.map_or_else(|| before.finished.clone(), |now| before.finished.with(&now)));
        halted_parts = decided(before.halted, decision);
    }
    Restored {
        options: Cow::Owned(options.or_former(&halted)),
        context,
        input: RunInput::Json(input),
        continued: Some(Box::new(continued)),
        halted_parts,
    }
}

/// Returns how the halted parts of a composition continue. The decision is about the first; the others stay halted.
fn decided(parts: Vec<HaltedPart>, decision: &Decision) -> Vec<ContinuedPart> {
    let others = std::iter::repeat(Decision::Approve(String::new()));
    let decisions = std::iter::once(decision.clone()).chain(others);
    let continued = parts
        .into_iter()
        .zip(decisions)
        .map(|(part, decision)| ContinuedPart { approval: Approval { id: part.id.clone(), decision }, part });
    continued.collect()
}

/// Checks that the module is the one that was halted.
fn check_unchanged(state: &HaltedState, module: &Module) -> Result<(), ErrorBody> {
    let changed = match state.module == module.manifest.name {
        true => changed(&state.hashes, module),
        false => vec!["name".to_owned()],
    };
    if changed.is_empty() { Ok(()) } else { Err(has_changed(&state.module, &changed)) }
}

/// Returns the tool calls of a run that was interrupted and starts again; none if it made none.
fn interrupted(module: &Module, log: Option<&CallLog>) -> Result<Option<Logged>, ErrorBody> {
    let text = log.map(CallLog::read_interrupted).transpose()?.unwrap_or_default();
    let Some(logged) = Logged::read(&text) else { return Ok(None) };
    let changed = changed(&logged.hashes, module);
    if !changed.is_empty() {
        return Err(has_changed(&module.manifest.name, &changed));
    }
    if logged.round.is_some() || !logged.messages.is_empty() {
        check_trust(module)?;
    }
    Ok(Some(logged))
}

/// Returns the start of a run after its tool calls. One that had continued after a confirmation has the input and the options
/// of the halted run.
fn after_calls<'a>(
    pending_approvals: &PendingApprovals,
    logged: Logged,
    input: RunInput,
    options: &'a RunOptions,
    context: RunContext,
) -> Restored<'a> {
    let Logged { messages, round, progressed, started, continued: halted, is_claimed, .. } = logged;
    // The program was killed after the entry of the decision and before the entry of the claim. If the halted run is used, another program
    // may have continued it: this one is refused, because it has not called anything yet.
    let unclaimed = halted.as_ref().filter(|_| !is_claimed);
    let claim = unclaimed.map(|(state, _)| Claim {
        halted: pending_approvals.clone(),
        id: state.id.clone(),
        owner: state.owner.clone(),
        log: context.call_log.clone(),
        decision: None,
    });
    let halted_calls = halted.as_ref().and_then(|(state, is_confirmed)| {
        state.own_round().map(|round| HaltedCalls::new(round, *is_confirmed))
    });
    let halted_calls = halted_calls.unwrap_or_default();
    let continued = Continued { messages, round, progressed, started, halted_calls, claim };
    match halted {
        Some((state, is_confirmed)) => {
            let decision = if is_confirmed { Decision::yes() } else { Decision::Deny };
            continue_from(*state, continued, &decision, options, context)
        }
        None => Restored {
            options: Cow::Borrowed(options),
            context,
            input,
            continued: Some(Box::new(continued)),
            halted_parts: Vec::new(),
        },
    }
}

/// Checks that the module may still call tools. The check comes before the claim, so that the run can continue once it may.
///
/// # Errors
/// E4007 if the trust in its directory has ended since.
fn check_trust(module: &Module) -> Result<(), ErrorBody> {
    let Some(command) = module.trust.command() else { return Ok(()) };
    let name = &module.manifest.name;
    let message = format!("the run cannot continue: the directory of `{name}` is no longer trusted");
    Err(ErrorBody::new(Code::PermissionDenied, message)
        .suggest(format!("Run `{command}`, then continue the run."))
        .for_operator("the run cannot continue: its module may no longer call tools"))
}

fn has_changed(module: &str, changed: &[String]) -> ErrorBody {
    let message = format!(
        "the run cannot continue: the {} of `{module}` changed since its tools were called",
        changed.join(" and the "),
    );
    let details = serde_json::json!({ "reason": "module_changed", "changed": changed });
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again: it then makes the calls of its current form.")
        .with_details(Value::from(details))
}

// The right to continue a halted run.

/// The right to continue a halted run, taken before its calls, so that a confirmation counts once.
pub(crate) struct Claim {
    halted: PendingApprovals,
    id: String,
    owner: Option<String>,
    log: Option<CallLog>,
    /// The entry of the decision; none if the log has it.
    decision: Option<String>,
}

impl Claim {
    /// Logs the decision, so that a run that starts again continues after it, and marks the halted run as used. The media of
    /// its input are removed with it: they must be in the log before.
    ///
    /// # Errors
    /// E4014 if it has continued already.
    pub(crate) async fn take(self) -> Result<(), ErrorBody> {
        // A run that is dropped meanwhile does not separate the entries from what they are about.
        let taken = tokio::task::spawn_blocking(move || self.take_now()).await;
        taken.unwrap_or_else(|error| Err(error::from_task(&error)))
    }

    fn take_now(&self) -> Result<(), ErrorBody> {
        if let Some(decision) = &self.decision {
            self.append(decision);
        }
        self.halted.claim(&self.id, self.owner.as_deref(), || self.append(&logged::claimed()))
    }

    fn append(&self, entry: &str) {
        if let Some(Err(error)) = self.log.as_ref().map(|log| log.append_now(entry)) {
            tracing::warn!(%error, "cannot write the log of tool calls");
        }
    }
}
