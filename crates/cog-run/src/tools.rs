//! Tools that a model may call during a run (docs/tools.md).
//!
//! [`Tool`] is implemented by host programs and by crates that connect to other systems; a module that `tools.allowed` names
//! is a tool too. [`RuntimeBuilder::tool`](crate::RuntimeBuilder::tool) registers one, and the manifest of a module decides
//! whether it may call it. A run without tools uses none of this.

mod access;
mod arguments;
mod calls;
mod content;
mod execute;
mod halt_parts;
mod halted;
mod logged;
mod module_tool;
mod restore;
mod round;
mod run;
mod set;
mod settings;
mod state;

pub use self::{
    content::CONFIRMATION_REQUIRED,
    halted::{PendingApproval, PendingApprovals},
    settings::ToolLimits,
};
pub(crate) use self::{
    halt_parts::halt_parts,
    module_tool::{ModuleCall, ModuleCalls},
    restore::{Claim, Continued, ContinuedPart, Restored, restore},
    round::{Round, RoundEnd},
    run::{LastCall, ToolRun, ToolSources},
    set::ToolSet,
    settings::ToolSettings,
};
pub use crate::{
    approval::{Approval, Decision},
    tool::{
        FunctionTool, InvalidTool, Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo,
        ToolOutput,
    },
};
