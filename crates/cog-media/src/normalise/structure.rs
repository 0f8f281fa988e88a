//! Reads the structure of an image, whatever its type.

use std::io::{Read, Seek};

use super::{
    gif, jpeg,
    plan::{Plan, Scan, StructureError},
    webp,
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
) -> Result<Option<Plan>, StructureError> {
    let mut scan = Scan::new(stored.reader(), stored.len());
    match media_type {
        "image/gif" => gif::first_frame(&mut scan).map(Some),
        "image/webp" if is_animated => webp::first_frame(&mut scan, keeps_metadata),
        "image/webp" => webp::strip(&mut scan).map(Some),
        "image/png" => still_png(&mut scan, keeps_metadata).map(Some),
        "image/jpeg" => jpeg::strip(&mut scan).map(Some),
        _ => Err(StructureError),
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
pub(super) fn check_structure(
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

// PNG: converts to a still image without text, dates and Exif (PNG third edition, 11.3).

/// Chunks with pixels and colour information.
const KEPT_CHUNKS: [&[u8; 4]; 15] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"cICP",
    b"mDCV", b"cLLI", b"bKGD", b"pHYs",
];

/// Chunks whose checksum decoders verify: without them, or with wrong ones, there is no image.
const CRITICAL_CHUNKS: [&[u8; 4]; 4] = [b"IHDR", b"PLTE", b"IDAT", b"IEND"];

/// Chunks of animations.
const ANIMATION_CHUNKS: [&[u8; 4]; 3] = [b"acTL", b"fcTL", b"fdAT"];

/// Keeps the chunks of a still image, and metadata if requested; bytes after the end are removed.
fn still_png(scan: &mut Scan<impl Read + Seek>, metadata: bool) -> Result<Plan, StructureError> {
    let mut plan = Plan::default();
    let b"\x89PNG\r\n\x1a\n" = &scan.take()? else { return Err(StructureError) };
    plan.keep(0, scan.at());
    loop {
        let from = scan.at();
        let length = u32::from_be_bytes(scan.take()?);
        let kind: [u8; 4] = scan.take()?;
        if CRITICAL_CHUNKS.contains(&&kind) {
            check_crc(scan, kind, length)?;
        } else {
            // Four checksum bytes follow.
            scan.skip(u64::from(length) + 4)?;
        }
        if KEPT_CHUNKS.contains(&&kind) || (metadata && !ANIMATION_CHUNKS.contains(&&kind)) {
            plan.keep(from, scan.at());
        }
        if &kind == b"IEND" {
            return Ok(plan);
        }
    }
}

/// Reads the rest of a chunk, and verifies its checksum.
fn check_crc(scan: &mut Scan<impl Read + Seek>, kind: [u8; 4], length: u32) -> Result<(), StructureError> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&kind);
    scan.read(u64::from(length), |bytes| crc.update(bytes))?;
    if crc.finalize() == u32::from_be_bytes(scan.take()?) { Ok(()) } else { Err(StructureError) }
}

// Counts the frames of an animated image without decoding them.

/// Returns the frames of an animated image, as far as its structure is readable; none for a still image.
#[cfg(feature = "decode")]
pub(super) fn frames(stored: &Stored, media_type: &str) -> Option<u32> {
    let reader = stored.reader();
    let length = stored.len();
    match media_type {
        "image/gif" => gif::frames(&mut Scan::new(reader, length)).ok().filter(|frames| *frames > 1),
        "image/png" => frames_of_png(&mut Scan::with_small_buffer(reader, length)).ok().flatten(),
        "image/webp" => webp::frames(&mut Scan::with_small_buffer(reader, length)),
        _ => None,
    }
}

/// Reads the animation header before the pixels (PNG third edition, 11.3.6).
#[cfg(feature = "decode")]
fn frames_of_png(scan: &mut Scan<impl Read + Seek>) -> Result<Option<u32>, StructureError> {
    scan.skip(8)?;
    loop {
        let length = u32::from_be_bytes(scan.take()?);
        match &scan.take::<4>()? {
            b"acTL" => return Ok(Some(u32::from_be_bytes(scan.take()?))),
            b"IDAT" | b"IEND" => return Ok(None),
            _ => scan.skip(u64::from(length) + 4)?,
        }
    }
}
