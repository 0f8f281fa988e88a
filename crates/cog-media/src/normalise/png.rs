//! PNG: converts to a still image without text, dates and Exif (PNG third edition, 11.3).

use std::io::{Read, Seek};

use super::plan::{Broken, Plan, Scan};

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
pub(super) fn still(scan: &mut Scan<impl Read + Seek>, metadata: bool) -> Result<Plan, Broken> {
    let mut plan = Plan::default();
    let b"\x89PNG\r\n\x1a\n" = &scan.take()? else { return Err(Broken) };
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
fn check_crc(scan: &mut Scan<impl Read + Seek>, kind: [u8; 4], length: u32) -> Result<(), Broken> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&kind);
    scan.read(u64::from(length), |bytes| crc.update(bytes))?;
    if crc.finalize() == u32::from_be_bytes(scan.take()?) { Ok(()) } else { Err(Broken) }
}
