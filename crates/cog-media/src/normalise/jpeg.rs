//! JPEG: removes metadata (ISO 10918-1, JFIF, Exif).

use std::io::{Read, Seek};

use super::structure::{Plan, Scan, StructureError};

const END: u8 = 0xD9;
const SCAN: u8 = 0xDA;
const COMMENT: u8 = 0xFE;
const APP0: u8 = 0xE0;
const APP2: u8 = 0xE2;
const APP14: u8 = 0xEE;
const APP15: u8 = 0xEF;

/// Keeps tables, scans, the colour profile and the Adobe marker. All other application data, comments, previews and
/// bytes after the end are removed.
pub(super) fn strip(scan: &mut Scan<impl Read + Seek>) -> Result<Plan, StructureError> {
    let mut plan = Plan::default();
    let [0xFF, 0xD8] = scan.take()? else { return Err(StructureError) };
    plan.keep(0, 2);
    loop {
        let Marker { code, from } = marker(scan)?;
        match code {
            END => {
                plan.insert([0xFF, END]);
                return Ok(plan);
            }
            // Markers without a length: restart markers and TEM.
            0x01 | 0xD0..=0xD7 => plan.keep(from, scan.at()),
            SCAN => {
                segment(scan)?;
                skip_pixels(scan)?;
                plan.keep(from, scan.at());
            }
            code @ (APP0..=APP15 | COMMENT) => application(scan, code, from, &mut plan)?,
            _ => {
                segment(scan)?;
                plan.keep(from, scan.at());
            }
        }
    }
}

/// A marker, and where it begins.
struct Marker {
    code: u8,
    from: u64,
}

/// Returns the next marker. Some cameras and editors write a few bytes before it, which every decoder skips.
fn marker(scan: &mut Scan<impl Read + Seek>) -> Result<Marker, StructureError> {
    while scan.skip_to(0xFF)? {
        let from = scan.at();
        scan.skip(1)?;
        match scan.peek()? {
            // A byte of 0xFF that is no marker, or the first of several that fill the space before one.
            [Some(0 | 0xFF), _] => {}
            [Some(code), _] => {
                scan.skip(1)?;
                return Ok(Marker { code, from });
            }
            [None, _] => break,
        }
    }
    Err(StructureError)
}

/// Skips a segment after its marker.
fn segment(scan: &mut Scan<impl Read + Seek>) -> Result<(), StructureError> {
    let length = u16::from_be_bytes(scan.take()?);
    scan.skip(u64::from(length.checked_sub(2).ok_or(StructureError)?))
}

/// Skips entropy-coded data up to the next marker.
fn skip_pixels(scan: &mut Scan<impl Read + Seek>) -> Result<(), StructureError> {
    while scan.skip_to(0xFF)? {
        let [_, next] = scan.peek()?;
        match next {
            Some(0 | 0xD0..=0xD7) => scan.skip(2)?,
            Some(0xFF) | None => scan.skip(1)?,
            Some(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Keeps application data that colours depend on.
fn application(
    scan: &mut Scan<impl Read + Seek>,
    code: u8,
    from: u64,
    plan: &mut Plan,
) -> Result<(), StructureError> {
    let length = u64::from(u16::from_be_bytes(scan.take()?)).checked_sub(2).ok_or(StructureError)?;
    let end = scan.at() + length;
    match code {
        APP0 if length >= 14 => {
            let start: [u8; 14] = scan.take()?;
            if let Some(units) = start.strip_prefix(b"JFIF\0").and_then(|rest| rest.get(..7)) {
                // A thumbnail may follow, possibly of the image before it was cropped: the new header has none.
                plan.insert([b"\xFF\xE0\0\x10JFIF\0", units, b"\0\0"].concat());
            }
        }
        APP2 if length >= 12 && scan.take()? == *b"ICC_PROFILE\0" => plan.keep(from, end),
        APP14 if length >= 5 && scan.take()? == *b"Adobe" => plan.keep(from, end),
        _ => {}
    }
    scan.skip(end - scan.at())
}
