//! The interface of composed modules: modules whose parts run before their own answer (docs/spec/composition.md).
//!
//! The runtime runs a composed module like any other. A [`Composer`] finds and checks its parts, and the
//! [`ComposedModule`] that it returns runs them. The crate `cog-flow` implements both.
//!
//! ```text
//! find → ComposedModule → PendingParts → Parts → the run of each part (pipeline.rs) → PartsAnswer
//! ```

mod answer;
mod call;
mod error;
mod execution;
mod flows;
mod part;
mod parts;
mod schedule;
mod steps;

use std::{any::Any, pin::Pin, sync::Arc};

pub use cog_answer::PartsSummary;
use cog_json::Value;
use cog_module::{Module, PromptPart};
use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderInfo};
use cog_spec::{Code, ErrorBody, FinishReason, Modality, ModelEvent};
pub use cog_spec::{PartAnswer, PartError, PartProgress, PartReport, PartStatus};
use thiserror::Error;

pub(crate) use self::parts::{Composed, PartRun, PendingParts, StartPart};
pub use self::{
    flows::Flows,
    parts::{ComposedModule, PartOptions, Parts},
};
use crate::provider::{COMPOSITION, reply};
pub use crate::{
    modules::Modules,
    parts_state::{FinishedParts, HaltedPart, PartsState},
};

// The interface that finds the parts of composed modules.

/// Finds the parts of composed modules. [`RuntimeBuilder::composer`](crate::RuntimeBuilder::composer) registers one.
pub trait Composer: Send + Sync {
    /// Loads the parts of a module with their own parts, and checks their graph. `modules` are those of the runtime. Returns none
    /// for a module without parts.
    ///
    /// # Errors
    /// E4004 for a cycle, E4005 for a graph that is too deep, E4006 for a missing part, E4008 for an invalid composition.
    fn compose(
        &self,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody>;
}

// The answer of the parts of a composition as the reply of a provider, so that it is checked like any other.

/// The name of the model in `meta.model`.
const PARTS: &str = "parts";

/// A provider whose reply is the answer of the parts.
pub(crate) struct PartsReply {
    info: ProviderInfo,
    envelope: String,
}

impl PartsReply {
    pub(crate) const MODEL: &str = PARTS;

    /// Creates the provider of this answer.
    pub(crate) fn new(envelope: String) -> Self {
        let mut info = ProviderInfo::new(COMPOSITION, PARTS);
        info.input = Modality::ALL;
        Self { info, envelope }
    }
}

impl Provider for PartsReply {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let events = [ModelEvent::Text(self.envelope.clone()), ModelEvent::Finished(FinishReason::Stop)];
        Box::pin(std::future::ready(Ok(reply(events))))
    }
}

// Finds the parts of a module that runs.

/// Returns the parts of a module; none for a module that calls no other.
///
/// # Errors
/// Those of [`Composer::compose`](Composer::compose), and E4008 if the runtime has no composer.
pub(crate) fn composed_module(
    composer: Option<&Arc<dyn Composer>>,
    modules: &Modules,
    module: &Arc<Module>,
    composed: &Composed,
) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
    match composed {
        Composed::Loaded(composed) => Ok(Some(Arc::clone(composed))),
        Composed::OwnPrompt(_) => Ok(None),
        Composed::Unknown => match calls_modules(module) {
            None => Ok(None),
            Some(what) => match composer {
                Some(composer) => composer.compose(modules, module),
                None => Err(unsupported(module, &what)),
            },
        },
    }
}

/// Returns whether a module calls other modules.
pub fn is_composed(module: &Module) -> bool {
    calls_modules(module).is_some()
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

// What a composition returns.

/// The future of a composition.
pub type PartsFuture = Pin<Box<dyn Future<Output = PartsEnd> + Send>>;

/// The end of a composition.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartsEnd {
    /// The reports about the parts.
    pub summary: PartsSummary,
    /// The answer. If a part waits for a confirmation, the error is that of the part.
    pub answer: Result<PartsAnswer, PartsError>,
    /// The data of the parts that are done, for a failure of the module.
    pub partial_data: Option<Value>,
    /// The state from which the composition continues if it is halted; empty if it records no answers.
    pub state: PartsState,
    /// A value that is held while the module's own prompt runs, such as a permit of a semaphore.
    pub slot: Option<Box<dyn Any + Send>>,
}

impl PartsEnd {
    /// Creates the end of a composition that records no answers.
    pub fn new(summary: PartsSummary, answer: Result<PartsAnswer, PartsError>) -> Self {
        Self { summary, answer, partial_data: None, state: PartsState::default(), slot: None }
    }
}

/// The answer of the parts.
#[derive(Debug, Clone, PartialEq)]
pub enum PartsAnswer {
    /// The module's own prompt gives the answer, with these texts in place of its `@call:` and `{{…}}`, in their order.
    Texts(Vec<String>),
    /// The answer: an envelope, which is checked like the reply of a model.
    Envelope(String),
}

/// The error of a composition.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{error}")]
pub struct PartsError {
    /// The error.
    pub error: ErrorBody,
    /// Whether the same parts may succeed when the stream is resumed.
    pub is_interrupted: bool,
}
