//! GIF: keeps the first frame and removes comments (GIF89a; SPEC 4.1.1).

use std::io::{Read, Seek};

use super::structure::{Plan, Scan, StructureError};

/// Keeps the screen descriptor, the first frame and its control block.
pub(super) fn first_frame(scan: &mut Scan<impl Read + Seek>) -> Result<Plan, StructureError> {
    let mut plan = Plan::default();
    let [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', _, _, _, _, flags, _, _] = scan.take::<13>()? else {
        return Err(StructureError);
    };
    scan.skip(colours(flags))?;
    plan.keep(0, scan.at());
    loop {
        let from = scan.at();
        match scan.byte()? {
            b'!' => extension(scan, from, &mut plan)?,
            b',' => {
                let [.., flags]: [u8; 9] = scan.take()?;
                // The colour table, and the byte with the initial code size.
                scan.skip(colours(flags) + 1)?;
                blocks(scan)?;
                plan.keep(from, scan.at());
                plan.insert(*b";");
                return Ok(plan);
            }
            _ => return Err(StructureError),
        }
    }
}

/// Counts the frames, each of which must be complete.
#[cfg(feature = "decode")]
pub(super) fn frames(scan: &mut Scan<impl Read + Seek>) -> Result<u32, StructureError> {
    let mut found = 0;
    let [.., flags, _, _] = scan.take::<13>()?;
    scan.skip(colours(flags))?;
    // Some encoders omit the trailer.
    while scan.at() < scan.length() {
        match scan.byte()? {
            b'!' => scan.skip(1)?,
            b',' => {
                let [.., flags]: [u8; 9] = scan.take()?;
                scan.skip(colours(flags) + 1)?;
                found += 1;
            }
            _ => break,
        }
        blocks(scan)?;
    }
    Ok(found)
}

/// Returns the size of a colour table in bytes.
fn colours(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Keeps graphic control and colour profile extensions.
fn extension(scan: &mut Scan<impl Read + Seek>, from: u64, plan: &mut Plan) -> Result<(), StructureError> {
    let is_needed = match scan.byte()? {
        0xF9 => true,
        0xFF => {
            let length = scan.byte()?;
            let is_profile = length == 11 && scan.take()? == *b"ICCRGBG1012";
            if length != 11 {
                scan.skip(u64::from(length))?;
            }
            is_profile
        }
        _ => false,
    };
    blocks(scan)?;
    if is_needed {
        plan.keep(from, scan.at());
    }
    Ok(())
}

/// Skips data blocks up to the empty block that ends them.
fn blocks(scan: &mut Scan<impl Read + Seek>) -> Result<(), StructureError> {
    loop {
        match scan.byte()? {
            0 => return Ok(()),
            length => scan.skip(u64::from(length))?,
        }
    }
}
