//! A call that has a result.

use cog_harmony::{Message, Part, ToolCall};
use cog_spec::Usage;

use super::{content, state::CallNote};
use crate::tool::{ToolError, ToolOutput};

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
        let (usage, is_high_risk) = (output.usage.clone(), output.is_high_risk);
        let done = Self::new(call, content::success(output), "success".to_owned());
        Self { usage, is_high_risk, ..done }
    }

    pub(super) fn failure(call: &ToolCall, error: &ToolError) -> Self {
        let status = match &error.code {
            Some(code) => format!("{} {}", code.as_str(), error.error_type),
            None => error.error_type.clone(),
        };
        let usage = error.usage.as_deref().cloned();
        Self { usage, ..Self::new(call, content::failure(error), status) }
    }

    fn new(call: &ToolCall, content: Vec<Part>, status: String) -> Self {
        let note = CallNote { id: call.id.clone(), tool: call.name.clone(), status };
        Self { message: content::message(call, content), note, usage: None, is_high_risk: false }
    }
}
