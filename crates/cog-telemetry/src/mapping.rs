//! What a span is called, and its attributes: the conventions for generative AI.

use std::borrow::Cow;

use cog_run::{
    CallOutcome, RunOutcome,
    provider::Modality,
    spans::{CallWork, RunWork, Span, ToolOutcome, ToolWork, Work},
};

use crate::{
    content::{Recorded, finish_reason},
    names::{self, Attributes},
};

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work within the program.
    Internal,
    /// A request to another one.
    Client,
}

/// Returns the name of a span.
pub(crate) fn name(work: &Work<'_>) -> Cow<'static, str> {
    Cow::Owned(match work {
        Work::Run(run) => format!("{} {}", names::INVOKE_WORKFLOW, run.manifest.name),
        Work::Call(call) if call.model.is_empty() => return Cow::Borrowed(operation(call)),
        Work::Call(call) => format!("{} {}", operation(call), call.model),
        Work::Tool(tool) => format!("{} {}", names::EXECUTE_TOOL, tool.name),
        _ => return Cow::Borrowed("cog"),
    })
}

/// Returns the kind of a span.
pub(crate) fn kind(work: &Work<'_>) -> Kind {
    match work {
        Work::Call(_) => Kind::Client,
        _ => Kind::Internal,
    }
}

/// Returns the type of the error of a span; none if it succeeded.
pub(crate) fn error_type<'a>(work: &Work<'a>) -> Option<&'a str> {
    match work {
        Work::Run(run) => run_error(run),
        Work::Call(call) => call_error(call),
        Work::Tool(tool) => tool_error(tool),
        _ => None,
    }
}

/// Writes the attributes of a span.
pub(crate) fn attributes(span: &Span<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    match &span.work {
        Work::Run(run) => run_attributes(run, recorded, out),
        Work::Call(call) => call_attributes(call, recorded, out),
        Work::Tool(tool) => tool_attributes(tool, recorded, out),
        _ => {}
    }
    out.optional(names::ERROR_TYPE, error_type(&span.work));
}

// The span of a call of a tool.

/// The error of a call that its run stopped.
const CANCELLED: &str = "cancelled";

/// Returns the code or the type of the error of a call.
fn tool_error<'a>(tool: &ToolWork<'a>) -> Option<&'a str> {
    match tool.outcome {
        ToolOutcome::Failed(error) => Some(error),
        ToolOutcome::Dropped => Some(CANCELLED),
        _ => None,
    }
}

/// Writes the attributes of a call.
fn tool_attributes(tool: &ToolWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::EXECUTE_TOOL);
    out.text(names::TOOL_NAME, tool.name);
    out.text(names::TOOL_CALL_ID, tool.call_id);
    out.text(names::TOOL_TYPE, "function");
    if tool.outcome == ToolOutcome::Halted {
        out.flag(names::HALTED, true);
    }
    recorded.tool(tool, out);
}

// The span of a call to a model.

/// Returns the code of the error of a call.
pub(crate) fn call_error<'a>(call: &CallWork<'a>) -> Option<&'a str> {
    match call.outcome {
        CallOutcome::Answered => None,
        CallOutcome::Failed(code) | CallOutcome::Retried(code) => Some(code.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Returns the operation of a call.
pub(crate) fn operation(call: &CallWork<'_>) -> &'static str {
    if call.output_media.is_empty() { names::CHAT } else { "generate_content" }
}

/// Writes the attributes of a call.
fn call_attributes(call: &CallWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, operation(call));
    out.text(names::PROVIDER, names::provider(call.provider));
    out.text(names::REQUEST_MODEL, call.model);
    out.text(names::OUTPUT_TYPE, output_type(call));
    if let Some(temperature) = call.temperature {
        out.number(names::REQUEST_TEMPERATURE, temperature);
    }
    out.count(names::REQUEST_MAX_TOKENS, call.max_tokens);
    if let Some(seed) = call.seed {
        out.integer(names::REQUEST_SEED, seed);
    }
    out.optional(names::RESPONSE_MODEL, call.response_model);
    out.optional(names::RESPONSE_ID, call.response_id);
    if let Some(finish) = call.finish {
        out.texts(names::FINISH_REASONS, std::iter::once(finish_reason(finish)));
    }
    if let Some(time) = call.first_chunk {
        out.number(names::TIME_TO_FIRST_CHUNK, time.as_secs_f64());
    }
    usage(call, out);
    recorded.call(call, out);
}

fn usage(call: &CallWork<'_>, out: &mut impl Attributes) {
    let Some(usage) = call.usage else { return };
    out.count(names::INPUT_TOKENS, Some(usage.input_tokens));
    out.count(names::OUTPUT_TOKENS, Some(usage.output_tokens));
    out.count(names::CACHE_READ_TOKENS, usage.cached_input_tokens);
    out.count(names::CACHE_CREATION_TOKENS, usage.cache_write_input_tokens);
    out.count(names::REASONING_TOKENS, usage.reasoning_tokens);
    if let Some(cost) = &usage.cost {
        out.number(names::COST_AMOUNT, cost.amount.as_f64());
        out.text(names::COST_CURRENCY, cost.currency.as_str());
        // Calculated from list prices, not reported by the provider.
        out.text(names::COST_SOURCE, "local");
    }
}

fn output_type(call: &CallWork<'_>) -> &'static str {
    match call.output_media.first() {
        Some(Modality::Image) => "image",
        Some(Modality::Audio) => "speech",
        _ => "json",
    }
}

// The span of a run.

/// Returns the code of the error of a run.
pub(crate) fn run_error<'a>(run: &RunWork<'a>) -> Option<&'a str> {
    match run.end.outcome {
        RunOutcome::Answered => None,
        RunOutcome::Failed(code) => Some(code.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Writes the attributes of a run. Its tokens have names of our own: programs that read traces add up those of all spans with the
/// names of the conventions, which are those of the calls.
fn run_attributes(run: &RunWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::INVOKE_WORKFLOW);
    out.text(names::WORKFLOW, &run.manifest.name);
    out.text(names::MODULE_VERSION, &run.manifest.version);
    out.optional(names::MODULE_TIER, run.manifest.tier.map(|tier| tier.as_str()));
    if !run.session_id.is_empty() {
        out.text(names::CONVERSATION, run.session_id);
    }
    out.flag(names::OK, run.end.outcome == RunOutcome::Answered);
    out.integer(names::ATTEMPTS, i64::from(run.end.attempts));
    if run.end.repairs > 0 {
        out.count(names::REPAIRS, u64::try_from(run.end.repairs).ok());
    }
    if !run.end.fallbacks.is_empty() {
        out.texts(names::FALLBACKS, run.end.fallbacks.iter().map(|fallback| fallback.provider.as_str()));
    }
    if let Some(usage) = run.end.usage {
        out.count(names::RUN_INPUT_TOKENS, Some(usage.input_tokens));
        out.count(names::RUN_OUTPUT_TOKENS, Some(usage.output_tokens));
        if let Some(cost) = &usage.cost {
            out.number(names::RUN_COST, cost.amount.as_f64());
            out.text(names::RUN_CURRENCY, cost.currency.as_str());
        }
    }
    if let Some(meta) = run.meta {
        out.text(names::RISK, meta.risk.level().as_str());
        out.optional(names::MODEL, meta.runtime.model.as_deref());
        if meta.runtime.cache.is_some() {
            out.flag(names::CACHED, true);
        }
    }
    recorded.run(run, out);
}

/// The confidence of an answer, as an evaluation of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evaluation<'a> {
    pub(crate) value: f64,
    /// Whether the tier of the module accepts the answer; none if it has no threshold.
    pub(crate) label: Option<&'static str>,
    /// What the model says about the answer, if content is recorded.
    pub(crate) explanation: Option<&'a str>,
}

/// Returns the confidence of an answer.
pub(crate) fn evaluation<'a>(run: &RunWork<'a>, recorded: &Recorded<'_>) -> Option<Evaluation<'a>> {
    let meta = run.meta?;
    let value = meta.confidence?;
    let threshold = run.manifest.tier.and_then(|tier| tier.min_confidence());
    let label = threshold.map(|threshold| if value < threshold { "low" } else { "sufficient" });
    let explanation = Some(meta.explain.as_str()).filter(|_| recorded.is_on());
    Some(Evaluation { value, label, explanation })
}

#[cfg(test)]
mod tests;
