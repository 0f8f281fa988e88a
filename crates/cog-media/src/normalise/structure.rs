//! Reads the structure of an image, whatever its type.

use super::{
    gif, jpeg,
    plan::{Broken, Plan, Scan},
    png, webp,
};
#[cfg(feature = "decode")]
use crate::MediaError;
use crate::Stored;

/// Reads the structure of an image. Returns the ranges of its first frame, without metadata unless it stays; none if
/// the first frame has to be decoded.
pub(super) fn stripping_plan(
    stored: &Stored,
    media_type: &str,
    is_animated: bool,
    keeps_metadata: bool,
) -> Result<Option<Plan>, Broken> {
    let mut scan = Scan::new(stored.reader(), stored.len());
    match media_type {
        "image/gif" => gif::first_frame(&mut scan).map(Some),
        "image/webp" if is_animated => webp::first_frame(&mut scan, keeps_metadata),
        "image/webp" => webp::strip(&mut scan).map(Some),
        "image/png" => png::still(&mut scan, keeps_metadata).map(Some),
        "image/jpeg" => jpeg::strip(&mut scan).map(Some),
        _ => Err(Broken),
    }
}

/// Returns whether this is a WebP whose pixels are stored without loss.
pub(super) fn is_lossless_webp(stored: &Stored, media_type: &str) -> bool {
    media_type == "image/webp"
        && webp::is_lossless(&mut Scan::new(stored.reader(), stored.len())).unwrap_or(false)
}

/// Checks that an image is complete: its structure is readable up to its end.
///
/// # Errors
/// [`MediaError::Damaged`].
#[cfg(feature = "decode")]
pub(crate) fn check_structure(
    stored: &Stored,
    media_type: &'static str,
    is_animated: bool,
) -> Result<(), MediaError> {
    let frames = match media_type {
        "image/gif" => gif::frames(&mut Scan::new(stored.reader(), stored.len())).map(drop),
        _ => Ok(()),
    };
    frames
        .and_then(|()| stripping_plan(stored, media_type, is_animated, false).map(drop))
        .map_err(|error| error.into_error(media_type))
}
