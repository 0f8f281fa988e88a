//! Executes one call: finds its tool, checks its arguments, and runs it within its time.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use cog_harmony::{Part, ToolCall};
use cog_json::{Limits, Parser, Tolerance, Value};
use cog_schema::Violation;
use cog_spec::{Chunk, Code, Progress, Usage};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::{
    ToolLimits, ToolSet, logged,
    results::Done,
    round::{HaltedCalls, Standing},
    set::Entry,
    state,
};
use crate::{
    Cancellation,
    call_log::CallLog,
    call_model::{CallModel, RunModel},
    events::{OpenTool, RunScope},
    stream::ChunkQueue,
    tool::{TOOLS_PERCENT, Tool, ToolContext, ToolError, ToolInfo, ToolOutput, ToolProgress},
    trace_context::SpanContext,
};

/// The target of log events about calls, which never have their contents.
const AUDIT: &str = "cog::tools";

/// What the calls of a round share.
pub(super) struct Executor<'a> {
    pub(super) set: &'a ToolSet,
    pub(super) limits: &'a ToolLimits,
    pub(super) context: &'a ToolContext,
    pub(super) log: Option<&'a CallLog>,
    /// Whether the run is itself a call of a tool, and cannot wait for a confirmation.
    pub(super) is_tool: bool,
    /// The calls for which the run was halted.
    pub(super) halted_calls: &'a HaltedCalls,
    /// The tools with a call that was halted in this run.
    pub(super) halted_tools: &'a [String],
    pub(super) is_high_risk: bool,
    /// The model that a tool may ask.
    pub(super) model: Option<&'a RunModel>,
    pub(super) out: &'a ChunkQueue,
    pub(super) scope: &'a RunScope,
}

/// The end of a call.
pub(super) enum Ended {
    /// The result, or an error for the model.
    Done(Box<Done>),
    /// The call waits for a confirmation.
    Halted,
}

impl Executor<'_> {
    /// Executes a call. Every error becomes a result for the model.
    pub(super) async fn execute(&self, call: &ToolCall) -> Ended {
        let decision = self.halted_calls.standing(call).map(Standing::as_str);
        let open = OpenTool::start(self.scope, call, decision, || state::hash(&call.arguments));
        let ended = match self.admit(call) {
            Ok(Some((entry, arguments))) => {
                let span = open.as_ref().and_then(OpenTool::span).or(self.scope.span.as_ref());
                self.run(call, entry.tool.as_ref(), arguments, span.cloned()).await
            }
            Ok(None) => {
                self.audit(call, "halted");
                open.into_iter().for_each(OpenTool::halt);
                report_end(self.out, &call.name, "halted");
                return Ended::Halted;
            }
            Err(error) => Err(error),
        };
        let code = ended.as_ref().err().map(|error| match &error.code {
            Some(code) => code.as_str().to_owned(),
            None => error.error_type.clone(),
        });
        self.audit(call, code.as_deref().unwrap_or("success"));
        let max = self.limits.max_result_bytes;
        let done = match ended {
            Ok(output) => Done::success(call, output, max),
            Err(error) => Done::failure(call, error, max),
        };
        if let Some(open) = open {
            open.end(code, || done.message.text());
        }
        if let Some(log) = self.log {
            let _ = log.append(logged::end(&done)).await;
        }
        report_end(self.out, &call.name, &done.note.status);
        Ended::Done(Box::new(done))
    }

    /// Logs a call, and what was decided about it: who, what, with which arguments, and how it ended.
    fn audit(&self, call: &ToolCall, status: &str) {
        let decision = self.halted_calls.standing(call).map(Standing::as_str);
        tracing::info!(
            target: AUDIT,
            session = self.context.session_id,
            owner = self.context.owner,
            tool = call.name,
            call = call.id,
            arguments_sha256 = state::hash(&call.arguments),
            decision,
            status,
            "tool called"
        );
    }

    /// Returns whether a call runs while no other one does.
    pub(super) fn is_alone(&self, call: &ToolCall) -> bool {
        self.set.find(&call.name).is_some_and(Entry::is_sequential)
    }

    /// Returns the tool of a call and its arguments; none if the call needs a confirmation that it does not have.
    fn admit(&self, call: &ToolCall) -> Result<Option<(&Entry, Value)>, ToolError> {
        let standing = self.halted_calls.standing(call);
        if standing == Some(Standing::Denied) {
            return Err(denied(&call.name));
        }
        let entry = self.set.find(&call.name).ok_or_else(|| self.unknown(&call.name))?;
        if let Some(reason) = &entry.refusal {
            let message = format!("`{}` must not be called: {reason}. It was not executed.", call.name);
            return Err(ToolError::with_code(Code::PermissionDenied, message));
        }
        let arguments = read(entry.tool.info(), &call.arguments, self.limits.max_arguments_bytes)?;
        let is_halted = match standing {
            Some(standing) => standing != Standing::Confirmed,
            None => self.needs_confirmation(entry),
        };
        match is_halted {
            false => Ok(Some((entry, arguments))),
            true if self.is_tool => Err(cannot_confirm(&call.name)),
            true => Ok(None),
        }
    }

    /// Returns whether a new call needs a confirmation. A tool with a halted call keeps needing one until the run ends: the
    /// settings that halted it may differ from the settings of this process, and the model may repeat a call that was denied.
    fn needs_confirmation(&self, entry: &Entry) -> bool {
        let name = &entry.tool.info().name;
        entry.needs_confirmation(self.is_high_risk) || self.halted_tools.contains(name)
    }

    /// Runs a tool. A call that may change something is logged before, so that it is not repeated.
    async fn run(
        &self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: Value,
        span: Option<SpanContext>,
    ) -> Result<ToolOutput, ToolError> {
        // If the program is killed during the call, this entry says that it may have taken effect.
        if let Some(log) = self.log.filter(|_| tool.info().effects.changes_something()) {
            log.append(logged::start(call)).await.map_err(|_| cannot_log())?;
        }
        report_call(self.out, &call.name);
        let limit = tool.info().timeout.unwrap_or(self.limits.call_timeout);
        let model = self.model.map(|model| Arc::new(CallModel::new(model, self.limits.max_tokens)));
        let context = ToolContext {
            call_id: call.id.clone(),
            timeout: limit,
            span,
            model: model.clone(),
            progress: ToolProgress::new(&call.name, self.out),
            ..self.context.clone()
        };
        // A panic of a tool must not end the run.
        let call = AssertUnwindSafe(async { tool.call(arguments, &context).await }).catch_unwind();
        let ended = match timeout(limit, call).await {
            Ok(Ok(output)) => output,
            Ok(Err(_)) => Err(ToolError::with_code(Code::InternalError, "the tool panicked")),
            Err(_) => Err(timed_out(limit)),
        };
        with_usage(ended, model.and_then(|model| model.usage()))
    }

    fn unknown(&self, name: &str) -> ToolError {
        let message = format!("there is no tool `{name}`; available: {}", self.set.names().join(", "));
        ToolError::with_code(Code::InvalidReference, message)
    }
}

/// Adds the tokens that a call has spent on the model of the run.
fn with_usage(ended: Result<ToolOutput, ToolError>, spent: Option<Usage>) -> Result<ToolOutput, ToolError> {
    let Some(spent) = spent else { return ended };
    match ended {
        Ok(output) => {
            let usage = output.usage.map_or_else(|| spent.clone(), |usage| usage.plus(&spent));
            Ok(ToolOutput { usage: Some(usage), ..output })
        }
        Err(error) => {
            let usage = error.usage.map_or_else(|| spent.clone(), |usage| usage.plus(&spent));
            Err(ToolError { usage: Some(Box::new(usage)), ..error })
        }
    }
}

fn denied(name: &str) -> ToolError {
    let message = format!("the user denied this call of `{name}`. Do not repeat it; continue without it.");
    ToolError::with_code(Code::PermissionDenied, message)
}

fn cannot_confirm(name: &str) -> ToolError {
    let message =
        format!("`{name}` needs a confirmation, which a module that is itself a tool cannot request");
    ToolError::with_code(Code::PermissionDenied, message)
}

fn cannot_log() -> ToolError {
    let message = "the call cannot be recorded for a restart of the run, and was not executed";
    ToolError::with_code(Code::InternalError, message)
}

fn timed_out(limit: Duration) -> ToolError {
    ToolError::with_code(Code::Timeout, format!("the tool took longer than {limit:?}; its result is ignored"))
}

/// Calls a tool outside a run. Returns the result as a model receives it, and whether it is a success.
pub async fn call_once(tool: &dyn Tool, arguments: &str, limits: &ToolLimits) -> (Vec<Part>, bool) {
    let info = tool.info();
    let limit = info.timeout.unwrap_or(limits.call_timeout);
    let context = ToolContext {
        call_id: "call_1".to_owned(),
        session_id: String::new(),
        owner: None,
        timeout: limit,
        max_result_bytes: limits.max_result_bytes,
        cancellation: Cancellation::default(),
        span: None,
        model: None,
        progress: ToolProgress::default(),
    };
    let output = match read(info, arguments, limits.max_arguments_bytes) {
        Ok(arguments) => match timeout(limit, tool.call(arguments, &context)).await {
            Ok(output) => output,
            Err(_) => Err(timed_out(limit)),
        },
        Err(error) => Err(error),
    };
    let is_success = output.is_ok();
    let call = ToolCall::new("call_1", info.name.as_str(), arguments);
    let done = match output {
        Ok(output) => Done::success(&call, output, limits.max_result_bytes),
        Err(error) => Done::failure(&call, error, limits.max_result_bytes),
    };
    (done.message.content, is_success)
}

// The progress chunks of tool calls.

/// Reports that a tool is called.
fn report_call(out: &ChunkQueue, tool: &str) {
    report_progress(out, "tool_call", tool, None);
}

/// Reports the status of a result: `success`, `halted`, or the type of an error.
fn report_end(out: &ChunkQueue, tool: &str, status: &str) {
    report_progress(out, "tool_result", tool, Some(status.to_owned()));
}

fn report_progress(out: &ChunkQueue, stage: &str, tool: &str, message: Option<String>) {
    out.push(Chunk::Progress(Progress {
        percent: TOOLS_PERCENT,
        stage: Some(stage.to_owned()),
        message,
        tool: Some(tool.to_owned()),
        ..Progress::default()
    }));
}

// Reads and checks the arguments of a call, before its tool runs.

/// The maximum number of violations in a message; the details contain all of them.
const MAX_LISTED: usize = 20;

/// Reads the arguments of a call. An empty text is an empty object, as vendors send it for a tool without parameters.
///
/// # Errors
/// E1000 for a string that is not a JSON object or has duplicate keys, E1001 with every violation of the schema.
pub(super) fn read(info: &ToolInfo, text: &str, max_bytes: usize) -> Result<Value, ToolError> {
    let value = info.schema.names.restored(parse(text, max_bytes)?);
    let violations = info.schema.check(value.node());
    if violations.is_empty() {
        return Ok(value);
    }
    // Strict dialects have no optional members: a null replaces one that is omitted.
    match info.schema.without_nulls(value.node()) {
        Some(value) if info.schema.check(value.node()).is_empty() => Ok(value),
        _ => Err(violated(&violations)),
    }
}

/// Returns arguments as a provider accepts them: the text of a JSON object.
pub(super) fn for_message(text: &str) -> &str {
    let is_object = Value::parse(text).is_ok_and(|value| value.is_object());
    if is_object { text } else { "{}" }
}

fn parse(text: &str, max_bytes: usize) -> Result<Value, ToolError> {
    if text.trim().is_empty() {
        return Value::parse("{}").map_err(|error| not_json(&error.to_string()));
    }
    if text.len() > max_bytes {
        let message = format!("the arguments have {} bytes; at most {max_bytes} are allowed", text.len());
        return Err(ToolError::with_code(Code::InputTooLarge, message));
    }
    let mut parser = Parser::strict(Limits::default());
    let pushed = parser.push(text.as_bytes(), &mut |_| {});
    let read = pushed.and_then(|()| parser.finish(&mut |_| {}));
    read.map_err(|error| not_json(&error.to_string()))?;
    if parser.deviations().iter().any(|found| found.rule == Tolerance::DuplicateKey) {
        return Err(not_json("a key occurs twice in one object"));
    }
    let value = parser.into_value().unwrap_or_default();
    if value.is_object() { Ok(value) } else { Err(not_json("they are not an object")) }
}

fn not_json(reason: &str) -> ToolError {
    let message = format!(
        "the arguments must be one JSON object: {reason}. Nothing was executed; send the call again."
    );
    ToolError::with_code(Code::ParseError, message)
}

fn violated(violations: &[Violation]) -> ToolError {
    let list = violations.iter().take(MAX_LISTED);
    let list: Vec<_> = list.map(|found| format!("{}: {}", found.path, found.message)).collect();
    let more = if violations.len() > MAX_LISTED { "; …" } else { "" };
    let message = format!("the arguments violate the schema of the tool: {}{more}", list.join("; "));
    let details = serde_json::json!({ "violations": violations });
    ToolError { details: Some(Value::from(details)), ..ToolError::with_code(Code::InvalidInput, message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info() -> ToolInfo {
        let parameters = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": { "a": { "type": "integer" }, "b": { "type": "string" } },
        });
        ToolInfo::new("t", "Does it.", &Value::from(parameters)).unwrap()
    }

    fn error(text: &str) -> ToolError {
        read(&info(), text, 1000).unwrap_err()
    }

    #[test]
    fn every_violation_is_reported() {
        let error = error(r#"{"b": 1, "c": 2}"#);
        assert_eq!(error.code, Some(Code::InvalidInput.into()));
        let details = error.details.unwrap().to_serde();
        let mut paths: Vec<_> =
            details["violations"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
        paths.sort_by_key(|path| path.to_string());
        assert_eq!(paths, [&json!("arguments.a"), &json!("arguments.b"), &json!("arguments.c")]);
    }

    #[test]
    fn null_of_an_optional_member_is_removed() {
        assert_eq!(read(&info(), r#"{"a": 1, "b": null}"#, 1000).unwrap().to_serde(), json!({ "a": 1 }));
        assert!(read(&info(), r#"{"a": null}"#, 1000).is_err());
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let parameters = Value::parse(
            r#"{"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {}}"#,
        );
        let info = ToolInfo::new("t", "Does it.", &parameters.unwrap()).unwrap();
        let numbers =
            r#""id":12345678901234567890123,"d":3.14159265358979323846,"amount":[100.00,{"x":-0.0}]"#;
        let read = read(&info, &format!(r#"{{"b":null,{numbers}}}"#), 1000).unwrap();
        assert_eq!(read.to_string(), format!("{{{numbers}}}"));
    }

    #[test]
    fn rejects_texts_that_are_not_one_object() {
        for text in [r#"{"a": 1"#, "[1]", "7", r#"{"a": 1} {"a": 2}"#, r#"{"a": 1, "a": 2}"#, "{'a': 1}"] {
            assert_eq!(error(text).code, Some(Code::ParseError.into()), "{text}");
        }
        let long = format!(r#"{{"a": 1, "b": "{}"}}"#, "x".repeat(1000));
        assert_eq!(error(&long).code, Some(Code::InputTooLarge.into()));
    }

    #[test]
    fn empty_text_is_an_empty_object() {
        let info = ToolInfo::new("t", "Does it.", &Value::parse("{}").unwrap()).unwrap();
        assert_eq!(read(&info, "", 1000).unwrap().to_serde(), json!({}));
        assert_eq!(
            (for_message(""), for_message(r#"{"a""#), for_message(r#"{"a":1}"#)),
            ("{}", "{}", r#"{"a":1}"#)
        );
    }
}
