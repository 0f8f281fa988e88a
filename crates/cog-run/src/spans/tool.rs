//! The span of a call of a tool.

use cog_harmony::ToolCall;

use super::{SpanContext, SpanScope, ToolOutcome, ToolWork, Work, open::OpenSpan};

/// The span of a call that has not ended. Dropping it ends it.
pub(crate) struct OpenTool {
    span: OpenSpan,
    name: String,
    call_id: String,
    arguments: Option<String>,
    end: End,
    result: Option<String>,
}

enum End {
    Returned,
    Failed(String),
    Halted,
    Dropped,
}

impl OpenTool {
    /// Starts the span of a call.
    pub(crate) fn start(scope: &SpanScope, call: &ToolCall) -> Self {
        let span = scope.open();
        let arguments = span.records_content().then(|| call.arguments.clone());
        let (name, call_id) = (call.name.clone(), call.id.clone());
        Self { span, name, call_id, arguments, end: End::Dropped, result: None }
    }

    /// Returns the identity of the span, to which the run of a module belongs that is called as a tool.
    pub(crate) fn context(&self) -> &SpanContext {
        &self.span.context
    }

    /// The call waits for a confirmation.
    pub(crate) fn halt(mut self) {
        self.end = End::Halted;
    }

    /// The call has a result, or an error with this code or type.
    pub(crate) fn end(mut self, error: Option<String>, result: impl FnOnce() -> String) {
        self.end = error.map_or(End::Returned, End::Failed);
        self.result = self.span.records_content().then(result);
    }
}

impl Drop for OpenTool {
    fn drop(&mut self) {
        let outcome = match &self.end {
            End::Returned => ToolOutcome::Returned,
            End::Failed(error) => ToolOutcome::Failed(error),
            End::Halted => ToolOutcome::Halted,
            End::Dropped => ToolOutcome::Dropped,
        };
        self.span.end(Work::Tool(ToolWork {
            name: &self.name,
            call_id: &self.call_id,
            outcome,
            arguments: self.arguments.as_deref(),
            result: self.result.as_deref(),
        }));
    }
}
