//! The parts of a run that have not started.

use std::{sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_module::Module;
use cog_spec::ErrorBody;

use super::{
    answer::PartsFuture,
    halted::{HaltedPart, PartsState},
    parts::{ComposedModule, Parts, StartPart},
};
use crate::{
    ContextScope, RunOptions,
    input::CheckedInput,
    stream::Outlet,
    tools::{Continuation, HaltedRuns, halt_parts},
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
    /// The parts that were halted, and how they continue.
    halted: Vec<(HaltedPart, Continuation)>,
}

impl PendingParts {
    pub(crate) fn new(
        start: StartPart,
        module: Arc<dyn ComposedModule>,
        options: &RunOptions,
        input: CheckedInput,
        halted_runs: Option<HaltedRuns>,
        halted: Vec<(HaltedPart, Continuation)>,
    ) -> Self {
        let (module, options, media) = (Some(module), options.clone(), Vec::new());
        Self { start, module, options, input, media, halted_runs, halted }
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
        let own = || ContextScope::new(self.input.given_context());
        Some(composed.run(Parts {
            context: self.options.context.clone().unwrap_or_else(own),
            module: Arc::clone(module),
            input: self.input.clone(),
            options: self.options.clone(),
            timeout,
            is_streamed,
            outlet: outlet.clone(),
            start: Arc::clone(&self.start),
            can_halt: self.halted_runs.is_some(),
            halted: std::mem::take(&mut self.halted),
        }))
    }

    /// Stores the run, whose parts wait for a confirmation, and returns the error that ends it. Returns none if it cannot wait.
    pub(crate) async fn halt(&self, module: &Arc<Module>, state: PartsState) -> Option<ErrorBody> {
        let runs = self.halted_runs.as_ref()?;
        Some(halt_parts(runs, module, &self.input.original(), &self.options, state).await)
    }
}
