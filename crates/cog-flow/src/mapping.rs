//! `mapping`: the fields of a target, each with the path of its value.

use cog_json::{Value, Writer};

use crate::{PathError, json_path::JsonPath};

/// A parsed mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    fields: Vec<MappedField>,
}

/// A field of the target and the path of its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappedField {
    pub(crate) name: String,
    /// The path as it is written.
    pub(crate) text: String,
    pub(crate) path: JsonPath,
}

impl Mapping {
    pub(crate) fn new(fields: Vec<MappedField>) -> Self {
        Self { fields }
    }

    pub(crate) fn fields(&self) -> &[MappedField] {
        &self.fields
    }

    /// Returns the object for the target. A field whose path finds nothing is absent.
    ///
    /// # Errors
    /// When a path selects too much.
    pub(crate) fn apply(&self, document: &Value) -> Result<Value, PathError> {
        let mut values = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            if let Some(value) = field.path.select(document)? {
                values.push((field.name.as_str(), value));
            }
        }
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            for (name, value) in &values {
                w.field(name, value);
            }
        });
        Value::parse_within(text.as_bytes(), cog_json::Limits::unbounded()).map_err(|_| PathError)
    }
}
