//! The errors of conversions between values and types.

use std::fmt;

use serde::{de, ser};

use crate::path::{Path, Segment};

/// A value does not match the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeserializeError {
    path: Path,
    message: String,
}

impl DeserializeError {
    /// Returns the path of the value that does not match.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the message without the path.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Adds the step from the container of the value to the path.
    pub(super) fn inside(self, segment: Segment<'_>) -> Self {
        let path = std::iter::once(segment).chain(self.path.segments()).collect();
        Self { path, message: self.message }
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_root() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

impl std::error::Error for DeserializeError {}

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: Path::root(), message: message.to_string() }
    }
}

/// A type cannot be written as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SerializeError {
    message: String,
}

impl ser::Error for SerializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string() }
    }
}
