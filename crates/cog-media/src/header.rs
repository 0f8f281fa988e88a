//! Reads the header and the structure of an image without decoding pixels.

use std::io::BufReader;

use image::{ImageDecoder, ImageFormat, ImageReader, ImageResult, Limits, metadata::Orientation as Turn};

use crate::{
    Facts, MediaError, Orientation, Stored,
    normalise::{check_structure, frames},
};

/// The maximum size of decompressed metadata: a few bytes of PNG can expand to gigabytes.
const MAX_INFLATED: u64 = 8 << 20;

/// Reads the header of an image, and checks that the image is complete.
///
/// # Errors
/// [`MediaError::Damaged`] if it cannot be read or is truncated.
pub(crate) fn facts(stored: &Stored, media_type: &'static str) -> Result<Facts, MediaError> {
    let damaged = || MediaError::Damaged { media_type, what: "the header is damaged or truncated" };
    let format = ImageFormat::from_mime_type(media_type).ok_or_else(damaged)?;
    let mut decoder = decoder(stored, format).map_err(|_| damaged())?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(MediaError::Damaged { media_type, what: "the image has no pixels" });
    }
    let orientation = Orientation::new(turn(&mut decoder).to_exif());
    let (width, height) =
        if orientation.is_some_and(Orientation::swaps_sides) { (height, width) } else { (width, height) };
    let frames = frames(stored, media_type);
    check_structure(stored, media_type, frames.is_some())?;
    Ok(Facts { width: Some(width), height: Some(height), frames, orientation, ..Facts::default() })
}

/// Returns the rotation of an image. Unreadable metadata means none.
fn turn(decoder: &mut impl ImageDecoder) -> Turn {
    let exif = decoder.exif_metadata().ok().flatten().unwrap_or_default();
    // Some programs begin the Exif of WebP and PNG like that of JPEG.
    match exif.strip_prefix(b"Exif\0\0") {
        Some(exif) => Turn::from_exif_chunk(exif).unwrap_or(Turn::NoTransforms),
        None => decoder.orientation().unwrap_or(Turn::NoTransforms),
    }
}

/// Returns a decoder that has read everything before the pixels; oversized metadata is skipped.
pub(crate) fn decoder(stored: &Stored, format: ImageFormat) -> ImageResult<impl ImageDecoder> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_INFLATED);
    let mut reader = ImageReader::with_format(BufReader::new(stored.reader()), format);
    reader.limits(limits);
    reader.into_decoder()
}
