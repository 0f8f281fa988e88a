//! What a composition returns.

use std::pin::Pin;

pub use cog_answer::PartsSummary;
use cog_json::Value;
use cog_spec::ErrorBody;

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
