//! What a composition returns.

use std::{any::Any, pin::Pin};

pub use cog_answer::PartsSummary;
use cog_json::Value;
use cog_spec::ErrorBody;
use thiserror::Error;

use super::halted::PartsState;

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
