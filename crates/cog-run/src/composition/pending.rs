//! The parts of a run that have not started.

use std::{sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_media::Media;
use cog_module::Module;
use cog_spec::ErrorBody;

use super::{
    answer::PartsFuture,
    halted::PartsState,
    parts::{ComposedModule, Parts, StartPart},
};
use crate::{
    Cancellation, RunOptions,
    input::CheckedInput,
    stream::Outlet,
    tools::{HaltedRuns, RestoredParts, halt_parts},
};

/// The parts of a run, and what its own prompt needs after them.
pub(crate) struct PendingParts {
    start: StartPart,
    /// The parts; none once they have started.
    module: Option<Arc<dyn ComposedModule>>,
    options: RunOptions,
    pub(crate) input: CheckedInput,
    /// The media of the input as parts of a message.
    pub(crate) media: Vec<Part>,
    /// Where the run is stored if a part waits for a confirmation; none if it cannot wait.
    halted_runs: Option<HaltedRuns>,
    restored: RestoredParts,
}

impl PendingParts {
    pub(crate) fn new(
        start: StartPart,
        module: Arc<dyn ComposedModule>,
        options: &RunOptions,
        input: CheckedInput,
        halted_runs: Option<HaltedRuns>,
        restored: RestoredParts,
    ) -> Self {
        let (module, options, media) = (Some(module), options.clone(), Vec::new());
        Self { start, module, options, input, media, halted_runs, restored }
    }

    /// Returns whether the module's own prompt may give the answer.
    pub(crate) fn uses_own_prompt(&self) -> bool {
        self.module.as_ref().is_none_or(|module| module.uses_own_prompt())
    }

    /// Starts the parts, the first time that it is called.
    pub(crate) fn start(
        &mut self,
        module: &Arc<Module>,
        timeout: Duration,
        is_streamed: bool,
        outlet: &Outlet,
    ) -> Option<PartsFuture> {
        let composed = self.module.take()?;
        // The parts receive what the module accepts, as its own model would.
        let outer = self.options.context.clone().unwrap_or_default();
        Some(composed.run(Parts {
            context: outer.with_given(self.input.context()),
            module: Arc::clone(module),
            input: self.input.clone(),
            options: self.options.clone(),
            timeout,
            is_streamed,
            cancellation: Cancellation::new(),
            outlet: outlet.clone(),
            start: Arc::clone(&self.start),
            can_halt: self.halted_runs.is_some(),
            halted: std::mem::take(&mut self.restored.halted),
        }))
    }

    /// Stores the run, whose parts wait for a confirmation, and returns the error that ends it. Returns none if it cannot wait.
    /// `media` are those of the input whose sources can expire.
    pub(crate) async fn halt(
        &self,
        module: &Arc<Module>,
        state: PartsState,
        media: Vec<(String, Media)>,
    ) -> Option<ErrorBody> {
        let runs = self.halted_runs.as_ref()?;
        Some(halt_parts(runs, module, (&self.input.original(), media), &self.options, state).await)
    }
}
