//! The state that all runs of a runtime share.

use std::{pin::Pin, sync::Arc, time::Duration};

use cog_json::Value;
use cog_media::Access;
use cog_module::Module;
use cog_spec::{Envelope, ErrorBody, Generation};

use crate::{
    AnswerCache, BudgetLimits, Providers, RunOptions,
    compiled::Compilations,
    composition::Composer,
    module_context::ContextStore,
    modules::Modules,
    observe::Observer,
    spans::Tracer,
    tools::{HaltedRuns, Tool, ToolLimits},
};

/// Runs a module as a tool of another one.
pub(crate) type CallModule = fn(Arc<RuntimeState>, Arc<Module>, Value, RunOptions) -> ModuleCall;

/// The future of a module that runs as a tool. An error is one before the call to the model.
pub(crate) type ModuleCall = Pin<Box<dyn Future<Output = Result<Envelope, ErrorBody>> + Send>>;

/// The state that all runs of a runtime share.
pub(crate) struct RuntimeState {
    pub(crate) providers: Providers,
    pub(crate) modules: Modules,
    pub(crate) compilations: Compilations,
    /// The maximum duration of runs without their own timeout.
    pub(crate) timeout: Duration,
    /// The media that runs may open from their input.
    pub(crate) media: Access,
    /// The parameters of the generation for runs without their own.
    pub(crate) generation: Generation,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Receives the spans of all runs.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    pub(crate) tools: Tools,
    /// The limits of each run.
    pub(crate) budget: BudgetLimits,
    /// The cache of answers.
    pub(crate) cache: Option<AnswerCache>,
    /// The context that modules have emitted.
    pub(crate) context: ContextStore,
    pub(crate) call_module: CallModule,
    /// Finds the parts of composed modules.
    pub(crate) composer: Option<Arc<dyn Composer>>,
}

/// The tools of a runtime.
#[derive(Clone, Default)]
pub(crate) struct Tools {
    pub(crate) registered: Vec<Arc<dyn Tool>>,
    /// The names of tools whose calls a person must confirm.
    pub(crate) confirm: Vec<String>,
    pub(crate) limits: ToolLimits,
    pub(crate) halted: HaltedRuns,
}
