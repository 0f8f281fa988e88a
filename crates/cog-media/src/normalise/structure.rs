//! Reads the structure of an image, whatever its type.

use std::io::{BufRead as _, BufReader, Read, Seek, SeekFrom};

use super::{gif, jpeg, webp};
use crate::{MediaError, Store, Stored};

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

// A plan for a new file: ranges of the original file and new bytes.

/// A file composed of ranges of another file. Nothing is decoded, so no pixel changes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    segments: Vec<Segment>,
}

#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Range { from: u64, to: u64 },
    New(Vec<u8>),
}

impl Plan {
    /// Keeps the bytes `from..to`.
    pub(super) fn keep(&mut self, from: u64, to: u64) {
        match self.segments.last_mut() {
            Some(Segment::Range { to: end, .. }) if *end == from => *end = to,
            _ => self.segments.push(Segment::Range { from, to }),
        }
    }

    /// Inserts new bytes.
    pub(super) fn insert(&mut self, bytes: impl Into<Vec<u8>>) {
        self.segments.push(Segment::New(bytes.into()));
    }

    /// Appends another plan.
    pub(super) fn append(&mut self, other: Plan) {
        self.segments.extend(other.segments);
    }

    /// Returns the size of the new file.
    pub(super) fn len(&self) -> u64 {
        self.segments.iter().map(Segment::len).sum()
    }

    /// Creates the new file.
    ///
    /// # Errors
    /// If the disk cannot be read or written.
    pub(super) fn execute(&self, stored: &Stored) -> Result<Stored, MediaError> {
        let mut store = Store::unhashed(self.len());
        let mut reader = stored.reader();
        for segment in &self.segments {
            match segment {
                Segment::New(bytes) => store.push(bytes)?,
                Segment::Range { from, to } => {
                    reader.seek(SeekFrom::Start(*from))?;
                    store.push_all((&mut reader).take(to - from))?;
                }
            }
        }
        Ok(store.finish())
    }
}

impl Segment {
    fn len(&self) -> u64 {
        match self {
            Self::Range { from, to } => to - from,
            Self::New(bytes) => bytes.len() as u64,
        }
    }
}

/// A position in a file that is read by structure.
pub(super) struct Scan<R> {
    reader: BufReader<R>,
    at: u64,
    length: u64,
}

/// The file ends early or has wrong lengths.
#[derive(Debug)]
pub(super) struct StructureError;

impl StructureError {
    /// Returns the error for an image of this type.
    pub(super) fn into_error(self, media_type: &'static str) -> MediaError {
        MediaError::Damaged { media_type, what: "the structure is damaged or truncated" }
    }
}

impl<R: Read + Seek> Scan<R> {
    /// Starts at the beginning of a file of this length.
    pub(super) fn new(reader: R, length: u64) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), at: 0, length }
    }

    /// Starts with a small buffer, for reading only the chunk headers of a file.
    #[cfg(feature = "decode")]
    pub(super) fn with_small_buffer(reader: R, length: u64) -> Self {
        Self { reader: BufReader::with_capacity(512, reader), at: 0, length }
    }

    /// Returns the position.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Returns the length of the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads the next bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], StructureError> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|_| StructureError)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// Returns the next two bytes without consuming them.
    pub(super) fn peek(&mut self) -> Result<[Option<u8>; 2], StructureError> {
        // At the end of the buffer only one byte is available.
        if self.reader.buffer().len() < 2 {
            let at = self.at;
            self.reader.seek(SeekFrom::Start(at)).map_err(|_| StructureError)?;
        }
        let ahead = self.reader.fill_buf().map_err(|_| StructureError)?;
        Ok([ahead.first().copied(), ahead.get(1).copied()])
    }

    /// Reads the next byte.
    pub(super) fn byte(&mut self) -> Result<u8, StructureError> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Skips bytes, which must exist.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), StructureError> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.length).ok_or(StructureError)?;
        self.reader
            .seek_relative(i64::try_from(bytes).map_err(|_| StructureError)?)
            .map_err(|_| StructureError)?;
        self.at = end;
        Ok(())
    }

    /// Reads bytes, which must exist, in parts.
    pub(super) fn read(&mut self, bytes: u64, mut part: impl FnMut(&[u8])) -> Result<(), StructureError> {
        let end = self.at.checked_add(bytes).filter(|end| *end <= self.length).ok_or(StructureError)?;
        while self.at < end {
            let ahead = self.reader.fill_buf().map_err(|_| StructureError)?;
            let left = usize::try_from(end - self.at).unwrap_or(usize::MAX);
            let taken =
                ahead.get(..left.min(ahead.len())).filter(|taken| !taken.is_empty()).ok_or(StructureError)?;
            part(taken);
            let taken = taken.len();
            self.reader.consume(taken);
            self.at += taken as u64;
        }
        Ok(())
    }

    /// Skips to the next such byte. Returns false at the end of the file.
    pub(super) fn skip_to(&mut self, byte: u8) -> Result<bool, StructureError> {
        loop {
            let ahead = self.reader.fill_buf().map_err(|_| StructureError)?;
            if ahead.is_empty() {
                return Ok(false);
            }
            let found = memchr::memchr(byte, ahead);
            let passed = found.unwrap_or(ahead.len());
            self.reader.consume(passed);
            self.at += passed as u64;
            if found.is_some() {
                return Ok(true);
            }
        }
    }
}
