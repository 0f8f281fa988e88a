//! Replaces the image reader in a build without the feature `decode`.

use crate::{Facts, MediaError, Stored};

/// Refuses every image.
///
/// # Errors
/// [`MediaError::ReaderUnavailable`].
pub(crate) fn facts(_stored: &Stored, _media_type: &'static str) -> Result<Facts, MediaError> {
    Err(MediaError::not_built())
}
