//! From `schema.json` as it was written to a document that the engine can take.
//!
//! References stay inside the file, names (`$schema`, `$id`) are taken out so that nothing can be fetched by
//! them (ruling R13), media inputs have the runtime's definition (R14), and whatever would fail or loop later
//! is a problem with a place and a suggestion now.

mod limits;
mod lint;
mod loops;
mod media;
mod parts;
mod reach;

use std::sync::Arc;

use serde_json::Value;

use crate::rules::Rules;
use crate::schema_error::SchemaError;

pub(crate) use self::parts::Parts;

/// A document that is ready to be compiled.
#[derive(Debug)]
pub(crate) struct Document {
    /// The whole of it.
    pub(crate) value: Arc<Value>,
    /// Where its parts are.
    pub(crate) parts: Parts,
    /// Each schema that its parts or definitions reach, as a JSON pointer.
    pub(crate) schemas: Vec<String>,
    /// Where the runtime's definition of a media input stands.
    pub(crate) media: Vec<String>,
}

impl Document {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// Every problem that can be reported at once.
    pub(crate) fn read(original: &Value, rules: &Rules) -> Result<Self, Vec<SchemaError>> {
        limits::check(original).map_err(|problem| vec![problem])?;
        let mut value = original.clone();
        media::define(&mut value);
        let parts = Parts::find(&value, rules)?;
        let reached = reach::reach(&value, &parts.roots(&value))?;
        let mut problems = lint::malformed(&value, &parts.roots(&value));
        problems.extend(lint::patterns(&value, &reached.schemas));
        problems.extend(loops::find(&value, &reached));
        if !problems.is_empty() {
            return Err(problems);
        }
        reach::localise(&mut value, &reached);
        let media = media::replace(&mut value, &reached.schemas, rules.documents);
        let schemas = reach::reach(&value, &parts.roots(&value))?.schemas;
        Ok(Self { value: Arc::new(value), parts, schemas, media })
    }
}

#[cfg(test)]
mod tests;
