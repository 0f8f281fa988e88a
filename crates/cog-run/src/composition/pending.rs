//! The parts of a run that have not started.

use std::{sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_module::Module;

use super::{
    answer::PartsFuture,
    parts::{ComposedModule, Parts, StartPart},
};
use crate::{ContextScope, RunOptions, input::CheckedInput, stream::Outlet};

/// The parts of a run, and what its own prompt needs after them.
pub(crate) struct PendingParts {
    start: StartPart,
    /// The parts; none once they have started.
    module: Option<Arc<dyn ComposedModule>>,
    options: RunOptions,
    pub(crate) input: CheckedInput,
    /// The media of the input as parts of a message.
    pub(crate) media: Vec<Part>,
}

impl PendingParts {
    pub(crate) fn new(
        start: StartPart,
        module: Arc<dyn ComposedModule>,
        options: &RunOptions,
        input: CheckedInput,
    ) -> Self {
        Self { start, module: Some(module), options: options.clone(), input, media: Vec::new() }
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
        }))
    }
}
