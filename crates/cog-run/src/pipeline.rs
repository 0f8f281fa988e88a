//! The pipeline of one run: from a module and an input to chunks.
//!
//! ```text
//! Module → CheckedInput → Conversation → ModelRequest → ModelEvent* → Chunk* → Envelope
//! ```
//!
//! Each step is a function from one type to the next; `docs/flow.md` links each to its file. [`prepare`]
//! (`pipeline/prepare.rs`) has the steps up to the request, and returns every error that is known before the
//! provider is called (ruling R54). [`run`] starts the driver (`drive.rs`) with the others. Later errors are
//! chunks, and [`ChunkStream::fold`] folds the chunks into one envelope.

mod collection;
mod prepare;

use std::{borrow::Cow, sync::Arc};

use cog_json::Value;
use cog_module::Module;
use cog_spec::ErrorBody;

use self::collection::prepare_collection;
pub(crate) use self::prepare::prepare;
use crate::{
    ChunkStream, RunContext, RunInput, RunOptions,
    composition::{CompositionMode, PartRun, StartPart},
    drive::Driver,
    events::OpenRun,
    evidence::CollectedRun,
    plan::PreparedRun,
    runtime_state::RuntimeState,
    stream::ChunkQueue,
    tool::ToolInfo,
    tools::{ModuleCall, ModuleCalls},
};

/// Calls the provider, and returns the chunks of the answer as they arrive.
pub(crate) fn run(mut run: PreparedRun) -> ChunkStream {
    if let Some(open) = &mut run.open {
        open.set_session(&run.rules.session_id);
    }
    let open = run.open.take();
    let collection = run.collection.take();
    let client = run.client.clone();
    let answer = collected(run);
    let chunks = match collection {
        Some(collection) => collection.collect(answer),
        None => answer.chunks,
    };
    chunks.observed(open).shown_to(client)
}

/// Calls the provider, for a run by itself or one of a collection.
fn collected(run: PreparedRun) -> CollectedRun {
    let judgement = run.plan.judgement_slot.clone().unwrap_or_default();
    let queue = ChunkQueue::default();
    let driver = Driver::new(run.plan, run.rules, queue.clone());
    CollectedRun { chunks: ChunkStream::new(queue, driver.run()), judgement }
}

/// Runs the steps before the call, and reports a run that is refused to its listeners.
///
/// # Errors
/// The errors of [`prepare`], as the client receives them.
pub(crate) fn prepare_with_events(
    state: &Arc<RuntimeState>,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
    context: RunContext,
    mode: &CompositionMode,
) -> Result<PreparedRun, ErrorBody> {
    // Here and in the stream, every error leaves a run: also that of a part, before the run around it repeats it.
    prepare_observed(state, module, input, options, context, mode)
        .map_err(|error| options.client.shown(error))
}

fn prepare_observed(
    state: &Arc<RuntimeState>,
    module: &Arc<Module>,
    input: RunInput,
    options: &RunOptions,
    mut context: RunContext,
    mode: &CompositionMode,
) -> Result<PreparedRun, ErrorBody> {
    context.listeners = state.listeners.with(&options.events);
    let parent = context.parent_span.as_ref();
    let Some(mut open) = OpenRun::start(&context.listeners, parent, module, &input, context.is_nested) else {
        return prepare_collection(state, module, input, options, context, mode);
    };
    let mut options = Cow::Borrowed(options);
    if let Some(span) = open.span() {
        context.parent_span = Some(span.clone());
        if (span.is_sampled || context.listeners.needs().trace_id) && options.trace_id.is_none() {
            // The envelope names the trace in which its run is found.
            options.to_mut().trace_id = Some(span.trace_id());
        }
    }
    match prepare_collection(state, module, input, &options, context, mode) {
        Ok(prepared) => Ok(PreparedRun { open: Some(open), ..prepared }),
        Err(error) => {
            open.refused(&error);
            Err(error)
        }
    }
}

/// Returns what starts the runs of a composed module's parts. Each goes through the same pipeline.
fn start_part(state: &Arc<RuntimeState>) -> StartPart {
    let state = Arc::clone(state);
    Arc::new(move |part| {
        let PartRun { module, input, options, mut context, mode } = part;
        context.is_nested = true; // listeners count the composition once
        let mut prepared = prepare_with_events(&state, &module, input, &options, context, &mode)?;
        prepared.rules.is_part = true;
        Ok(run(prepared))
    })
}

/// A model calls a module as a tool: its run goes through the same pipeline.
impl ModuleCalls for RuntimeState {
    fn load(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.modules.load_name(name)
    }

    fn as_tool(&self, module: &Arc<Module>) -> ToolInfo {
        self.compilations.get(module).as_tool(module)
    }

    fn call(
        self: Arc<Self>,
        module: Arc<Module>,
        arguments: Value,
        mut options: RunOptions,
        mut context: RunContext,
    ) -> ModuleCall {
        Box::pin(async move {
            context.is_nested = true;
            options.evidence = None;
            let input = RunInput::Json(arguments);
            let prepared =
                prepare_with_events(&self, &module, input, &options, context, &CompositionMode::Find)?;
            Ok(run(prepared).fold().await)
        })
    }
}
