//! The bytes of a text file, decompressed and as UTF-8.

use std::io::{self, BufRead as _, BufReader, Read};

use encoding_rs::{Decoder, DecoderResult, UTF_8, UTF_16BE, UTF_16LE};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::{Compression, Encoding};

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
    let found = match input.fill_buf()? {
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    };
    Ok(match encoding.map(|encoding| encoding.0).or(found).filter(|encoding| *encoding != UTF_8) {
        None => Box::new(input),
        Some(encoding) => Box::new(Transcoder::new(input, encoding)),
    })
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
}
