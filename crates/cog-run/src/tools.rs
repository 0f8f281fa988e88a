//! Tools that a model may call during a run (docs/tools.md).
//!
//! [`Tool`] is implemented by host programs and by crates that connect to other systems; a module that `tools.allowed` names
//! is a tool too. [`RuntimeBuilder::tool`](crate::RuntimeBuilder::tool) registers one, and the manifest of a module decides
//! whether it may call it. A run without tools uses none of this.

mod execute;
mod halted;
mod logged;
mod restore;
mod results;
mod round;
mod run;
mod set;
mod state;

use std::{sync::Arc, time::Duration};

pub use self::{
    execute::call_once,
    halted::{PendingApproval, PendingApprovals},
    results::{CONFIRMATION_REQUIRED, media_type_of_base64},
};
pub(crate) use self::{
    halted::halt_parts,
    restore::{Claim, Continued, ContinuedPart, Restored, restore},
    results::fit_media,
    round::{Round, RoundEnd},
    run::{LastCall, ToolRun, ToolSources},
    set::{ModuleCall, ModuleCalls, ToolSet, VendorTools},
};
use crate::tool::ToolList;
pub use crate::{
    call_model::{CallModel, ModelAnswer},
    options::{Approval, Decision},
    tool::{
        InvalidTool, Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo, ToolOutput,
        ToolProgress, ToolSource, begins_like, matches,
    },
};

// What the operator sets for the tools of a runtime.

/// The tools of a runtime.
#[derive(Clone, Default)]
pub(crate) struct ToolSettings {
    pub(crate) registered: ToolList,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    /// The names of tools whose calls a person must confirm, or patterns.
    pub(crate) confirm: Vec<String>,
    pub(crate) limits: ToolLimits,
    pub(crate) halted: PendingApprovals,
}

/// The limits of tool calls in one run. The operator sets them; a request may only lower them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// The maximum number of rounds: replies of the model that request calls. 10 by default.
    pub max_rounds: u32,
    /// The maximum number of calls. 50 by default.
    pub max_calls: u32,
    /// The maximum number of calls that run at the same time. 8 by default.
    pub max_parallel: usize,
    /// The time limit of one call. 60 s by default.
    pub call_timeout: Duration,
    /// The maximum size of a result in bytes, with its media. 1 MiB by default.
    pub max_result_bytes: usize,
    /// The maximum size of the arguments of a call in bytes. 1 MiB by default.
    pub max_arguments_bytes: usize,
    /// The tokens of a run after which no further call runs. Unlimited by default. A run whose tokens are unknown ends
    /// before its first call.
    pub max_tokens: Option<u64>,
    /// The cost of a run after which no further call runs, in the currency of the price list. Unlimited by default. A run
    /// of a model whose price is unknown is refused.
    pub max_cost: Option<f64>,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            max_calls: 50,
            max_parallel: 8,
            call_timeout: Duration::from_secs(60),
            max_result_bytes: 1 << 20,
            max_arguments_bytes: 1 << 20,
            max_tokens: None,
            max_cost: None,
        }
    }
}

impl ToolLimits {
    /// Returns the limits of a run whose request lowers the number of rounds and calls.
    pub(crate) fn lowered(self, rounds: Option<u32>, calls: Option<u32>) -> Self {
        Self {
            max_rounds: rounds.map_or(self.max_rounds, |rounds| rounds.min(self.max_rounds)),
            max_calls: calls.map_or(self.max_calls, |calls| calls.min(self.max_calls)),
            ..self
        }
    }
}
