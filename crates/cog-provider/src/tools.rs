//! The tools of a model request.

use cog_harmony::{ToolChoice, ToolDefinition};

/// The tools that a request offers to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRequest {
    /// The tools, in a fixed order, so that the provider can cache them.
    pub definitions: Vec<ToolDefinition>,
    /// Which of them the model may call.
    pub choice: ToolChoice,
    /// Whether the model may call several tools in one reply.
    pub parallel: bool,
}
