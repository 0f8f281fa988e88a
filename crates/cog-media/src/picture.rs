//! What the header of a picture says, without decoding a pixel.

use std::io::BufReader;

use image::{ImageDecoder as _, ImageFormat, ImageReader, metadata::Orientation as Turn};

use crate::{Facts, MediaError, Orientation, Stored, normalise::frames};

/// Reads the header of a picture.
///
/// # Errors
/// [`MediaError::Damaged`] where it cannot be read.
pub(crate) fn facts(stored: &Stored, media_type: &'static str) -> Result<Facts, MediaError> {
    let damaged = || MediaError::Damaged { media_type, what: "its header is broken or cut" };
    let format = ImageFormat::from_mime_type(media_type).ok_or_else(damaged)?;
    let reader = ImageReader::with_format(BufReader::new(stored.reader()), format);
    let mut decoder = reader.into_decoder().map_err(|_| damaged())?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(MediaError::Damaged { media_type, what: "it has no pixels" });
    }
    // Metadata that cannot be read turn nothing.
    let turn = decoder.orientation().unwrap_or(Turn::NoTransforms);
    let orientation = Orientation::new(turn.to_exif());
    let (width, height) =
        if orientation.is_some_and(Orientation::swaps_sides) { (height, width) } else { (width, height) };
    let frames = frames(stored, media_type);
    Ok(Facts { width: Some(width), height: Some(height), frames, orientation, ..Facts::default() })
}
