//! The run of a composed module: it starts the runs of its parts.

use std::{fmt::Debug, sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_json::{Node, Value};
use cog_media::Media;
use cog_module::{Module, PromptPart};
use cog_spec::{Chunk, Code, ErrorBody, PartProgress, Progress};

use super::PartsFuture;
use crate::{
    Caller, Cancellation, ChunkStream, ContextScope, RunContext, RunInput, RunOptions,
    approval::Continuation,
    input::CheckedInput,
    parts_state::{FinishedParts, HaltedPart, PartsState},
    prompt,
    stream::Outlet,
    tools::{HaltedRuns, RestoredParts, halt_parts},
};

/// A composed module with its parts, loaded and checked.
pub trait ComposedModule: Debug + Send + Sync {
    /// Returns whether the module's own prompt may give the answer. Otherwise no provider is needed for it.
    fn uses_own_prompt(&self) -> bool;

    /// Returns the maximum duration of the composition.
    fn timeout(&self) -> Option<Duration>;

    /// Runs the parts. Dropping the future cancels them.
    fn run(self: Arc<Self>, parts: Parts) -> PartsFuture;
}

/// How a module runs, whose prompt or manifest calls other modules.
#[derive(Debug, Clone)]
pub(crate) enum Composed {
    /// The composer finds its parts.
    Unknown,
    /// Its parts are loaded.
    Loaded(Arc<dyn ComposedModule>),
    /// Only its own prompt runs, with these texts in place of its calls and references.
    OwnPrompt(Arc<[String]>),
}

impl Composed {
    /// Returns the texts in place of the calls and references of the prompt.
    pub(crate) fn texts(&self) -> Arc<[String]> {
        match self {
            Self::OwnPrompt(texts) => Arc::clone(texts),
            Self::Unknown | Self::Loaded(_) => Arc::default(),
        }
    }
}

/// The run of one part, which the pipeline starts.
pub(crate) struct PartRun {
    pub(crate) module: Arc<Module>,
    pub(crate) input: RunInput,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) composed: Composed,
}

/// Starts the run of a part (`pipeline.rs`).
pub(crate) type StartPart = Arc<dyn Fn(PartRun) -> Result<ChunkStream, ErrorBody> + Send + Sync>;

/// What is particular about the run of one part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartOptions {
    /// The path of the part.
    pub path: String,
    /// The hash of the module, its input and its settings. The part continues an earlier run only with the same key; without one
    /// it always starts from the beginning.
    pub key: Option<String>,
    /// The maximum duration of the run.
    pub timeout: Option<Duration>,
    /// The parts of the part, if it is composed itself. A part without any is not composed again.
    pub composed: Option<Arc<dyn ComposedModule>>,
}

/// The run of a composed module, for whose parts it starts runs of their own.
pub struct Parts {
    pub(super) module: Arc<Module>,
    pub(super) input: CheckedInput,
    pub(super) options: RunOptions,
    pub(super) run_context: RunContext,
    pub(super) context: ContextScope,
    /// The maximum duration of the composition.
    pub timeout: Duration,
    /// Whether a caller reads the chunks as they arrive.
    pub is_streamed: bool,
    /// Cancels the parts that run.
    pub cancellation: Cancellation,
    pub(super) outlet: Outlet,
    pub(super) start: StartPart,
    /// Whether the run can wait for a confirmation.
    pub(super) can_halt: bool,
    /// The parts that were halted, and how they continue.
    pub(super) halted: Vec<(HaltedPart, Continuation)>,
}

impl Parts {
    /// Returns the composed module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the input of the composed module.
    pub fn input(&self) -> Node<'_> {
        self.input.node()
    }

    /// Returns the answers that the parts had when the composition was interrupted; none if the run records none.
    pub fn finished(&self) -> Option<&FinishedParts> {
        self.run_context.finished_parts.as_ref()
    }

    /// Returns the options of the composed module's run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Adds the answer that a part had in an earlier run to the context that the parts share (docs/context.md).
    pub fn restore(&self, part: &Module, envelope: &Value) {
        let member = |name: &str| envelope.get(name).map(|node| envelope.child(node));
        let data = member("data").unwrap_or_default();
        self.child_context().add(&part.manifest.name, member("_emitted_context").as_ref(), &data);
    }

    /// Returns a prompt with its placeholders filled from the input of the composed module, for the arguments of a call.
    /// Returns none if the text is too long.
    pub fn fill(&self, prompt: &[PromptPart]) -> Option<String> {
        prompt::text(prompt, &self.input)
    }

    /// Starts the run of a part.
    ///
    /// # Errors
    /// Errors that are known before the provider is called.
    pub fn start(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        part: PartOptions,
    ) -> Result<ChunkStream, ErrorBody> {
        let options = RunOptions { caller: Caller::Agent, ..self.part_options(&part)? };
        let context = RunContext {
            callers: self.callers(),
            finished_parts: self.finished().map(|parts| parts.within(&part.path)),
            ..self.part_context(&part)
        };
        let composed = part.composed.map_or_else(|| Composed::OwnPrompt(Arc::new([])), Composed::Loaded);
        (self.start)(PartRun { module: Arc::clone(module), input, options, context, composed })
    }

    /// Starts a run of the composed module's own prompt, with these texts in place of its calls and references.
    ///
    /// # Errors
    /// Errors that are known before the provider is called.
    pub fn start_own(
        &self,
        input: RunInput,
        texts: Vec<String>,
        part: PartOptions,
    ) -> Result<ChunkStream, ErrorBody> {
        let options = RunOptions { caller: self.options.caller, ..self.part_options(&part)? };
        let context = RunContext { callers: self.run_context.callers.clone(), ..self.part_context(&part) };
        let composed = Composed::OwnPrompt(texts.into());
        (self.start)(PartRun { module: Arc::clone(&self.module), input, options, context, composed })
    }

    /// Returns whether the run can wait for a confirmation. A module that is called as a tool cannot.
    pub fn can_halt(&self) -> bool {
        self.can_halt
    }

    /// Returns how a part continues that was halted; none if it was not.
    ///
    /// # Errors
    /// E4014 if the part is no longer the same call. From its beginning, its model would request anew what a person has denied or
    /// not decided yet.
    fn continuation(&self, part: &PartOptions) -> Result<Option<Continuation>, ErrorBody> {
        let mut halted = self.halted.iter().filter(|(halted, _)| halted.path == part.path).peekable();
        if halted.peek().is_none() {
            return Ok(None);
        }
        let same = halted.find(|(halted, _)| Some(&halted.key) == part.key.as_ref());
        same.map(|(_, continuation)| Some(continuation.clone())).ok_or_else(|| part_has_changed(&part.path))
    }

    /// Sends a progress chunk about a part.
    pub fn progress(&self, percent: u8, message: Option<String>, part: PartProgress) {
        if self.is_streamed {
            let stage = Some("part".to_owned());
            let part = Some(Box::new(part));
            self.outlet.push(Chunk::Progress(Progress {
                percent,
                stage,
                message,
                part,
                ..Progress::default()
            }));
        }
    }

    /// Returns the options of a part: those of the composition that do not concern its own answer, and where it continues.
    ///
    /// # Errors
    /// E4014 for a part that was halted and is no longer the same call.
    fn part_options(&self, part: &PartOptions) -> Result<RunOptions, ErrorBody> {
        let options = &self.options;
        Ok(RunOptions {
            timeout: part.timeout.or(Some(self.timeout)),
            continuation: self.continuation(part)?,
            provider: options.provider.clone(),
            model: options.model.clone(),
            strict: options.strict,
            generation: options.generation.clone(),
            on_violation: options.on_violation,
            max_attempts: options.max_attempts,
            media: options.media.clone(),
            owner: options.owner.clone(),
            delivery: options.delivery.clone(),
            trace_id: options.trace_id.clone(),
            cancellation: self.cancellation.clone(),
            risk: options.risk,
            max_tool_rounds: options.max_tool_rounds,
            max_tool_calls: options.max_tool_calls,
            budgets: options.budgets.clone(),
            tools: options.tools.clone(),
            context: Some(self.child_context()),
            ..RunOptions::default()
        })
    }

    /// Returns the context of a part's run, without the modules that lead to it.
    fn part_context(&self, part: &PartOptions) -> RunContext {
        let context = &self.run_context;
        let log = context.call_log.as_ref().zip(part.key.as_deref());
        RunContext {
            parent_span: context.parent_span.clone(),
            call_log: log.map(|(log, key)| log.within(&part.path, key)),
            stored_media: Arc::clone(&context.stored_media),
            is_folded: !self.is_streamed,
            is_tool: context.is_tool,
            is_uncached: context.is_uncached || !self.module.manifest.may_be_cached(),
            ..RunContext::default()
        }
    }

    fn child_context(&self) -> ContextScope {
        self.context.for_child(self.module.manifest.context.fork)
    }

    fn callers(&self) -> Vec<String> {
        self.run_context.callers.iter().chain([&self.module.manifest.name]).cloned().collect()
    }
}

fn part_has_changed(path: &str) -> ErrorBody {
    let message = format!(
        "the run cannot continue: the part `{path}` or its input changed since its tools were called"
    );
    let details = serde_json::json!({ "reason": "module_changed", "part": path });
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again, so that the calls of its parts are those of their current form.")
        .with_details(Value::from(details))
}

// The parts of a run that have not started.

/// The parts of a run, and what its own prompt needs after them.
pub(crate) struct PendingParts {
    start: StartPart,
    /// The parts; none once they have started.
    module: Option<Arc<dyn ComposedModule>>,
    options: RunOptions,
    context: RunContext,
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
        context: &RunContext,
        input: CheckedInput,
        halted_runs: &HaltedRuns,
    ) -> Self {
        Self {
            start,
            module: Some(module),
            options: options.clone(),
            context: context.clone(),
            input,
            media: Vec::new(),
            halted_runs: (!context.is_tool).then(|| halted_runs.clone()),
            restored: RestoredParts::default(),
        }
    }

    /// Sets where the parts of a halted composition continue.
    pub(crate) fn restored(self, restored: RestoredParts) -> Self {
        Self { restored, ..self }
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
            run_context: self.context.clone(),
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
