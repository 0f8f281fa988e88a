//! The person whom servers may ask for input.

use std::fmt;

use serde_json::{Map, Value};

/// A person whom servers may ask: a user at a terminal.
pub trait Person: Send + Sync + fmt::Debug {
    /// Asks the questions of a server, and waits for the answers. Blocks. Returns a value for each field that has one; none if the
    /// person declines.
    fn ask(&self, server: &str, message: &str, fields: &[Field]) -> Option<Map<String, Value>>;
}

/// A field that a server wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The name.
    pub name: String,
    /// What it is, as the server describes it; may be empty.
    pub description: String,
    /// The type of its value.
    pub kind: FieldKind,
    /// Whether the server needs it.
    pub is_required: bool,
}

impl Field {
    /// Creates a field.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        kind: FieldKind,
        is_required: bool,
    ) -> Self {
        Self { name: name.into(), description: description.into(), kind, is_required }
    }
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text,
    /// A number.
    Number,
    /// A number without decimals.
    Integer,
    /// True or false.
    Boolean,
    /// One of these strings.
    Choice(Vec<String>),
}
