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

/// The length of a format without the size of a sample, as the first programs wrote it.
const SHORT_FORMAT: usize = 14;

/// The names of chunks. A chunk of an odd length is followed by a byte of padding, which some programs leave out.
const NAMES: [&[u8; 4]; 14] = [
    b"data", b"fmt ", b"fact", b"LIST", b"bext", b"cue ", b"smpl", b"inst", b"JUNK", b"junk", b"PAD ",
    b"id3 ", b"iXML", b"acid",
];

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
    /// Whether the reader of the samples would fail at what comes before them, although it is clear.
    is_unusual: bool,
}

/// Reads what comes before the samples; as much as is there, if the file is damaged.
///
/// # Errors
/// [`ReadError::Codec`] if the samples are in a format that providers do not read.
pub(super) fn read(input: &mut Handle) -> Result<Header, ReadError> {
    let mut header = Header { corrections: vec![(SIZE_OF_FILE, UNKNOWN)], ..Header::default() };
    // The reader of the samples finds out what is wrong.
    let samples = read_chunks(input, &mut header).ok().flatten();
    header.complete_format();
    if let Some(size) = samples.filter(|_| header.is_unusual) {
        header.replace(size);
    }
    match unsupported_codec(&header.format) {
        Some(codec) => Err(ReadError::Codec(codec)),
        None => Ok(header),
    }
}

/// Returns the size of the samples, if they are there.
fn read_chunks(input: &mut Handle, header: &mut Header) -> io::Result<Option<u32>> {
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
                let rest = end.saturating_sub(content);
                header.add_samples(at + 4, size, rest);
                let size = if size == 0 { rest } else { size.min(rest) };
                return Ok(u32::try_from(size).ok());
            }
            b"fmt " => {
                input.by_ref().take(size.min(40)).read_to_end(&mut header.format)?;
            }
            _ => {}
        }
        at = content.saturating_add(size);
        if size % 2 == 1 {
            // Some programs also end the lists in it without padding, at which the reader of the samples fails.
            header.is_unusual |= &name == b"LIST";
            if is_name(input, at) {
                header.is_unusual = true;
            } else {
                at += 1;
            }
        }
    }
    Ok(None)
}

/// Returns whether a chunk begins at this place.
fn is_name(input: &mut Handle, at: u64) -> bool {
    let mut name = [0; 4];
    let read = input.seek(SeekFrom::Start(at)).and_then(|_| input.read_exact(&mut name));
    read.is_ok() && NAMES.contains(&&name)
}

impl Header {
    /// Adds the size of a sample, which follows from the size of all channels together.
    fn complete_format(&mut self) {
        if self.format.len() == SHORT_FORMAT
            && let Some(channels) = short(&self.format, 2)
            && let Some(bytes) = short(&self.format, 12)
        {
            let bits = u32::from(bytes) * 8 / u32::from(channels).max(1);
            self.format.extend(u16::try_from(bits).unwrap_or_default().to_le_bytes());
            self.is_unusual = true;
        }
    }

    /// Writes a plain beginning instead of the file's own. Some of the samples may then be other bytes of the file, but only
    /// their number counts.
    fn replace(&mut self, size: u32) {
        // The size of a longer format is not known here.
        const MAX_FORMAT: usize = 40;
        let length = self.format.len() as u32;
        if !(16..MAX_FORMAT).contains(&self.format.len()) {
            return;
        }
        let parts: [&[u8]; 8] = [
            b"RIFF",
            &UNKNOWN,
            b"WAVEfmt ",
            &length.to_le_bytes(),
            &self.format,
            b"data",
            &size.to_le_bytes(),
            &[0; 3],
        ];
        let bytes = parts.concat();
        let fours = bytes.as_chunks::<4>().0;
        self.corrections = fours.iter().zip(0..).map(|(four, number)| (number * 4, *four)).collect();
    }

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
    fn beginnings_that_programs_write_are_read() {
        let chunk = |name: &[u8; 4], content: &[u8], padding: usize| {
            let size = u32::try_from(content.len()).unwrap().to_le_bytes();
            [name, &size[..], content, &[0, 0][..padding]].concat()
        };
        // One channel of 8,000 samples of 16 bits a second.
        let format = [1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0];
        let fmt = chunk(b"fmt ", &format, 0);
        let list = |padding| chunk(b"LIST", b"INFOICMT\x05\0\0\0hello", padding);
        let samples = chunk(b"data", &[7; 24_000], 0);
        for (name, parts, expected) in [
            ("plain", vec![fmt.clone(), samples.clone()], Some(1500)),
            ("odd list", vec![fmt.clone(), list(1), samples.clone()], Some(1500)),
            ("odd list without padding", vec![fmt.clone(), list(0), samples.clone()], Some(1500)),
            (
                "before the format",
                vec![chunk(b"JUNK", &[b'd'; 27], 0), fmt.clone(), samples.clone()],
                Some(1500),
            ),
            ("padded", vec![chunk(b"bext", &[b'x'; 603], 1), fmt.clone(), samples.clone()], Some(1500)),
            ("after the samples", vec![fmt.clone(), samples.clone(), list(0)], Some(1500)),
            ("short format", vec![chunk(b"fmt ", &format[..14], 0), samples.clone()], Some(1500)),
            (
                "short format and odd list",
                vec![chunk(b"fmt ", &format[..14], 0), list(0), samples.clone()],
                Some(1500),
            ),
            (
                "no size of samples",
                vec![fmt.clone(), list(0), b"data\0\0\0\0".to_vec(), vec![7; 16_000]],
                Some(1000),
            ),
            ("format without rates", vec![chunk(b"fmt ", &format[..8], 0), samples.clone()], None),
            ("no samples", vec![fmt, list(0)], None),
        ] {
            let body = [b"RIFF\0\0\0\0WAVE".to_vec(), parts.concat()].concat();
            let mut store = crate::Store::with_limit(1 << 20);
            store.push(&body).unwrap();
            let handle = Handle::new(store.finish().handle().unwrap()).unwrap();
            let facts = super::super::container::facts(handle, "audio/wav").ok();
            assert_eq!(facts.and_then(|facts| facts.duration_ms), expected, "{name}");
        }
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
