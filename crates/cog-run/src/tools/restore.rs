//! The start of a run: a new one, or one that continues after a confirmation.

use std::borrow::Cow;

use cog_harmony::{Message, ToolCall};
use cog_json::Value;
use cog_module::Module;
use cog_spec::{Code, ErrorBody};

use super::{
    Claim, Continuation, Decision,
    state::{HaltedState, hash},
};
use crate::{RunInput, RunOptions, context::Shared};

/// What a run starts from.
pub(crate) struct Restored<'a> {
    pub(crate) options: Cow<'a, RunOptions>,
    pub(crate) input: RunInput,
    pub(crate) continued: Option<Box<Continued>>,
}

/// A halted run that continues.
pub(crate) struct Continued {
    pub(super) state: HaltedState,
    pub(super) approval: Approval,
    pub(crate) claim: Claim,
}

/// The decision about one call with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Approval {
    Confirmed { call_id: String, arguments: String },
    Denied { call_id: String, arguments: String },
}

impl Approval {
    /// Whether the decision is about this call with its arguments.
    pub(super) fn is_for(&self, call: &ToolCall) -> bool {
        let (Self::Confirmed { call_id, arguments } | Self::Denied { call_id, arguments }) = self;
        *call_id == call.id && *arguments == hash(&call.arguments)
    }
}

impl Continued {
    /// Returns the messages of the halted run after its prompt and input.
    pub(crate) fn messages(&self) -> impl Iterator<Item = Message> {
        self.state.messages.iter().cloned()
    }
}

/// Returns the start of a run: its own input and options, or those of the halted run that it continues.
///
/// # Errors
/// E4013 and E4014 for an id that is unknown, belongs to another owner or was used, and for a module that has changed; the
/// error of the halted run if the call is not confirmed.
pub(crate) fn restore<'a>(
    shared: &Shared,
    module: &Module,
    input: RunInput,
    options: &'a RunOptions,
) -> Result<Restored<'a>, ErrorBody> {
    let Some(Continuation { id, decision }) = &options.continuation else {
        return Ok(Restored { options: Cow::Borrowed(options), input, continued: None });
    };
    let state = shared.tools.halted.open(id, options.owner.as_deref())?;
    let changed =
        if state.module == module.manifest.name { state.changed(module) } else { vec!["name".to_owned()] };
    if !changed.is_empty() {
        return Err(has_changed(&state, &changed));
    }
    let Some((call, arguments)) = state.halted_call() else { return Err(state.error()) };
    let call_id = call.id.clone();
    let approval = match decision {
        Decision::Confirm(text) if text == Decision::YES => Approval::Confirmed { call_id, arguments },
        Decision::Confirm(_) => return Err(state.error()),
        Decision::Deny => Approval::Denied { call_id, arguments },
    };
    let claim = Claim { halted: shared.tools.halted.clone(), id: id.clone() };
    Ok(Restored {
        options: Cow::Owned(merged(&state.options, options)),
        input: RunInput::Json(state.input.clone()),
        continued: Some(Box::new(Continued { state, approval, claim })),
    })
}

/// Returns the options of the halted run, where the request that continues it sets no others.
fn merged(halted: &RunOptions, now: &RunOptions) -> RunOptions {
    RunOptions {
        provider: now.provider.clone().or_else(|| halted.provider.clone()),
        model: now.model.clone().or_else(|| halted.model.clone()),
        strict: now.strict || halted.strict,
        timeout: now.timeout.or(halted.timeout),
        generation: now.generation.or(&halted.generation),
        on_violation: now.on_violation.or(halted.on_violation),
        max_attempts: now.max_attempts.or(halted.max_attempts),
        chunk_type: now.chunk_type.or(halted.chunk_type),
        buffer_size: now.buffer_size.or(halted.buffer_size),
        risk: now.risk.or(halted.risk),
        max_tool_rounds: now.max_tool_rounds.or(halted.max_tool_rounds),
        max_tool_calls: now.max_tool_calls.or(halted.max_tool_calls),
        trace_id: now.trace_id.clone().or_else(|| halted.trace_id.clone()),
        caller: halted.caller,
        continuation: None,
        ..now.clone()
    }
}

fn has_changed(state: &HaltedState, changed: &[String]) -> ErrorBody {
    let message = format!(
        "the run cannot continue: the {} of `{}` changed since it was halted",
        changed.join(" and the "),
        state.module
    );
    let details = serde_json::json!({ "reason": "module_changed", "changed": changed });
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again, so that the confirmation is about its current form.")
        .with_details(Value::from(details))
}
