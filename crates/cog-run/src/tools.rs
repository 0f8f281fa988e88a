//! Tools that a model may call during a run (docs/tools.md).
//!
//! [`Tool`] is implemented by host programs and by crates that connect to other systems; a module that `tools.allowed` names
//! is a tool too. [`RuntimeBuilder::tool`](crate::RuntimeBuilder::tool) registers one, and the manifest of a module decides
//! whether it may call it. A run without tools uses none of this.

mod access;
mod arguments;
mod calls;
mod claim;
mod content;
mod done;
mod error;
mod execute;
mod function;
mod halt_parts;
mod halted;
mod halted_calls;
mod info;
mod limits;
mod logged;
mod module_tool;
mod output;
mod progress;
mod restore;
mod round;
mod run;
mod run_tools;
mod schema;
mod set;
mod state;
mod tool;

pub(crate) use self::{
    claim::Claim,
    halt_parts::halt_parts,
    restore::{Continued, Restored, RestoredParts, restore},
    round::{Round, RoundEnd},
    run::{LastCall, ToolRun},
    run_tools::add,
    set::ToolSet,
};
pub use self::{
    content::CONFIRMATION_REQUIRED,
    error::ToolError,
    function::FunctionTool,
    halted::{HaltedRun, HaltedRuns},
    info::{InvalidTool, ToolEffects, ToolInfo},
    limits::ToolLimits,
    output::ToolOutput,
    run_tools::RunTools,
    tool::{Tool, ToolContext, ToolFuture},
};
pub use crate::approval::{Continuation, Decision};
