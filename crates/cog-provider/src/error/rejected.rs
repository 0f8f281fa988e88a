//! The parts of a request that a provider may reject, and without which it can be sent again.

use crate::ModelRequest;

/// A part of a request that the provider rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectedPart {
    /// The schema of the answer, or the form in which it is sent.
    Schema,
    /// An optional member of the request.
    Field {
        /// Its name in the request.
        name: &'static str,
        /// The part of the model request that it belongs to.
        part: OptionalPart,
    },
}

/// A part of a model request that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionalPart {
    /// The marks for the provider's cache.
    Cache,
    /// The request for the token usage of a stream.
    StreamOptions,
    /// A parameter of the generation.
    Setting(&'static str),
}

impl ModelRequest {
    /// Removes an optional part, and returns whether the request contained it.
    pub fn remove(&mut self, part: OptionalPart) -> bool {
        match part {
            OptionalPart::Cache => self.cache_key.take().is_some(),
            OptionalPart::StreamOptions => std::mem::take(&mut self.stream_options),
            OptionalPart::Setting(name) => self.generation.remove(name),
        }
    }
}
