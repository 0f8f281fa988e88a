//! Counts the frames of an animated image without decoding them.

use std::io::{Read, Seek};

use super::{
    gif,
    plan::{Broken, Scan},
    webp,
};
use crate::Stored;

/// Returns the frames of an animated image, as far as its structure is readable; none for a still image.
pub(crate) fn frames(stored: &Stored, media_type: &str) -> Option<u32> {
    let (reader, length) = (stored.reader(), stored.len());
    match media_type {
        "image/gif" => gif::frames(&mut Scan::new(reader, length)).ok().filter(|frames| *frames > 1),
        "image/png" => in_png(&mut Scan::with_small_buffer(reader, length)).ok().flatten(),
        "image/webp" => webp::frames(&mut Scan::with_small_buffer(reader, length)),
        _ => None,
    }
}

/// Reads the animation header before the pixels (PNG third edition, 11.3.6).
fn in_png(scan: &mut Scan<impl Read + Seek>) -> Result<Option<u32>, Broken> {
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
