//! Prepares `schema.json` for the engine.
//!
//! References stay inside the file. The names `$schema` and `$id` are removed, so that nothing can be fetched by them
//! (ruling R13). The definition of the runtime is added to media inputs (ruling R14). Everything that would fail or loop later is
//! an error with location and suggestion here.

mod builtin;
mod handoff;
mod lint;
mod loops;
mod media;
mod parts;
mod reach;

use std::sync::Arc;

use serde_json::Value;

use crate::rules::Rules;
use crate::schema_error::SchemaError;

pub(crate) use self::{builtin::Handoffs, parts::Parts};

/// A document that is ready to be compiled.
#[derive(Debug)]
pub(crate) struct Document {
    /// The complete document.
    pub(crate) value: Arc<Value>,
    /// The pointers of its parts.
    pub(crate) parts: Parts,
    /// The JSON pointer of each schema that its parts or definitions reach.
    pub(crate) schemas: Vec<String>,
    /// The JSON pointers of media inputs, to which the definition of the runtime was added.
    pub(crate) media: Vec<String>,
    /// The JSON pointers of the runtime's definitions of a handoff.
    pub(crate) handoffs: Handoffs,
    /// What has no effect or excludes every value.
    pub(crate) warnings: Vec<SchemaError>,
}

impl Document {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// Every error of the first step that fails.
    pub(crate) fn read(original: &Value, rules: &Rules) -> Result<Self, Vec<SchemaError>> {
        lint::check_size(original).map_err(|problem| vec![problem])?;
        let mut value = original.clone();
        let handoffs = builtin::define(&mut value);
        let parts = Parts::find(&value, rules)?;
        let reached = reach::reach(&value, &parts.roots(&value))?;
        let mut problems = lint::malformed(&value, &parts.roots(&value));
        problems.extend(lint::patterns(&value, &reached.schemas));
        problems.extend(loops::find(&value, &reached));
        if !problems.is_empty() {
            return Err(problems);
        }
        let warnings = lint::warnings(&value, &parts, &reached);
        reach::localise(&mut value, &reached);
        let media = media::add(&mut value, &reached.schemas, rules.documents);
        let schemas = reach::reach(&value, &parts.roots(&value))?.schemas;
        Ok(Self { value: Arc::new(value), parts, schemas, media, handoffs, warnings })
    }
}

#[cfg(test)]
mod tests;
