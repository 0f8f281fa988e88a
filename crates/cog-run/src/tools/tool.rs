use std::{pin::Pin, sync::Arc, time::Duration};

use cog_json::Value;

use super::{ToolError, ToolInfo, ToolOutput};
use crate::{Cancellation, RunOptions, trace_context::SpanContext};

/// The future of a call to a tool.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// A tool that a model may call: a function of the host program, a module, or a tool of another system.
///
/// [`ToolInfo::function`] creates one from a closure.
pub trait Tool: Send + Sync {
    /// Returns the name, the description, the schema of the arguments, and what a call may do.
    fn info(&self) -> &ToolInfo;

    /// Runs the tool. The arguments match its schema. Dropping the future cancels the call, which happens when its time
    /// limit has passed or the run is cancelled.
    ///
    /// The calls of a round run in the task of the run, so that a tool must not block.
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}

/// The run that calls a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The identifier of the call, to which the result refers.
    pub call_id: String,
    /// The session of the run.
    pub session_id: String,
    /// The owner of the run, if runs have owners.
    pub owner: Option<String>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// The maximum size of the result in bytes. A tool that reads its result from elsewhere stops there.
    pub max_result_bytes: usize,
    /// The cancellation of the run.
    pub cancellation: Cancellation,
    /// The span of the call, for a tool that passes the trace on. None without a tracer.
    pub span: Option<SpanContext>,
    /// The options of the run, for a module that it calls.
    pub(crate) options: Arc<RunOptions>,
}
