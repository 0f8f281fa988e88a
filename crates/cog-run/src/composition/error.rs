//! The errors of a composition.

use std::time::Duration;

use cog_flow::{Callee, Finding, PathError, Plan};
use cog_json::{Node, Object, Value};
use cog_module::Module;
use cog_spec::{Code, ErrorBody};

use super::call::{Call, CallResult};

/// Why a composition ends without an answer.
#[derive(Debug, Clone)]
pub(crate) struct CompositionError {
    pub(crate) error: ErrorBody,
    /// Whether the stream may be resumed, because the same call may succeed later.
    pub(crate) is_interrupted: bool,
    /// Whether parts wait for a confirmation.
    pub(super) is_halted: bool,
    /// Whether a budget or the time limit ended it.
    pub(super) is_limit: bool,
}

impl From<ErrorBody> for CompositionError {
    fn from(error: ErrorBody) -> Self {
        Self { error, is_interrupted: false, is_halted: false, is_limit: false }
    }
}

/// Returns the error of a composition that does not pass its check: the first one of the check.
pub(super) fn from_check(module: &Module, findings: &[Finding]) -> ErrorBody {
    let name = &module.manifest.name;
    let Some(first) = findings.first() else {
        return ErrorBody::new(Code::ModuleInvalid, format!("the composition of {name} is invalid"))
            .suggest(format!("Run `cog validate {name}`."));
    };
    let mut error = first.to_error(module);
    let more = findings.len() - 1;
    if more > 0 {
        error.message += &format!(" ({more} more: `cog validate {name}`)");
    }
    error
}

/// Returns the error of a required part that has no answer (E3002). A budget belongs to the composition as a whole, so its error
/// stays as it is (E4002).
pub(super) fn part_failed(plan: &Plan, ended: &CallResult) -> CompositionError {
    let path = &ended.call.path;
    let (code, message) = ended.error().unwrap_or(("E4000", "the part returned no envelope"));
    let error = ended.envelope.get("error");
    let refused = ended.failure().filter(is_budget).and_then(|failure| failure.details);
    let is_limit = refused.is_some();
    let body = match refused {
        Some(details) => {
            let message = format!("the part `{path}` cannot run: {message}");
            ErrorBody::new(Code::RateLimited, message).with_details(details)
        }
        None => {
            let mut details = Object::from_node(
                Value::from(serde_json::json!({ "part": path, "module": ended.call.name })).node(),
            );
            details.insert("error", error.map(Node::to_value).unwrap_or_default());
            let message = format!("the part `{path}` failed: {code}: {message}");
            ErrorBody::new(Code::PartialResult, message).with_details(details.to_value())
        }
    };
    let suggestion = error.and_then(|error| error.get("suggestion")?.as_str()).map(str::to_owned);
    let suggestion = time_limit(plan, ended)
        .or(suggestion)
        .unwrap_or_else(|| "Make the part `optional`, or give it a `fallback`.".to_owned());
    let body = body.suggest(suggestion);
    let error = match error.and_then(|error| error.get("recoverable")?.as_bool()) {
        Some(recoverable) => body.with_recoverable(recoverable),
        None => body,
    };
    CompositionError { error, is_interrupted: ended.is_interrupted(), is_halted: false, is_limit }
}

/// Returns what to do about a part that its own time limit has ended.
fn time_limit(plan: &Plan, ended: &CallResult) -> Option<String> {
    let Call { callee: Callee::Part(part), timeout: Some(limit), name, .. } = &ended.call else {
        return None;
    };
    if ended.time < *limit {
        return None;
    }
    let is_declared = plan.parts.get(*part).and_then(|part| part.timeout) == Some(*limit);
    let key = match is_declared {
        true => format!("`timeout_ms` of `{name}` in `composition.requires`"),
        false => format!("`timeout` in the options of `@call:{name}`"),
    };
    Some(format!("Raise {key}, or make the part optional."))
}

/// Whether an error reports that a budget is spent, or does not know the price of a model.
fn is_budget(error: &ErrorBody) -> bool {
    let reason = error.detail("reason").and_then(Node::as_str);
    error.has_failed_with(Code::RateLimited) && matches!(reason, Some("budget" | "unknown_price"))
}

/// Returns the error of a composition whose time limit has passed: its own, or a shorter one of the run.
pub(super) fn timeout(plan: &Plan, limit: Duration) -> CompositionError {
    let key = if plan.timeout <= limit { "`composition.timeout_ms` in the manifest" } else { "--timeout" };
    let message = format!("the composition took longer than {limit:?}");
    let error =
        ErrorBody::new(Code::StreamTimeout, message).suggest(format!("Raise {key}, or use faster parts."));
    CompositionError { is_limit: true, ..error.into() }
}

/// Returns the error of a composition without a result.
pub(super) fn no_result(module: &Module) -> ErrorBody {
    let message = format!("no part of {} has a result", module.manifest.name);
    ErrorBody::new(Code::NoActionPossible, message).suggest(
        "Check the conditions of its dataflow and routing: none of them selected a part that succeeded.",
    )
}

/// Returns the error of a step that selects what cannot be passed on.
pub(super) fn mapping(module: &Module, error: &PathError) -> ErrorBody {
    let (code, help) = match error {
        PathError::TooMany(_) => {
            (Code::InputTooLarge, "Split the list, or run the module for each element with `cog batch`.")
        }
        PathError::NotAList(_) => (Code::TypeMismatch, "Pass a list, or select one with the path of `each`."),
        _ => (Code::InputTooLarge, "Select less with the JSONPath of the mapping."),
    };
    ErrorBody::new(code, format!("the mapping of {}: {error}", module.manifest.name)).suggest(help)
}

/// Returns the error of the results of a list that are larger together than this limit.
pub(super) fn list_too_large(max_bytes: usize) -> ErrorBody {
    ErrorBody::new(Code::InputTooLarge, format!("the results of `each` exceed {max_bytes} bytes"))
        .suggest("Split the list, or let the module return less for each element.")
}

/// Returns the error of arguments that are too long.
pub(super) fn arguments_too_long(name: &str) -> ErrorBody {
    ErrorBody::new(Code::InputTooLarge, format!("the arguments of `@call:{name}` are too long"))
        .suggest("Shorten the input, or use fewer placeholders in the arguments.")
}
