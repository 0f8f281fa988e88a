//! stderr without keys, also where a model or a provider repeats one.

use std::sync::{Arc, RwLock};

use cog_spec::Secret;

/// The keys that must not be printed. [`Settings::read`] adds those that it finds; copies share one list.
///
/// [`Settings::read`]: super::Settings::read
#[derive(Debug, Clone, Default)]
pub struct Redactor(Arc<RwLock<Vec<Secret>>>);

impl Redactor {
    /// Adds keys.
    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        if let Ok(mut hidden) = self.0.write() {
            hidden.extend(secrets);
        }
    }

    /// Returns the text with each key masked; an empty text where the list cannot be read.
    pub fn redact(&self, text: &str) -> String {
        let Ok(hidden) = self.0.read() else { return String::new() };
        hidden.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }
}
