//! stderr, without keys: what a model or a server repeats of a key is not told on.

use std::sync::{Arc, RwLock};

use cog_spec::Secret;

/// What must not show. Its copies know the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Veil(Arc<RwLock<Vec<Secret>>>);

impl Veil {
    /// From now on these do not show.
    pub(super) fn hide(&self, secrets: impl IntoIterator<Item = Secret>) {
        if let Ok(mut hidden) = self.0.write() {
            hidden.extend(secrets);
        }
    }

    /// A text as it may show. Nothing shows where it cannot be known what must not.
    pub(super) fn over(&self, text: &str) -> String {
        let Ok(hidden) = self.0.read() else { return String::new() };
        hidden.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }
}
