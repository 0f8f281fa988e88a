//! Replaces the image decoder in a build without the feature `decode`.

use crate::{Media, MediaError, MediaInfo, MediaRules, Rotation, Stored};

/// A decoded image. There is none in a build without the feature `decode`.
pub(super) enum Pixels {}

impl Pixels {
    pub(super) fn decode(_media: &Media, _rules: &MediaRules) -> Result<Self, MediaError> {
        Err(MediaError::not_built())
    }

    pub(super) fn max_side(&self) -> u32 {
        match *self {}
    }

    pub(super) fn rotate(&mut self, _rotation: Rotation) {
        match *self {}
    }

    pub(super) fn scale_to(&mut self, _side: u32) {
        match *self {}
    }

    pub(super) fn is_transparent(&self) -> bool {
        match *self {}
    }

    pub(super) fn encode(&self, _media_type: &'static str) -> Result<Stored, MediaError> {
        match *self {}
    }
}

// The reader of headers.

/// Refuses every image.
///
/// # Errors
/// [`MediaError::ReaderUnavailable`].
pub(crate) fn read_header(_stored: &Stored, _media_type: &'static str) -> Result<MediaInfo, MediaError> {
    Err(MediaError::not_built())
}

/// Refuses every image.
///
/// # Errors
/// [`MediaError::ReaderUnavailable`].
pub(crate) fn check_pixels(_media: &Media, _rules: &MediaRules) -> Result<Option<&'static str>, MediaError> {
    Err(MediaError::not_built())
}
