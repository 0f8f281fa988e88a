//! What a span is called, and its attributes: the conventions for generative AI.

use std::{borrow::Cow, sync::Arc};

use cog_run::{
    Code, RunInput, ToJson as _,
    events::{CallOutcome, CallReport, RunOutcome, RunReport, ToolOutcome, ToolReport},
    provider::{Conversation, FinishReason, Modality, Part, Role, ToolCall},
};
use serde_json::json;

use crate::names::{self, Attributes};

/// The error of a run or a call that was stopped.
const CANCELLED: &str = "cancelled";

/// What ran in a span.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SpanKind<'a> {
    /// A run of a module.
    Run(&'a RunReport<'a>),
    /// A call to a model: a request to another program.
    Call(&'a CallReport<'a>),
    /// A call of a tool.
    Tool(&'a ToolReport<'a>),
}

impl<'a> SpanKind<'a> {
    /// Returns the name of the span.
    pub(crate) fn name(self) -> Cow<'static, str> {
        Cow::Owned(match self {
            Self::Run(run) => format!("{} {}", names::INVOKE_WORKFLOW, run.module.manifest.name),
            Self::Call(call) if call.model.is_empty() => return Cow::Borrowed(operation(call)),
            Self::Call(call) => format!("{} {}", operation(call), call.model),
            Self::Tool(tool) => format!("{} {}", names::EXECUTE_TOOL, tool.name),
        })
    }

    /// Returns the type of the error; none if the span succeeded.
    pub(crate) fn error_type(self) -> Option<&'a str> {
        match self {
            Self::Run(run) => run_error(run),
            Self::Call(call) => call_error(call),
            Self::Tool(tool) => tool_error(tool),
        }
    }

    /// Writes the attributes of the span, without keys: any of them may contain what a client, a model or a vendor wrote.
    pub(crate) fn attributes(self, recorded: &Recorded<'_>, out: &mut impl Attributes) {
        let out = &mut Masked { out, redact: recorded.redact };
        match self {
            Self::Run(run) => run_attributes(run, recorded, out),
            Self::Call(call) => call_attributes(call, recorded, out),
            Self::Tool(tool) => tool_attributes(tool, recorded, out),
        }
        out.optional(names::ERROR_TYPE, self.error_type());
    }
}

/// Masks the keys in every attribute.
struct Masked<'a, A> {
    out: &'a mut A,
    redact: &'a Redact,
}

impl<A: Attributes> Attributes for Masked<'_, A> {
    fn text(&mut self, key: &str, value: &str) {
        self.out.text(key, &masked(self.redact, value));
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let values: Vec<_> = values.map(|value| masked(self.redact, value)).collect();
        self.out.texts(key, values.iter().map(|value| &**value));
    }

    fn integer(&mut self, key: &str, value: i64) {
        self.out.integer(key, value);
    }

    fn number(&mut self, key: &str, value: f64) {
        self.out.number(key, value);
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.out.flag(key, value);
    }
}

// Runs, calls to models and calls of tools.

/// Returns the code of the error of a run.
pub(crate) fn run_error<'a>(run: &RunReport<'a>) -> Option<&'a str> {
    match run.outcome {
        RunOutcome::Answered => None,
        RunOutcome::Failed(code) => Some(code.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Writes the attributes of a run. Its tokens have names of our own: programs that read traces add up all tokens with the names of
/// the conventions, which the calls have.
fn run_attributes(run: &RunReport<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::INVOKE_WORKFLOW);
    out.text(names::WORKFLOW, &run.module.manifest.name);
    out.text(names::MODULE_VERSION, &run.module.manifest.version);
    out.optional(names::MODULE_TIER, run.module.manifest.tier.map(|tier| tier.as_str()));
    if !run.session_id.is_empty() {
        out.text(names::CONVERSATION, run.session_id);
    }
    out.flag(names::OK, run.outcome == RunOutcome::Answered);
    out.integer(names::ATTEMPTS, i64::from(run.attempts));
    if run.repairs > 0 {
        out.count(names::REPAIRS, u64::try_from(run.repairs).ok());
    }
    if !run.fallbacks.is_empty() {
        out.texts(names::FALLBACKS, run.fallbacks.iter().map(|fallback| fallback.provider.as_str()));
    }
    if let Some(usage) = run.usage {
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
    /// Whether the gate of the run accepts the answer, or without a gate the tier of the module; none without a threshold.
    pub(crate) label: Option<&'static str>,
    /// What the model says about the answer, if content is recorded.
    pub(crate) explanation: Option<&'a str>,
}

/// Returns the confidence of an answer.
pub(crate) fn evaluation<'a>(run: &RunReport<'a>, recorded: &Recorded<'_>) -> Option<Evaluation<'a>> {
    let meta = run.meta?;
    let value = meta.confidence?;
    let threshold = run.module.manifest.tier.and_then(|tier| tier.min_confidence());
    let of_tier = threshold.map(|threshold| if value < threshold { "low" } else { "sufficient" });
    let of_gate = meta.runtime.gate.map(|gate| if gate.passed { "accepted" } else { "review" });
    let label = of_gate.or(of_tier);
    let explanation = Some(meta.explain.as_str()).filter(|_| recorded.is_on);
    Some(Evaluation { value, label, explanation })
}

/// Returns the code of the error of a call.
pub(crate) fn call_error<'a>(call: &CallReport<'a>) -> Option<&'a str> {
    match call.outcome {
        CallOutcome::Answered => None,
        CallOutcome::Failed(code) | CallOutcome::NotSent(code) => Some(code.as_str()),
        CallOutcome::CircuitOpen => Some(Code::ProviderUnavailable.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Returns the operation of a call.
pub(crate) fn operation(call: &CallReport<'_>) -> &'static str {
    if call.output_media.is_empty() { names::CHAT } else { "generate_content" }
}

/// Writes the attributes of a call.
fn call_attributes(call: &CallReport<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
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
    if let Some(time) = call.first_token {
        out.number(names::TIME_TO_FIRST_CHUNK, time.as_secs_f64());
    }
    usage(call, out);
    recorded.call(call, out);
}

fn usage(call: &CallReport<'_>, out: &mut impl Attributes) {
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

fn output_type(call: &CallReport<'_>) -> &'static str {
    match call.output_media.first() {
        Some(Modality::Image) => "image",
        Some(Modality::Audio) => "speech",
        _ => "json",
    }
}

/// Returns the code or the type of the error of a call.
fn tool_error<'a>(tool: &ToolReport<'a>) -> Option<&'a str> {
    match tool.outcome {
        ToolOutcome::Failed(error) => Some(error),
        ToolOutcome::Dropped => Some(CANCELLED),
        _ => None,
    }
}

/// Writes the attributes of a call.
fn tool_attributes(tool: &ToolReport<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::EXECUTE_TOOL);
    out.text(names::TOOL_NAME, tool.name);
    out.text(names::TOOL_CALL_ID, tool.call_id);
    out.text(names::TOOL_TYPE, "function");
    if tool.outcome == ToolOutcome::Halted {
        out.flag(names::HALTED, true);
    }
    recorded.tool(tool, out);
}

// Inputs, messages and answers in spans, if the operator asks for them.

/// Masks keys in a string.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The minimum length of a string that may contain a key, in bytes. Shorter keys are not masked anywhere.
const MIN_KEY: usize = 8;

/// Masks the keys in a string.
pub(crate) fn masked<'t>(redact: &Redact, text: &'t str) -> Cow<'t, str> {
    if text.len() < MIN_KEY { Cow::Borrowed(text) } else { Cow::Owned(redact(text)) }
}

/// How content is recorded.
pub(crate) struct Recorded<'a> {
    /// Masks keys.
    pub(crate) redact: &'a Redact,
    /// Whether inputs, messages and answers are recorded.
    pub(crate) is_on: bool,
    /// The maximum length of a string in bytes.
    pub(crate) limit: usize,
}

impl Recorded<'_> {
    /// Masks the keys in the name of a span. Clients and vendors choose the names of models.
    pub(crate) fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        masked(self.redact, name)
    }

    pub(crate) fn run(&self, run: &RunReport<'_>, out: &mut impl Attributes) {
        if !self.is_on {
            return;
        }
        if let Some(input) = run.input {
            let parts = vec![self.text(&input_json(input))];
            out.text(names::INPUT_MESSAGES, &json!([{ "role": "user", "parts": parts }]).to_string());
        }
        if let Some(output) = run.output {
            let parts = vec![self.text(&output.to_json())];
            let message = json!([{ "role": "assistant", "parts": parts, "finish_reason": "stop" }]);
            out.text(names::OUTPUT_MESSAGES, &message.to_string());
        }
    }

    pub(crate) fn call(&self, call: &CallReport<'_>, out: &mut impl Attributes) {
        if !self.is_on {
            return;
        }
        if let Some(input) = call.input {
            let (system, messages) = self.messages(input);
            if !system.is_empty() {
                out.text(names::SYSTEM_INSTRUCTIONS, &json!(system).to_string());
            }
            out.text(names::INPUT_MESSAGES, &json!(messages).to_string());
        }
        if let Some(output) = call.output {
            let text = (!output.is_empty()).then(|| self.text(output));
            let parts: Vec<_> =
                text.into_iter().chain(call.tool_calls.iter().map(|call| self.tool_call(call))).collect();
            let finish = call.finish.map_or("error", finish_reason);
            let message = json!([{ "role": "assistant", "parts": parts, "finish_reason": finish }]);
            out.text(names::OUTPUT_MESSAGES, &message.to_string());
        }
    }

    pub(crate) fn tool(&self, tool: &ToolReport<'_>, out: &mut impl Attributes) {
        if self.is_on {
            out.optional(names::TOOL_ARGUMENTS, tool.arguments.map(|text| self.cut(text)));
            out.optional(names::TOOL_RESULT, tool.result.map(|text| self.cut(text)));
        }
    }

    /// Returns the text of an error, if content is recorded.
    pub(crate) fn message(&self, message: Option<&str>) -> Option<String> {
        let message = message.filter(|_| self.is_on)?;
        Some((self.redact)(self.cut(message)))
    }

    /// Returns a string without keys, up to the limit.
    pub(crate) fn explanation(&self, text: &str) -> String {
        (self.redact)(self.cut(text))
    }

    /// Returns the parts of the system message, and the other messages.
    fn messages(&self, messages: &Conversation) -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
        let mut system = Vec::new();
        let mut others = Vec::new();
        for message in messages.messages() {
            let mut parts: Vec<_> = message.content.iter().map(|part| self.part(part)).collect();
            parts.extend(message.tool_calls.iter().map(|call| self.tool_call(call)));
            match (message.role, &message.tool_call_id) {
                (Role::System, _) => system.append(&mut parts),
                (Role::Tool, Some(id)) => {
                    let response = json!({ "type": "tool_call_response", "id": id, "response": self.cut(&message.text()) });
                    others.push(json!({ "role": "tool", "parts": [response] }));
                }
                (role, _) => others.push(json!({ "role": role.as_str(), "parts": parts })),
            }
        }
        (system, others)
    }

    fn text(&self, text: &str) -> serde_json::Value {
        json!({ "type": "text", "content": self.cut(text) })
    }

    /// Media are named, not contained.
    fn part(&self, part: &Part) -> serde_json::Value {
        let modality = match part {
            Part::Text(text) => return self.text(&text.text),
            Part::Image(_) => "image",
            Part::Audio(_) => "audio",
            _ => "file",
        };
        json!({ "type": "blob", "modality": modality })
    }

    fn tool_call(&self, call: &ToolCall) -> serde_json::Value {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(self.cut(&call.arguments)));
        json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
    }

    fn cut<'t>(&self, text: &'t str) -> &'t str {
        text.get(..text.floor_char_boundary(self.limit)).unwrap_or_default()
    }
}

/// Returns the input as JSON: with text and other fields, an array of both.
fn input_json(input: &RunInput) -> String {
    match input {
        RunInput::Json(value) => value.to_json(),
        RunInput::Args(text) => json!(text).to_string(),
        RunInput::ArgsWith(text, fields) => format!("[{},{}]", json!(text), fields.to_json()),
        _ => String::new(),
    }
}

/// Returns the name of a reason in the conventions.
pub(crate) fn finish_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Refusal(_) | FinishReason::ContentFilter => "content_filter",
        FinishReason::ToolCalls => "tool_call",
        FinishReason::Continue(_) => "continue",
        FinishReason::Other(reason) => reason,
    }
}

#[cfg(test)]
mod tests;
