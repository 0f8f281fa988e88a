//! What all runs of a runtime share.

use std::time::Duration;

use cog_media::Access;
use cog_spec::Generation;

use crate::{
    AnswerCache, BudgetLimits, Providers, compiled::Compilations, composition::Compositions,
    confidence::CalibrationStore, events::Listeners, module_context::ContextStore, modules::Modules,
    tools::ToolSettings,
};

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
    /// The listeners of all runs.
    pub(crate) listeners: Listeners,
    pub(crate) tools: ToolSettings,
    /// The limits of each run.
    pub(crate) budget: BudgetLimits,
    /// The cache of answers.
    pub(crate) cache: Option<AnswerCache>,
    /// What the confidence of each model is worth.
    pub(crate) calibrations: CalibrationStore,
    /// The context that modules have emitted.
    pub(crate) context: ContextStore,
    pub(crate) compositions: Compositions,
}
