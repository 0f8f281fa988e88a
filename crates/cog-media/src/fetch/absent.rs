//! Replaces the fetcher in a build without the feature `fetch`.

use crate::{MediaError, Store, Stored, UrlGuard};

/// A response or an upload.
#[derive(Debug, Clone)]
pub struct SourceContent {
    /// The bytes.
    pub stored: Stored,
    /// The type that the server or the client of an upload declared: a hint (ruling R61).
    pub declared: Option<String>,
}

/// Fetches media files. A build without the feature `fetch` has no fetcher.
#[derive(Debug)]
pub enum Fetcher {}

impl Fetcher {
    /// Returns the guard that judges its URLs.
    pub fn guard(&self) -> &UrlGuard {
        match *self {}
    }

    /// Fetches a URL into a store.
    ///
    /// # Errors
    /// None: there is no value of this type.
    pub async fn fetch(&self, _url: &str, _store: Store) -> Result<SourceContent, MediaError> {
        match *self {}
    }
}
