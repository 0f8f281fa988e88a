//! The composition of a run whose parts have not started.

use std::{sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_media::Media;
use cog_module::Module;
use cog_spec::ErrorBody;

use super::{Composition, CompositionMode, execution::Execution, part::Context};
use crate::{
    Cancellation, ChunkStream, RunContext, RunInput, RunOptions,
    input::CheckedInput,
    parts_state::CompositionState,
    stream::ChunkQueue,
    tools::{ContinuedPart, PendingApprovals, halt_parts},
};

/// The run of one part, which the pipeline starts.
pub(crate) struct PartRun {
    pub(crate) module: Arc<Module>,
    pub(crate) input: RunInput,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) mode: CompositionMode,
}

/// Starts the run of a part. The pipeline passes it, because this module lies below it.
pub(crate) type StartPart = Arc<dyn Fn(PartRun) -> Result<ChunkStream, ErrorBody> + Send + Sync>;

/// The composition of a run, and what the module's own prompt needs after its parts.
pub(crate) struct PendingComposition {
    /// The composition; none once its parts have started.
    pub(crate) composition: Option<Arc<Composition>>,
    pub(crate) module: Arc<Module>,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) input: CheckedInput,
    /// The media of the input as parts of a message.
    pub(crate) media: Vec<Part>,
    /// The parts that were halted, and how they continue.
    pub(crate) halted_parts: Vec<ContinuedPart>,
    /// Where the run is stored if a part waits for a confirmation; none if it cannot wait.
    pub(crate) pending_approvals: Option<PendingApprovals>,
    pub(crate) start_part: StartPart,
}

impl PendingComposition {
    /// Returns whether the module's own prompt may give the answer.
    pub(crate) fn uses_own_prompt(&self) -> bool {
        self.composition.as_ref().is_none_or(|composition| composition.uses_own_prompt())
    }

    /// Returns the execution of the parts, the first time that it is called.
    pub(crate) fn start(
        &mut self,
        timeout: Duration,
        is_streamed: bool,
        queue: &ChunkQueue,
    ) -> Option<Box<Execution>> {
        let composition = self.composition.take()?;
        let slots = composition.slots();
        // The parts receive what the module accepts, as its own model would.
        let scope = self.options.context.clone().unwrap_or_default().with_given(self.input.context());
        Some(Box::new(Execution::new(Context {
            composition,
            module: Arc::clone(&self.module),
            input: self.input.clone(),
            options: self.options.clone(),
            context: self.context.clone(),
            scope,
            timeout,
            is_streamed,
            cancellation: Cancellation::new(),
            queue: queue.clone(),
            percent: 0.into(),
            slots,
            can_halt: self.pending_approvals.is_some(),
            halted: std::mem::take(&mut self.halted_parts),
            start_part: Arc::clone(&self.start_part),
        })))
    }

    /// Stores the run, whose parts wait for a confirmation, and returns the error that ends it. Returns none if it cannot wait.
    /// `media` are the media of the input whose sources can expire.
    pub(crate) async fn halt(
        &self,
        state: CompositionState,
        media: Vec<(String, Media)>,
    ) -> Option<ErrorBody> {
        let runs = self.pending_approvals.as_ref()?;
        let input = self.input.original();
        Some(halt_parts(runs, &self.module, &input, media, &self.options, state).await)
    }
}
