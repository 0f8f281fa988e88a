//! The format and the sizes of a WAV file, which programs that write it as a stream do not know.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::{
    container::{Corrections, Handle},
    report::ReadError,
};

/// Where the size of the whole file is, which says nothing that the samples do not.
const SIZE_OF_FILE: u64 = 4;
/// The size of a file that was written as a stream.
const UNKNOWN: [u8; 4] = [0xff; 4];
/// Where the first chunk begins.
const FIRST_CHUNK: u64 = 12;
/// The maximum number of chunks before the samples.
const MAX_CHUNKS: usize = 1000;

/// Sizes from here on are placeholders of programs that write streams: none of them means a file.
const PLACEHOLDER: u64 = 0x7000_0000;

/// What comes before the samples.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// The places of sizes, and the sizes to read there. The samples are the rest of the file if their size is zero or
    /// more than the file has.
    pub(super) corrections: Corrections,
    /// How much earlier the samples end than their size says, in milliseconds.
    pub(super) missing_ms: u64,
    /// The content of the chunk `fmt `.
    format: Vec<u8>,
}

/// Reads what comes before the samples; as much as is there, if the file is damaged.
///
/// # Errors
/// [`ReadError::Codec`] if the samples are in a format that providers do not read.
pub(super) fn read(input: &mut Handle) -> Result<Header, ReadError> {
    let mut header = Header { corrections: vec![(SIZE_OF_FILE, UNKNOWN)], ..Header::default() };
    // The reader of the samples finds out what is wrong.
    let _ = read_chunks(input, &mut header);
    match unsupported_codec(&header.format) {
        Some(codec) => Err(ReadError::Codec(codec)),
        None => Ok(header),
    }
}

fn read_chunks(input: &mut Handle, header: &mut Header) -> io::Result<()> {
    let end = input.seek(SeekFrom::End(0))?;
    let mut at = FIRST_CHUNK;
    for _ in 0..MAX_CHUNKS {
        input.seek(SeekFrom::Start(at))?;
        let mut head = [0; 8];
        input.read_exact(&mut head)?;
        let [name @ .., a, b, c, d] = head;
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        let content = at + 8;
        match &name {
            b"data" => {
                header.add_samples(at + 4, size, end.saturating_sub(content));
                return Ok(());
            }
            b"fmt " => {
                input.by_ref().take(size.min(40)).read_to_end(&mut header.format)?;
            }
            _ => {}
        }
        at = content.saturating_add(size).saturating_add(size % 2);
    }
    Ok(())
}

impl Header {
    /// Adds the size of the samples, which is at this place, and the bytes that are there.
    fn add_samples(&mut self, at: u64, size: u64, rest: u64) {
        if size == 0 || size > rest {
            self.corrections.push((at, u32::try_from(rest).unwrap_or(u32::MAX).to_le_bytes()));
        }
        if (rest..PLACEHOLDER).contains(&size) {
            let bytes_per_second = number(&self.format, 8).map_or(0, u64::from);
            self.missing_ms = ((size - rest) * 1000).checked_div(bytes_per_second).unwrap_or_default();
        }
    }
}

/// Returns a number of 32 bits in a format.
fn number(format: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*format.get(at..)?.first_chunk()?))
}

/// Returns a number of 16 bits in a format.
fn short(format: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*format.get(at..)?.first_chunk()?))
}

/// Returns the name of the format of samples that providers do not read; none for the usual ones (RFC 2361).
fn unsupported_codec(format: &[u8]) -> Option<String> {
    /// The format is named by the first bytes of an identifier that follows.
    const EXTENSIBLE: u16 = 0xfffe;
    let bits = short(format, 14)?;
    let tag = match short(format, 0)? {
        EXTENSIBLE => short(format, 24)?,
        tag => tag,
    };
    let name = match tag {
        1 if matches!(bits, 8 | 16 | 24 | 32) => return None,
        1 => return Some(format!("{bits}-bit PCM")),
        3 if matches!(bits, 32 | 64) => return None,
        // ADPCM of Microsoft and IMA, A-law, µ-law.
        2 | 0x11 if bits == 4 => return None,
        6 | 7 => return None,
        0x14 | 0x42 => "G.723",
        0x31 => "GSM 6.10",
        0x40 => "G.721",
        0x45 | 0x64 => "G.726",
        0x50 => "MPEG audio",
        0x55 => "MP3",
        0xff | 0x1600 | 0x1601 | 0x1602 | 0x1610 => "AAC",
        0x160..=0x163 => "Windows Media Audio",
        0x2000 => "AC-3",
        0x2001 => "DTS",
        0x704f => "Opus",
        0xf1ac => "FLAC",
        tag => return Some(format!("codec 0x{tag:04x}")),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codec(tag: u16, bits: u16, rest: &[u8]) -> Option<String> {
        let format = [&tag.to_le_bytes()[..], &[1, 0], &[0; 10], &bits.to_le_bytes(), rest].concat();
        unsupported_codec(&format)
    }

    #[test]
    fn unusual_formats_are_named() {
        for (tag, bits) in [(1, 8), (1, 16), (1, 24), (3, 32), (6, 8), (7, 8), (0x11, 4)] {
            assert_eq!(codec(tag, bits, &[]), None, "{tag} {bits}");
        }
        assert_eq!(codec(1, 12, &[]).as_deref(), Some("12-bit PCM"));
        assert_eq!(codec(0x55, 0, &[]).as_deref(), Some("MP3"));
        assert_eq!(codec(0x1234, 16, &[]).as_deref(), Some("codec 0x1234"));
        let extension = |tag: u16| [&[22, 0, 16, 0, 3, 0, 0, 0][..], &tag.to_le_bytes(), &[0; 14]].concat();
        assert_eq!(codec(0xfffe, 16, &extension(1)), None);
        assert_eq!(codec(0xfffe, 0, &extension(0x31)).as_deref(), Some("GSM 6.10"));
        assert_eq!(unsupported_codec(&[1, 0]), None, "damaged");
    }
}
