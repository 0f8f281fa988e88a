//! Executes one call: finds its tool, checks its arguments, and runs it within its limits.

use std::{panic::AssertUnwindSafe, time::Duration};

use cog_harmony::ToolCall;
use cog_json::Value;
use cog_spec::{Chunk, Code, Progress};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::{
    ToolLimits, ToolSet, arguments,
    content::{self, Done},
    logged,
    round::{HaltedCalls, Standing},
    set::Entry,
};
use crate::{
    call_log::CallLog,
    events::{OpenTool, RunScope},
    stream::ChunkQueue,
    tool::{Tool, ToolContext, ToolError, ToolOutput},
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
        let arguments = arguments::read(entry.tool.info(), &call.arguments, self.limits.max_arguments_bytes)?;
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
        match content::size(&output) {
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
