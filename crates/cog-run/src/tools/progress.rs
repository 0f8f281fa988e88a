//! The progress chunks of tool calls.

use cog_spec::{Chunk, Progress};

use crate::stream::Outlet;

/// The percentage of progress chunks between replies, whose number is unknown.
const PERCENT: u8 = 50;

/// Reports that a tool is called.
pub(super) fn called(out: &Outlet, tool: &str) {
    report(out, "tool_call", tool, None);
}

/// Reports the status of a result: `success`, `halted`, or the type of an error.
pub(super) fn ended(out: &Outlet, tool: &str, status: &str) {
    report(out, "tool_result", tool, Some(status.to_owned()));
}

fn report(out: &Outlet, stage: &str, tool: &str, message: Option<String>) {
    out.push(Chunk::Progress(Progress {
        percent: PERCENT,
        stage: Some(stage.to_owned()),
        message,
        tool: Some(tool.to_owned()),
        ..Progress::default()
    }));
}
