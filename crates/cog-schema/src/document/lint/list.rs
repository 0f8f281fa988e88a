use crate::schema_error::SchemaError;
use crate::wording::{Suggestions, quoted};

/// The maximum number of warnings of a document.
const MAX_WARNINGS: usize = 100;

/// The warnings so far.
#[derive(Default)]
pub(super) struct Warnings {
    found: Vec<SchemaError>,
    suggestions: Suggestions,
}

impl Warnings {
    pub(super) fn add(&mut self, pointer: &str, message: String, help: String) {
        if self.found.len() < MAX_WARNINGS {
            self.found.push(SchemaError::new(pointer, message).suggest(help));
        }
    }

    pub(super) fn did_you_mean<'a>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let near = self.suggestions.nearest(name, known)?;
        Some(format!("Did you mean {}?", quoted(near)))
    }

    pub(super) fn into_vec(self) -> Vec<SchemaError> {
        self.found
    }
}
