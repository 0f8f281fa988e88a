//! WebP without Exif and XMP (RFC 9649).

use std::io::{Read, Seek};

use super::plan::{Broken, Plan, Scan};

/// The bits of the extended header that say that Exif and XMP follow.
const EXIF_AND_XMP: u8 = 0x08 | 0x04;

/// Keeps the chunks that pixels are made of, and says in the headers that nothing else is there.
pub(super) fn strip(scan: &mut Scan<impl Read + Seek>) -> Result<Plan, Broken> {
    let [b'R', b'I', b'F', b'F', size @ .., b'W', b'E', b'B', b'P'] = scan.take::<12>()? else {
        return Err(Broken);
    };
    let end = u64::from(u32::from_le_bytes(size)) + 8;
    let mut chunks = Plan::default();
    while scan.at() < end {
        chunk(scan, &mut chunks)?;
    }
    let size = u32::try_from(chunks.len() + 4).map_err(|_| Broken)?;
    let mut plan = Plan::default();
    plan.put([b"RIFF", size.to_le_bytes().as_slice(), b"WEBP"].concat());
    plan.append(chunks);
    Ok(plan)
}

fn chunk(scan: &mut Scan<impl Read + Seek>, plan: &mut Plan) -> Result<(), Broken> {
    let from = scan.at();
    let kind: [u8; 4] = scan.take()?;
    let size = u32::from_le_bytes(scan.take()?);
    // Chunks of an odd size are followed by a byte of nothing, which some leave out at the end.
    let size = u64::from(size);
    let padded = if scan.at() + size == scan.length() { size } else { size + size % 2 };
    match &kind {
        b"VP8X" if size == 10 => {
            let flags = scan.byte()? & !EXIF_AND_XMP;
            scan.skip(padded - 1)?;
            plan.keep(from, from + 8);
            plan.put([flags]);
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
