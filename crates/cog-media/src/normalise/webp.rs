//! WebP: removes Exif and XMP, and reduces animations to the first frame (RFC 9649).

use std::io::{Read, Seek};

use super::structure::{Plan, Scan, StructureError};

/// The flags of the extended header for Exif and XMP chunks.
const EXIF_AND_XMP: u8 = 0x08 | 0x04;

/// The flags for animation and alpha.
const ANIMATION: u8 = 0x02;
const ALPHA: u8 = 0x10;

/// Keeps the chunks with pixels and clears the metadata flags in the header.
pub(super) fn strip(scan: &mut Scan<impl Read + Seek>) -> Result<Plan, StructureError> {
    let end = file_header(scan)?;
    let mut chunks = Plan::default();
    while scan.at() < end {
        chunk(scan, &mut chunks)?;
    }
    file(chunks)
}

/// Keeps the first frame as a still image, and metadata if requested. Returns none if that frame covers only a part of
/// the canvas.
pub(super) fn first_frame(
    scan: &mut Scan<impl Read + Seek>,
    metadata: bool,
) -> Result<Option<Plan>, StructureError> {
    let end = file_header(scan)?;
    let mut chunks = Plan::default();
    let mut first = None;
    let ChunkHeader { kind: [b'V', b'P', b'8', b'X'], size: 10, .. } = chunk_header(scan)? else {
        return Err(StructureError);
    };
    let [flags, _, _, _, canvas @ ..] = scan.take::<10>()?;
    while scan.at() < end {
        let ChunkHeader { from, kind, padded, .. } = chunk_header(scan)?;
        let inside = scan.at() + padded;
        match &kind {
            b"ANMF" if first.is_none() => {
                let [0, 0, 0, 0, 0, 0, size @ .., _, _, _, _] = scan.take::<16>()? else { return Ok(None) };
                if size != canvas {
                    return Ok(None);
                }
                first = Some(frame(scan, inside, &mut chunks)?);
            }
            b"ICCP" => chunks.keep(from, inside),
            b"EXIF" | b"XMP " if metadata => chunks.keep(from, inside),
            _ => {}
        }
        scan.skip(inside.checked_sub(scan.at()).ok_or(StructureError)?)?;
    }
    let alpha = if first.ok_or(StructureError)? { ALPHA } else { 0 };
    let metadata_flags = if metadata { EXIF_AND_XMP } else { 0 };
    let flags = flags & !(ANIMATION | ALPHA | EXIF_AND_XMP) | (flags & (alpha | metadata_flags));
    let mut plan = Plan::default();
    plan.insert([b"VP8X\x0A\0\0\0", [flags, 0, 0, 0].as_slice(), &canvas].concat());
    plan.append(chunks);
    file(plan).map(Some)
}

/// Keeps the pixels of a frame. Returns whether it may have alpha.
fn frame(scan: &mut Scan<impl Read + Seek>, end: u64, plan: &mut Plan) -> Result<bool, StructureError> {
    let mut has_pixels = false;
    let mut has_alpha = false;
    while scan.at() < end {
        let ChunkHeader { from, kind, padded, .. } = chunk_header(scan)?;
        scan.skip(padded)?;
        if matches!(&kind, b"ALPH" | b"VP8 " | b"VP8L") {
            has_pixels |= &kind != b"ALPH";
            has_alpha |= &kind != b"VP8 ";
            plan.keep(from, scan.at());
        }
    }
    has_pixels.then_some(has_alpha).ok_or(StructureError)
}

/// Counts the readable frames; none for a still image.
#[cfg(feature = "decode")]
pub(super) fn frames(scan: &mut Scan<impl Read + Seek>) -> Option<u32> {
    let end = file_header(scan).ok()?;
    let ChunkHeader { kind: [b'V', b'P', b'8', b'X'], size: 10, .. } = chunk_header(scan).ok()? else {
        return None;
    };
    let [flags, ..] = scan.take::<10>().ok()?;
    let mut found = 0;
    while scan.at() < end {
        let Ok(ChunkHeader { kind, padded, .. }) = chunk_header(scan) else { break };
        found += u32::from(&kind == b"ANMF");
        if scan.skip(padded).is_err() {
            break;
        }
    }
    (flags & ANIMATION != 0).then_some(found)
}

/// Returns whether the pixels of the first frame are stored without loss.
pub(super) fn is_lossless(scan: &mut Scan<impl Read + Seek>) -> Result<bool, StructureError> {
    let end = file_header(scan)?;
    while scan.at() < end {
        let ChunkHeader { kind, padded, .. } = chunk_header(scan)?;
        match &kind {
            b"VP8L" => return Ok(true),
            b"VP8 " => return Ok(false),
            // The chunks of a frame follow its 16 bytes of header.
            b"ANMF" => scan.skip(16)?,
            _ => scan.skip(padded)?,
        }
    }
    Err(StructureError)
}

/// Reads the file header. Returns the end of the file that it declares.
fn file_header(scan: &mut Scan<impl Read + Seek>) -> Result<u64, StructureError> {
    let [b'R', b'I', b'F', b'F', size @ .., b'W', b'E', b'B', b'P'] = scan.take::<12>()? else {
        return Err(StructureError);
    };
    Ok(u64::from(u32::from_le_bytes(size)) + 8)
}

/// Returns a file of these chunks.
fn file(chunks: Plan) -> Result<Plan, StructureError> {
    let size = u32::try_from(chunks.len() + 4).map_err(|_| StructureError)?;
    let mut plan = Plan::default();
    plan.insert([b"RIFF", size.to_le_bytes().as_slice(), b"WEBP"].concat());
    plan.append(chunks);
    Ok(plan)
}

/// The header of a chunk.
struct ChunkHeader {
    from: u64,
    kind: [u8; 4],
    size: u64,
    /// Its size with padding.
    padded: u64,
}

fn chunk_header(scan: &mut Scan<impl Read + Seek>) -> Result<ChunkHeader, StructureError> {
    let from = scan.at();
    let kind = scan.take()?;
    let size = u64::from(u32::from_le_bytes(scan.take()?));
    // A padding byte follows chunks of odd size, which some encoders omit at the end.
    let padded = if scan.at() + size == scan.length() { size } else { size + size % 2 };
    Ok(ChunkHeader { from, kind, size, padded })
}

fn chunk(scan: &mut Scan<impl Read + Seek>, plan: &mut Plan) -> Result<(), StructureError> {
    let ChunkHeader { from, kind, size, padded } = chunk_header(scan)?;
    match &kind {
        // The extended header has 10 bytes. Without it, an animation could not be read.
        b"VP8X" if size != 10 => return Err(StructureError),
        b"VP8X" => {
            let flags = scan.byte()? & !EXIF_AND_XMP;
            scan.skip(padded - 1)?;
            plan.keep(from, from + 8);
            plan.insert([flags]);
            plan.keep(from + 9, scan.at());
        }
        b"VP8 " | b"VP8L" | b"ALPH" | b"ANIM" | b"ANMF" | b"ICCP" => {
            scan.skip(padded)?;
            plan.keep(from, scan.at());
        }
        _ => scan.skip(padded)?,
    }
    Ok(())
}
