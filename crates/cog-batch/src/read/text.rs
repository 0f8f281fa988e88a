//! Text inputs: decompressed, decoded as UTF-8, and split into lines of a limited length.

use std::io::{self, BufRead as _, BufReader, Read};

use bytes::{Buf as _, Bytes, BytesMut};
use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::{
    Compression, Encoding, RowHash,
    row::{MAX_LINE, RowHasher},
};

/// The bytes that are decoded at once.
const BUFFER: usize = 64 << 10;

/// Returns the text of an input: without its compression, and in UTF-8. UTF-16 is recognized by its byte order mark.
///
/// # Errors
/// The beginning of the input cannot be read.
pub(super) fn decoded(
    input: impl Read + Send + 'static,
    compression: Option<Compression>,
    encoding: Option<Encoding>,
) -> io::Result<Box<dyn Read + Send>> {
    let input: Box<dyn Read + Send> = match compression {
        None => Box::new(input),
        Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(BufReader::new(input))),
        Some(Compression::Zstd) => Box::new(Zstd::new(input)),
    };
    let mut input = BufReader::with_capacity(BUFFER, input);
    let start = input.fill_buf()?;
    if let Some(name) = compressed_with(start) {
        let kind = io::ErrorKind::Unsupported;
        return Err(io::Error::new(kind, format!("it is compressed with {name}")));
    }
    let found = match start {
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    };
    Ok(match encoding.map(|encoding| encoding.0).or(found).filter(|encoding| *encoding != UTF_8) {
        None => Box::new(input),
        Some(encoding) => Box::new(Transcoder::new(input, encoding)),
    })
}

/// Returns the name of the compression of content that begins with these bytes.
fn compressed_with(start: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 7] = [
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x28\xb5\x2f\xfd", "Zstandard"),
        (b"\xfd7zXZ\0", "xz"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
        (b"PK\x03\x04", "ZIP"),
        (b"Rar!\x1a\x07", "RAR"),
        (b"\x04\x22\x4d\x18", "LZ4"),
    ];
    let found = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)).map(|(_, name)| *name);
    let is_bzip2 = start.starts_with(b"BZh") && start.get(4..10) == Some(b"1AY&SY");
    found.or_else(|| is_bzip2.then_some("bzip2"))
}

/// Reads Zstandard: frames one after another, as parallel compressors and `cat` write them.
struct Zstd<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    /// Whether the decoder is in a frame.
    is_open: bool,
}

impl<R: Read> Zstd<R> {
    fn new(input: R) -> Self {
        Self { input: BufReader::new(input), decoder: FrameDecoder::new(), is_open: false }
    }

    /// Opens the next frame. Returns false at the end of the input.
    fn open(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.is_open = true;
                    return Ok(true);
                }
                // Frames of metadata, such as the index of a seekable file.
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.input.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() && (self.is_open || self.open()?) {
            if self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let decoded =
                    self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(|error| damaged(&error))?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            if self.decoder.is_finished() {
                // The decoder computes the checksum and leaves the comparison to its caller.
                let stored = self.decoder.get_checksum_from_data();
                if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
                }
                self.is_open = false;
            }
        }
        Ok(0)
    }
}

fn damaged(error: &dyn std::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is not Zstandard: {error}"))
}

/// Converts a text to UTF-8. Bytes that the encoding does not have end the input: a replacement would change a value in silence.
struct Transcoder<R> {
    input: BufReader<R>,
    decoder: Decoder,
    text: Vec<u8>,
    /// The part of the text that was not read yet.
    start: usize,
    end: usize,
    is_ended: bool,
}

impl<R: Read> Transcoder<R> {
    fn new(input: BufReader<R>, encoding: &'static encoding_rs::Encoding) -> Self {
        let decoder = encoding.new_decoder_with_bom_removal();
        Self { input, decoder, text: vec![0; BUFFER], start: 0, end: 0, is_ended: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        let bytes = self.input.fill_buf()?;
        let is_last = bytes.is_empty();
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(bytes, &mut self.text, is_last);
        self.input.consume(read);
        self.start = 0;
        self.end = written;
        match result {
            DecoderResult::InputEmpty => self.is_ended = is_last,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => {
                let name = self.decoder.encoding().name();
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("it has bytes that {name} does not have"),
                ));
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.end && !self.is_ended {
            self.fill()?;
        }
        let mut text = self.text.get(self.start..self.end).unwrap_or_default();
        let read = text.read(buffer)?;
        self.start += read;
        Ok(read)
    }
}

// Lines of a limited length.

/// The bytes that are read at once, and of the lines after which a group of rows ends, so that rows that are read ahead take little
/// memory.
const GROUP: usize = 128 << 10;
/// The least that a line counts in a group.
const MIN_LINE: usize = 256;

/// Reads lines. Of a line that is too long, only the hash is kept.
///
/// The lines of a group share memory, so that the thread that uses them does not free each one: memory that one thread allocates
/// and another frees takes a lock.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// What was read and is in no line yet.
    block: BytesMut,
    /// The bytes of the block that contain no line break.
    searched: usize,
    number: u64,
    /// The bytes of the lines in the current group.
    group: usize,
}

/// A line without its end.
pub(super) enum Line {
    /// The bytes of the line.
    Text(Bytes),
    /// The line is longer than [`MAX_LINE`].
    TooLarge(RowHash),
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        let input = BufReader::with_capacity(GROUP, input);
        Self { input, block: BytesMut::new(), searched: 0, number: 0, group: 0 }
    }

    /// Returns the bytes that were read and that no line contains yet.
    pub(super) fn buffered(&self) -> usize {
        self.block.len() + self.input.buffer().len()
    }

    /// Returns the number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether a group of rows ends after the last line: the next one needs more input than was read, or the group is
    /// large.
    pub(super) fn ends_group(&mut self) -> bool {
        let is_end = self.group >= GROUP || self.line_end().is_none();
        if is_end {
            self.group = 0;
        }
        is_end
    }

    /// Returns the first bytes of the input, without taking them.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Skips bytes that were peeked.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.input.consume(bytes);
    }

    /// Returns the next line; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(end) = self.line_end() {
                let line = self.block.split_to(end).freeze();
                self.block.advance(1);
                return Ok(Some(self.line(line)));
            }
            if self.block.len() > MAX_LINE {
                return self.skip_line().map(Some);
            }
            if !self.fill()? {
                let last = self.block.split().freeze();
                self.searched = 0;
                return Ok((!last.is_empty()).then(|| self.line(last)));
            }
        }
    }

    /// Returns where the first line of the block ends.
    fn line_end(&mut self) -> Option<usize> {
        let rest = self.block.get(self.searched..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map(|at| self.searched + at);
        self.searched = end.unwrap_or(self.block.len());
        end
    }

    /// Adds what is read at once to the block. Returns false at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        let read = self.input.fill_buf()?;
        let length = read.len();
        if length > self.block.capacity() - self.block.len() {
            self.block.reserve(GROUP); // copies the beginning of a line, if lines share the memory before it
        }
        self.block.extend_from_slice(read);
        self.input.consume(length);
        Ok(length > 0)
    }

    fn line(&mut self, mut line: Bytes) -> Line {
        self.searched = 0;
        self.count(line.len());
        if line.len() > MAX_LINE {
            return Line::TooLarge(RowHash::from_bytes(&line));
        }
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Line::Text(line)
    }

    fn count(&mut self, length: usize) {
        self.number += 1;
        self.group += length.max(MIN_LINE);
    }

    /// Reads a line that is too long.
    fn skip_line(&mut self) -> io::Result<Line> {
        let mut hash = RowHasher::new();
        loop {
            let end = self.line_end();
            let part = self.block.split_to(end.unwrap_or(self.block.len()));
            hash.add(&part);
            self.searched = 0;
            if end.is_some() {
                self.block.advance(1);
                break;
            }
            if !self.fill()? {
                break;
            }
        }
        self.block = BytesMut::from(&*self.block); // the memory of the line is not kept
        self.count(MAX_LINE);
        Ok(Line::TooLarge(hash.finish()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use encoding_rs::{SHIFT_JIS, WINDOWS_1252};
    use flate2::{Compression as Level, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn read(
        bytes: Vec<u8>,
        compression: Option<Compression>,
        encoding: Option<&'static encoding_rs::Encoding>,
    ) -> io::Result<String> {
        let mut text = String::new();
        decoded(io::Cursor::new(bytes), compression, encoding.map(Encoding))?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    #[test]
    fn members_and_frames_follow_one_another() {
        let long = "row\n".repeat(100_000);
        let gzipped = [gzip(&long), gzip("two")].concat();
        assert_eq!(read(gzipped, Some(Compression::Gzip), None).unwrap(), format!("{long}two"));
        // A frame of metadata between two of data.
        let skipped = [&[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [zstd(&long), skipped, zstd("two")].concat();
        assert_eq!(read(frames, Some(Compression::Zstd), None).unwrap(), format!("{long}two"));
    }

    #[test]
    fn what_is_cut_or_not_compressed_is_an_error() {
        for (compression, whole) in
            [(Compression::Gzip, gzip("one two three")), (Compression::Zstd, zstd("one two three"))]
        {
            for bytes in [whole[..whole.len() - 3].to_vec(), b"text,id\n".to_vec()] {
                assert!(read(bytes, Some(compression), None).is_err(), "{compression:?}");
            }
        }
    }

    #[test]
    fn text_becomes_utf8() {
        let text = "text\ncafé 日本\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read([vec![0xFF, 0xFE], little.clone()].concat(), None, None).unwrap(), text);
        assert_eq!(read([vec![0xFE, 0xFF], big].concat(), None, None).unwrap(), text);
        assert_eq!(read(little, None, Some(UTF_16LE)).unwrap(), text);
        assert_eq!(read(b"caf\xE9".to_vec(), None, Some(WINDOWS_1252)).unwrap(), "café");
        assert_eq!(read(SHIFT_JIS.encode("日本").0.into_owned(), None, Some(SHIFT_JIS)).unwrap(), "日本");
        let wrong = read(b"\xFF\xFF".to_vec(), None, Some(SHIFT_JIS)).unwrap_err();
        assert!(wrong.to_string().contains("Shift_JIS"), "{wrong}");
    }

    /// Returns the numbers of lines in the groups of this input.
    fn groups(input: &str) -> Vec<u64> {
        let mut lines = Lines::new(input.as_bytes());
        let mut groups = Vec::new();
        let mut before = 0;
        while lines.next().unwrap().is_some() {
            if lines.ends_group() {
                groups.push(lines.number() - before);
                before = lines.number();
            }
        }
        groups
    }

    /// Returns the lines of an input that is read in these parts: their texts, and the hashes of those that are too long.
    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let parts = parts
            .iter()
            .fold(Box::new(io::empty()) as Box<dyn Read>, |all, part| Box::new(Read::chain(all, *part)));
        let mut lines = Lines::new(parts);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => String::from_utf8(text.into()).unwrap(),
                Line::TooLarge(hash) => format!("{:08x}", hash.to_u32()),
            });
        }
        found
    }

    #[test]
    fn lines_are_the_same_in_any_parts() {
        let text = "one\n\ntwo\r\n\r\n é \r\nlast";
        let expected = ["one", "", "two", "", " é ", "last"];
        assert_eq!(lines(&[text.as_bytes()]), expected);
        assert_eq!(lines(&text.as_bytes().chunks(1).collect::<Vec<_>>()), expected);
        assert_eq!(lines(&[]), Vec::<String>::new());
    }

    #[test]
    fn line_that_is_too_long_has_the_hash_of_its_bytes() {
        let long = "x".repeat(MAX_LINE + 1);
        let hash = format!("{:08x}", RowHash::from_bytes(long.as_bytes()).to_u32());
        let (begin, end) = long.as_bytes().split_at(MAX_LINE / 3);
        assert_eq!(lines(&[b"a\n", begin, end, b"\nb"]), ["a", &hash, "b"]);
        assert_eq!(lines(&[begin, end]), [hash]);
        assert_eq!(lines(&[&long.as_bytes()[1..]])[0].len(), MAX_LINE);
    }

    #[test]
    fn line_that_has_not_arrived_does_not_delay_the_lines_before_it() {
        let mut lines = Lines::new(Read::chain(&b"1\n2\n3"[..], &b"\n4\n"[..]));
        let mut next = || (lines.next().unwrap().is_some(), lines.ends_group(), lines.number());
        assert_eq!(
            [next(), next(), next(), next()],
            [(true, false, 1), (true, true, 2), (true, false, 3), (true, true, 4)]
        );
    }

    #[test]
    fn group_of_rows_that_are_read_ahead_is_small() {
        let line = format!("{}\n", "x".repeat(1_000));
        let found = groups(&line.repeat(2_000));
        assert!(found.iter().all(|lines| (1..=GROUP as u64 / 1_000 + 1).contains(lines)), "{found:?}");
        assert_eq!(found.iter().sum::<u64>(), 2_000);
        assert!(groups(&"\n".repeat(10_000)).iter().all(|lines| *lines <= 512), "empty lines count, too");
    }
}
