//! Executes one call: finds its tool, checks its arguments, and runs it within its limits.

use std::{panic::AssertUnwindSafe, time::Duration};

use cog_harmony::{ImagePart, Message, Part, Role, ToolCall};
use cog_json::{Limits, Parser, ToJson as _, Tolerance, Value, Writer};
use cog_schema::Violation;
use cog_spec::{Chunk, Code, Progress, Usage};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::{
    ToolLimits, ToolSet, logged,
    round::{HaltedCalls, Standing},
    set::Entry,
    state::CallNote,
};
use crate::{
    call_log::CallLog,
    events::{OpenTool, RunScope},
    stream::ChunkQueue,
    tool::{Tool, ToolContext, ToolError, ToolInfo, ToolOutput},
    trace_context::SpanContext,
};

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
        let open = OpenTool::start(self.scope, call);
        let ended = match self.admit(call) {
            Ok(Some((entry, arguments))) => {
                let span = open.as_ref().and_then(OpenTool::span).or(self.scope.span.as_ref());
                self.run(call, entry.tool.as_ref(), arguments, span.cloned()).await
            }
            Ok(None) => {
                open.into_iter().for_each(OpenTool::halt);
                report_end(self.out, &call.name, "halted");
                return Ended::Halted;
            }
            Err(error) => Err(error),
        };
        let (done, failure) = match ended {
            Ok(output) => (Done::success(call, output), None),
            Err(error) => (Done::failure(call, &error), Some(error)),
        };
        if let Some(open) = open {
            let code = failure.map(|error| match error.code {
                Some(code) => code.as_str().to_owned(),
                None => error.error_type,
            });
            open.end(code, || done.message.text());
        }
        if let Some(log) = self.log {
            let _ = log.append(logged::end(&done)).await;
        }
        report_end(self.out, &call.name, &done.note.status);
        Ended::Done(Box::new(done))
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
        let limit = self.limits.call_timeout;
        let limit = tool.info().timeout.map_or(limit, |own| own.min(limit));
        let context = ToolContext { call_id: call.id.clone(), timeout: limit, span, ..self.context.clone() };
        // A panic of a tool must not end the run.
        let call = AssertUnwindSafe(async { tool.call(arguments, &context).await }).catch_unwind();
        let output = match timeout(limit, call).await {
            Ok(Ok(output)) => output?,
            Ok(Err(_)) => return Err(ToolError::with_code(Code::InternalError, "the tool panicked")),
            Err(_) => return Err(timed_out(limit)),
        };
        match size(&output) {
            size if size > self.limits.max_result_bytes => Err(too_large(size, self.limits.max_result_bytes)),
            _ => Ok(output),
        }
    }

    fn unknown(&self, name: &str) -> ToolError {
        let message = format!("there is no tool `{name}`; available: {}", self.set.names().join(", "));
        ToolError::with_code(Code::InvalidReference, message)
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

fn too_large(size: usize, limit: usize) -> ToolError {
    let message =
        format!("the result has {size} bytes; at most {limit} are allowed. Request a smaller part.");
    ToolError::with_code(Code::InputTooLarge, message)
}

// The progress chunks of tool calls.

/// The percentage of progress chunks between replies, whose number is unknown.
const PERCENT: u8 = 50;

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
        percent: PERCENT,
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
    let value = parse(text, max_bytes)?;
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

// The results of calls as the model receives them: JSON with `status` (appendix A.2.2).

/// The message of a halted call (appendix A, exercise 2).
const HALTED: &str = "This call needs a confirmation and was not executed. You MUST request an explicit \
    confirmation (type 'YES') from the user before proceeding. Do not call this tool again until the confirmation is received.";

/// The reason of a halted call.
pub const CONFIRMATION_REQUIRED: &str = "human_confirmation_required";

/// Returns the message with the result of a call.
pub(super) fn message(call: &ToolCall, content: Vec<Part>) -> Message {
    Message {
        name: Some(call.name.clone()).filter(|name| !name.is_empty()),
        tool_call_id: Some(call.id.clone()),
        ..Message::new(Role::Tool, content)
    }
}

/// Returns the content of a successful result: `{status: success, …}`, then its other parts.
pub(super) fn success(output: ToolOutput) -> Vec<Part> {
    let text = json(|w| {
        let value = output.value.as_ref();
        let object = value.filter(|value| value.is_object());
        if object.is_none_or(|object| object.get("status").is_none()) {
            w.field("status", "success");
        }
        match object {
            Some(object) => object.members().for_each(|(key, member)| {
                w.field(key, &member);
            }),
            None => {
                w.optional("result", &value);
            }
        }
    });
    [Part::text(text)].into_iter().chain(output.parts).collect()
}

/// Returns the content of a failure: `{status: error, error_type, message}`.
pub(super) fn failure(error: &ToolError) -> Vec<Part> {
    vec![Part::text(json(|w| {
        w.field("status", "error");
        w.field("error_type", &error.error_type);
        w.optional("code", &error.code.as_ref().map(|code| code.as_str().to_owned()));
        w.field("message", &error.message);
        w.optional("details", &error.details);
    }))]
}

/// Returns the content of a call that waits for a confirmation.
pub(super) fn halted() -> Vec<Part> {
    vec![Part::text(json(|w| {
        w.field("status", "halted");
        w.field("reason", CONFIRMATION_REQUIRED);
        w.field("message", HALTED);
    }))]
}

/// Returns the size of a result in bytes.
pub(super) fn size(output: &ToolOutput) -> usize {
    let value = output.value.as_ref().map_or(0, |value: &Value| value.to_json().len());
    output.parts.iter().fold(value, |size, part| size.saturating_add(size_of(part)))
}

fn size_of(part: &Part) -> usize {
    match part {
        Part::Text(part) => part.text.len(),
        Part::Image(ImagePart { url, .. }) => url.len(),
        Part::Audio(part) => part.data.len(),
        Part::File(part) => part.data.len(),
        _ => part.to_json().len(),
    }
}

fn json(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut text = String::new();
    Writer::compact(&mut text).object(members);
    text
}

/// A call that has a result.
pub(super) struct Done {
    pub(super) message: Message,
    /// The status is `success`, or the type of the error.
    pub(super) note: CallNote,
    pub(super) usage: Option<Usage>,
    pub(super) is_high_risk: bool,
}

impl Done {
    pub(super) fn success(call: &ToolCall, output: ToolOutput) -> Self {
        let usage = output.usage.clone();
        let is_high_risk = output.is_high_risk;
        let done = Self::new(call, success(output), "success".to_owned());
        Self { usage, is_high_risk, ..done }
    }

    pub(super) fn failure(call: &ToolCall, error: &ToolError) -> Self {
        let status = match &error.code {
            Some(code) => format!("{} {}", code.as_str(), error.error_type),
            None => error.error_type.clone(),
        };
        let usage = error.usage.as_deref().cloned();
        Self { usage, ..Self::new(call, failure(error), status) }
    }

    fn new(call: &ToolCall, content: Vec<Part>, status: String) -> Self {
        let note = CallNote { id: call.id.clone(), tool: call.name.clone(), status };
        Self { message: message(call, content), note, usage: None, is_high_risk: false }
    }
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

    fn text(content: &[Part]) -> serde_json::Value {
        serde_json::from_str(content[0].as_text().unwrap()).unwrap()
    }

    #[test]
    fn success_starts_with_its_status() {
        let output = ToolOutput::from(json!({ "results": [1] }));
        assert_eq!(success(output)[0].as_text().unwrap(), r#"{"status":"success","results":[1]}"#);
        assert_eq!(text(&success(json!([1]).into())), json!({ "status": "success", "result": [1] }));
        assert_eq!(text(&success("fine".into())), json!({ "status": "success", "result": "fine" }));
        assert_eq!(text(&success(ToolOutput::default())), json!({ "status": "success" }));
        let own = json!({ "status": "rendered_successfully" });
        assert_eq!(text(&success(own.clone().into())), own);
    }

    #[test]
    fn image_follows_the_text() {
        let image = Part::image_at("https://h.example/chart.png");
        let content =
            success(ToolOutput { parts: vec![image.clone()], ..ToolOutput::from(json!({ "width": 3 })) });
        assert_eq!(text(&content), json!({ "status": "success", "width": 3 }));
        assert_eq!(content[1], image);
    }

    #[test]
    fn failure_has_type_and_message() {
        let error = ToolError::new("InvalidDateRange", "The year 2023 is in the future.");
        let expected = json!({ "status": "error", "error_type": "InvalidDateRange",
            "message": "The year 2023 is in the future." });
        assert_eq!(text(&failure(&error)), expected);
        let denied = ToolError::with_code(cog_spec::Code::PermissionDenied, "no");
        let denied = text(&failure(&denied));
        assert_eq!((&denied["error_type"], &denied["code"]), (&json!("PERMISSION_DENIED"), &json!("E4007")));
    }
}
