//! Opens files and URLs that a command names, whatever they contain.

use std::{io::Read as _, path::PathBuf};

use cog_host::settings::MediaSettings;
use cog_media::{MediaError, MediaLocation, Store, Stored};

use super::media::classify;

/// Opens a file or an http(s) URL with at most `limit` bytes. The file may be in any directory, and the URL must be one
/// that the operator allows.
///
/// # Errors
/// As for media in a run (docs/spec/media.md).
pub(super) async fn open(
    reference: &str,
    settings: &MediaSettings,
    limit: u64,
) -> Result<Stored, MediaError> {
    let store = Store::with_limit(limit);
    match classify(reference) {
        MediaLocation::Url(url) => match settings.fetcher() {
            Some(fetcher) => fetcher.fetch(&url, store).await.map(|fetched| fetched.stored),
            None => Err(MediaError::SourceUnavailable { what: "URLs" }),
        },
        _ => settings.files([PathBuf::from(reference)]).open(reference.as_ref(), store),
    }
}

/// Returns the content as text; none if it is not UTF-8.
///
/// # Errors
/// If the stored content cannot be read.
pub(super) fn text(stored: &Stored) -> Result<Option<String>, MediaError> {
    let mut bytes = Vec::new();
    stored.reader().read_to_end(&mut bytes)?;
    Ok(cog_module::files::text_of(bytes).ok())
}
