//! The interface of composed modules: modules whose parts run before their own answer (docs/spec/composition.md).
//!
//! The runtime runs a composed module like any other. A [`Composer`] finds and checks its parts, and the
//! [`ComposedModule`] that it returns runs them. The crate `cog-flow` implements both.

mod finished;
mod provider;

use std::{fmt::Debug, pin::Pin, sync::Arc, time::Duration};

pub use cog_answer::PartsSummary;
use cog_harmony::Part;
use cog_json::{Node, Value};
use cog_module::{Module, PromptPart};
use cog_spec::{Chunk, Code, ErrorBody, PartProgress, Progress};

pub use self::finished::FinishedParts;
pub(crate) use self::provider::{COMPOSITION, PartsReply};
use crate::{
    Caller, ChunkStream, ContextScope, RunInput, RunOptions, Runtime, context::Shared, input::CheckedInput,
    pipeline, stream::Outlet,
};

/// Finds the parts of composed modules. [`RuntimeBuilder::composer`](crate::RuntimeBuilder::composer) registers one.
pub trait Composer: Send + Sync {
    /// Loads the parts of a module with their own parts, and checks their graph. Returns none for a module without parts.
    ///
    /// # Errors
    /// E4004 for a cycle, E4005 for a graph that is too deep, E4006 for a missing part, E4008 for an invalid composition.
    fn compose(
        &self,
        runtime: &Runtime,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody>;
}

/// A composed module with its parts, loaded and checked.
pub trait ComposedModule: Debug + Send + Sync {
    /// Returns whether the module's own prompt may give the answer. Otherwise no provider is needed for it.
    fn uses_own_prompt(&self) -> bool;

    /// Returns the maximum duration of the composition.
    fn timeout(&self) -> Option<Duration>;

    /// Runs the parts. Dropping the future cancels them.
    fn run(self: Arc<Self>, parts: Parts) -> PartsFuture;
}

/// The future of a composition: the reports about its parts, and the answer or the error.
pub type PartsFuture = Pin<Box<dyn Future<Output = (PartsSummary, Result<PartsAnswer, PartsError>)> + Send>>;

/// The answer of the parts.
#[derive(Debug, Clone, PartialEq)]
pub enum PartsAnswer {
    /// The module's own prompt gives the answer, with these texts in place of its `@call:` and `{{…}}`, in their order.
    Texts(Vec<String>),
    /// The answer: an envelope, which is checked like the reply of a model.
    Envelope(String),
}

/// The error of a composition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartsError {
    /// The error.
    pub error: ErrorBody,
    /// The answers of the parts that are done.
    pub partial_data: Option<Value>,
    /// Whether the same parts may succeed when the stream is resumed.
    pub is_interrupted: bool,
}

/// The run of a composed module, for whose parts it starts runs of their own.
pub struct Parts {
    shared: Arc<Shared>,
    module: Arc<Module>,
    input: CheckedInput,
    options: RunOptions,
    context: ContextScope,
    /// The maximum duration of the composition.
    pub timeout: Duration,
    /// Whether a caller reads the chunks as they arrive.
    pub is_streamed: bool,
    outlet: Outlet,
}

/// How a module runs, whose prompt or manifest calls other modules.
#[derive(Debug, Clone, Default)]
pub(crate) enum Composed {
    /// The composer finds its parts.
    #[default]
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

/// What is particular about the run of one part.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartOptions {
    /// The maximum duration of the run.
    pub timeout: Option<Duration>,
    /// The parts of the part, if it is composed itself. A part without any is not composed again.
    pub composed: Option<Arc<dyn ComposedModule>>,
    /// The answers of its own parts from an earlier, interrupted run.
    pub finished: Option<FinishedParts>,
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

    /// Returns the options of the composed module's run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the context that the parts share (docs/context.md). A run of a part reads from it and adds to it; the answer of an
    /// earlier run is added with [`ContextScope::add`].
    pub fn context(&self) -> &ContextScope {
        &self.context
    }

    /// Returns a prompt with its placeholders filled from the input of the composed module, for the arguments of a call.
    /// Returns none if the text is too long.
    pub fn fill(&self, prompt: &[PromptPart]) -> Option<String> {
        crate::prompt::text(prompt, &self.input)
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
        let composed = part.composed.map_or_else(|| Composed::OwnPrompt(Arc::new([])), Composed::Loaded);
        self.begin(
            module,
            input,
            RunOptions {
                caller: Caller::Agent,
                callers: self.callers(),
                composed,
                timeout: part.timeout.or(Some(self.timeout)),
                finished_parts: part.finished,
                ..self.part_options()
            },
        )
    }

    /// Starts a run of the composed module's own prompt, with these texts in place of its calls and references.
    ///
    /// # Errors
    /// Errors that are known before the provider is called.
    pub fn start_own(
        &self,
        input: RunInput,
        texts: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ChunkStream, ErrorBody> {
        self.begin(
            &self.module,
            input,
            RunOptions {
                caller: self.options.caller,
                callers: self.options.callers.clone(),
                composed: Composed::OwnPrompt(texts.into()),
                timeout: timeout.or(Some(self.timeout)),
                ..self.part_options()
            },
        )
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

    fn begin(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<ChunkStream, ErrorBody> {
        let mut run = pipeline::prepare(&self.shared, module, input, &options)?;
        run.rules.is_streamed = self.is_streamed;
        Ok(pipeline::run(run))
    }

    /// Returns the options that all parts share: those of the composition that do not concern its own answer.
    fn part_options(&self) -> RunOptions {
        let options = &self.options;
        RunOptions {
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
            cancellation: options.cancellation.clone(),
            risk: options.risk,
            max_tool_rounds: options.max_tool_rounds,
            max_tool_calls: options.max_tool_calls,
            context: Some(self.context.for_child(self.module.manifest.context.fork)),
            ..RunOptions::default()
        }
    }

    fn callers(&self) -> Vec<String> {
        self.options.callers.iter().chain([&self.module.manifest.name]).cloned().collect()
    }
}

/// The parts of a run, and what its own prompt needs after them.
pub(crate) struct PendingParts {
    shared: Arc<Shared>,
    /// The parts; none once they have started.
    module: Option<Arc<dyn ComposedModule>>,
    options: RunOptions,
    pub(crate) input: CheckedInput,
    /// The media of the input as parts of a message.
    pub(crate) media: Vec<Part>,
}

impl PendingParts {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        module: Arc<dyn ComposedModule>,
        options: &RunOptions,
        input: CheckedInput,
    ) -> Self {
        let (shared, options) = (Arc::clone(shared), options.clone());
        Self { shared, module: Some(module), options, input, media: Vec::new() }
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
            shared: Arc::clone(&self.shared),
            module: Arc::clone(module),
            input: self.input.clone(),
            options: self.options.clone(),
            timeout,
            is_streamed,
            outlet: outlet.clone(),
        }))
    }
}

/// Returns the parts of a module; none for a module that calls no other.
///
/// # Errors
/// Those of [`Composer::compose`], and E4008 if the runtime has no composer.
pub(crate) fn composed(
    shared: &Arc<Shared>,
    module: &Arc<Module>,
    options: &RunOptions,
) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
    match &options.composed {
        Composed::Loaded(composed) => Ok(Some(Arc::clone(composed))),
        Composed::OwnPrompt(_) => Ok(None),
        Composed::Unknown => match calls_modules(module) {
            None => Ok(None),
            Some(what) => match &shared.composer {
                Some(composer) => composer.compose(&Runtime::from_shared(shared), module),
                None => Err(unsupported(module, &what)),
            },
        },
    }
}

/// Returns how a module calls other modules; none if it does not.
fn calls_modules(module: &Module) -> Option<String> {
    let call = module.prompt.parts().iter().find_map(|part| match part {
        PromptPart::Call(call) => Some(call.raw.clone()),
        PromptPart::Reference { raw, .. } => Some(raw.clone()),
        _ => None,
    });
    call.or_else(|| module.manifest.composition.as_ref().map(|_| "composition".to_owned()))
}

fn unsupported(module: &Module, what: &str) -> ErrorBody {
    let message = format!("{} calls other modules ({what})", module.manifest.name);
    ErrorBody::new(Code::ModuleInvalid, message)
        .suggest("This program does not support composition; run the modules separately, or use `cog`.")
}
