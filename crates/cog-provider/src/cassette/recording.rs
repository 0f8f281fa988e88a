//! The provider and model of a cassette.

use std::path::Path;

use cog_json::{Node, Value};

use super::files;
use crate::ProviderError;

/// The provider and model that a cassette was recorded from. A replay uses the same provider and model, since both are
/// part of the requests that identify the replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The vendor's name, `openai`.
    pub provider: String,
    /// The name of the model.
    pub model: String,
}

impl Recording {
    /// Reads the provider and model of the cassette in a directory.
    ///
    /// # Errors
    /// Fails if the directory contains no recording, or if the recording does not name its provider and model.
    pub fn read(directory: &Path) -> Result<Self, ProviderError> {
        let numbers = files::numbers(directory).map_err(|error| files::cassette_error(directory, error))?;
        let first = numbers
            .first()
            .ok_or_else(|| files::cassette_error(directory, "the directory contains no recording"))?;
        let path = files::exchange(directory, *first);
        let text = files::read(&path).map_err(|error| files::cassette_error(&path, error))?;
        let exchange = Value::parse(&text).map_err(|error| files::cassette_error(&path, error))?;
        let field = |key: &str| exchange.get(key).and_then(Node::as_str).map(str::to_owned);
        let recording =
            field("provider").zip(field("model")).map(|(provider, model)| Self { provider, model });
        recording.ok_or_else(|| {
            files::cassette_error(&path, "not a valid recording: `provider` or `model` is missing")
        })
    }
}
