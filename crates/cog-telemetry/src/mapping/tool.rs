//! The span of a call of a tool.

use cog_run::spans::{ToolOutcome, ToolWork};

use crate::{attributes::Attributes, content::Recorded, names};

/// The error of a call that its run stopped.
const CANCELLED: &str = "cancelled";

/// Returns the code or the type of the error of a call.
pub(super) fn error_type<'a>(tool: &ToolWork<'a>) -> Option<&'a str> {
    match tool.outcome {
        ToolOutcome::Failed(error) => Some(error),
        ToolOutcome::Dropped => Some(CANCELLED),
        _ => None,
    }
}

/// Writes the attributes of a call.
pub(super) fn attributes(tool: &ToolWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::EXECUTE_TOOL);
    out.text(names::TOOL_NAME, tool.name);
    out.text(names::TOOL_CALL_ID, tool.call_id);
    out.text(names::TOOL_TYPE, "function");
    if tool.outcome == ToolOutcome::Halted {
        out.flag(names::HALTED, true);
    }
    recorded.tool(tool, out);
}
