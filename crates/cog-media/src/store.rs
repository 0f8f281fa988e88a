//! Stores bytes while they arrive: counted, hashed, in memory up to a limit.

use std::{
    fs::File,
    io::{Read, Seek as _, SeekFrom, Write as _},
    sync::Arc,
};

use base64_simd::STANDARD;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::{MediaError, MediaRules, kind::HEAD};

/// Larger content is stored on disk.
const IN_MEMORY: usize = 1 << 20;

/// Receives bytes up to a limit.
///
/// Up to 1 MiB is stored in memory, more in an unnamed temporary file. The file is removed with the last [`Stored`]
/// that refers to it, even if the program is killed.
pub struct Store {
    limit: u64,
    /// The rules by which content over the limit is refused; none for content of any type.
    rules: Option<Box<MediaRules>>,
    /// Whether the limit is the one of the kind of content, which the first bytes show.
    is_of_kind: bool,
    /// The declared length.
    declared: u64,
    /// Whether a length over the limit was declared, so that only the type is still of interest.
    is_too_long: bool,
    in_memory: usize,
    length: u64,
    hash: Option<Sha256>,
    head: Vec<u8>,
    file: Option<File>,
}

/// Complete content. Clones share it.
#[derive(Debug, Clone)]
pub struct Stored {
    location: Location,
    length: u64,
    sha256: Option<[u8; 32]>,
}

#[derive(Debug, Clone)]
enum Location {
    Memory(Bytes),
    /// The first bytes, and the complete content on disk.
    Disk(Bytes, Arc<File>),
}

impl Store {
    /// Creates a store that refuses more than this many bytes while they arrive (SPEC 11.1).
    pub fn with_limit(limit: u64) -> Self {
        Self { hash: Some(Sha256::new()), ..Self::unhashed(limit) }
    }

    /// Creates a store for a media file under these rules. Too much content of a type that they do not accept is refused for its type
    /// (ruling R80).
    pub fn for_media(rules: &MediaRules) -> Self {
        Self { rules: Some(Box::new(rules.clone())), ..Self::with_limit(rules.max_bytes_of_any()) }
    }

    /// Creates a store without a hash, for generated content.
    pub(crate) fn unhashed(limit: u64) -> Self {
        Self {
            limit,
            rules: None,
            is_of_kind: false,
            declared: 0,
            is_too_long: false,
            in_memory: IN_MEMORY,
            length: 0,
            hash: None,
            head: Vec::new(),
            file: None,
        }
    }

    /// Sets the maximum bytes in memory, for callers that store many. The first bytes, which decide the type, are
    /// always in memory.
    #[must_use]
    pub fn in_memory(self, max: usize) -> Self {
        Self { in_memory: max.max(HEAD), ..self }
    }

    /// Refuses a declared length over the limit before any bytes arrive, or, if the type decides why, once the first ones have arrived.
    ///
    /// # Errors
    /// [`MediaError::TooLarge`].
    pub fn expect(&mut self, length: u64) -> Result<(), MediaError> {
        self.declared = length;
        if length <= self.limit {
            return Ok(());
        }
        self.is_too_long = true;
        if self.rules.is_some() { Ok(()) } else { Err(MediaError::TooLarge { limit: self.limit }) }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`MediaError::TooLarge`] at the first byte over the limit, or [`MediaError::Unsupported`] if the type of the content is not
    /// accepted; an error if the disk is full.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        self.limit_by_kind(bytes);
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.length > self.limit || self.is_too_long && self.length >= HEAD as u64 {
            return Err(self.refusal(bytes));
        }
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        if self.file.is_none() && self.head.len() + bytes.len() > self.in_memory {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.head)?;
            let missing = HEAD.saturating_sub(self.head.len()).min(bytes.len());
            self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
            self.head.truncate(HEAD);
            self.head.shrink_to_fit();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.head.extend_from_slice(bytes),
        }
        Ok(())
    }

    /// Returns why content is refused whose declared length is over the limit, if it ends before its type is known.
    #[cfg(feature = "fetch")]
    pub(crate) fn refused_by_length(&self) -> Option<MediaError> {
        let too_large = MediaError::TooLarge { limit: self.limit };
        self.is_too_long.then(|| if self.head.is_empty() { too_large } else { self.refusal(&[]) })
    }

    /// Lowers the limit to the one of the kind of content, once its first bytes have arrived: a picture without end is not received up
    /// to the limit of a video.
    fn limit_by_kind(&mut self, bytes: &[u8]) {
        let Some(rules) = self.rules.as_ref().filter(|_| !self.is_of_kind) else { return };
        if self.head.len() + bytes.len() < HEAD {
            return;
        }
        self.limit = rules.max_bytes_by_type(&self.head_with(bytes), self.limit);
        self.is_of_kind = true;
        self.is_too_long |= self.declared > self.limit;
    }

    /// Returns the first bytes, of which these are the next.
    fn head_with(&self, bytes: &[u8]) -> Vec<u8> {
        let missing = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        [&self.head, bytes.get(..missing).unwrap_or_default()].concat()
    }

    /// Returns why the content is refused, of which these bytes are too many.
    fn refusal(&self, bytes: &[u8]) -> MediaError {
        match &self.rules {
            Some(rules) => rules.refusal(&self.head_with(bytes), self.limit),
            None => MediaError::TooLarge { limit: self.limit },
        }
    }

    /// Appends everything from a reader.
    ///
    /// # Errors
    /// As [`Store::push`], and errors of the reader.
    pub fn push_all(&mut self, mut reader: impl Read) -> Result<(), MediaError> {
        let mut block = vec![0; 64 * 1024];
        loop {
            let read = reader.read(&mut block)?;
            match block.get(..read) {
                Some(read) if !read.is_empty() => self.push(read)?,
                _ => return Ok(()),
            }
        }
    }

    /// Returns the complete content.
    pub fn finish(self) -> Stored {
        let head = Bytes::from(self.head);
        let location = match self.file {
            Some(file) => Location::Disk(head, Arc::new(file)),
            None => Location::Memory(head),
        };
        Stored { location, length: self.length, sha256: self.hash.map(|hash| hash.finalize().into()) }
    }
}

impl Stored {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the SHA-256 of received content.
    pub fn sha256(&self) -> Option<&[u8; 32]> {
        self.sha256.as_ref()
    }

    /// Returns whether all bytes are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.location, Location::Memory(_))
    }

    /// Returns the first bytes, which decide the type.
    pub fn head(&self) -> &[u8] {
        let (Location::Memory(head) | Location::Disk(head, _)) = &self.location;
        head.get(..HEAD).unwrap_or(head)
    }

    /// Returns the content as an open unnamed file for another process; content in memory is written to one.
    ///
    /// All handles share one file position: read at explicit offsets.
    ///
    /// # Errors
    /// If the disk is full or too many files are open.
    pub(crate) fn handle(&self) -> std::io::Result<File> {
        let mut file = match &self.location {
            Location::Memory(bytes) => {
                let mut file = tempfile::tempfile()?;
                file.write_all(bytes)?;
                file
            }
            Location::Disk(_, file) => file.try_clone()?,
        };
        file.rewind()?;
        Ok(file)
    }

    /// Returns the content with only its first bytes in memory. Blocks on the disk.
    ///
    /// # Errors
    /// If the disk is full.
    pub(crate) fn on_disk(&self) -> std::io::Result<Self> {
        let location = match &self.location {
            Location::Memory(bytes) if bytes.len() > HEAD => {
                Location::Disk(Bytes::copy_from_slice(self.head()), Arc::new(self.handle()?))
            }
            location => location.clone(),
        };
        Ok(Self { location, ..self.clone() })
    }

    /// Returns a reader from the start. Readers are independent of each other.
    pub fn reader(&self) -> impl Read + std::io::Seek + use<> {
        Reader { stored: self.clone(), at: 0 }
    }
}

/// A reader of stored content.
struct Reader {
    stored: Stored,
    at: u64,
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = match &self.stored.location {
            Location::Memory(bytes) => {
                let from = usize::try_from(self.at).unwrap_or(usize::MAX);
                bytes.get(from..).unwrap_or_default().read(into)?
            }
            Location::Disk(_, file) => read_at(file, into, self.at)?,
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl std::io::Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.at = seek_position(self.at, self.stored.length, to)?;
        Ok(self.at)
    }
}

/// Returns the position after a seek in content of this length.
pub(crate) fn seek_position(at: u64, length: u64, to: SeekFrom) -> std::io::Result<u64> {
    let position = match to {
        SeekFrom::Start(at) => Some(at),
        SeekFrom::End(offset) => length.checked_add_signed(offset),
        SeekFrom::Current(offset) => at.checked_add_signed(offset),
    };
    position.ok_or_else(|| std::io::ErrorKind::InvalidInput.into())
}

/// Reads at an offset without moving the shared file position.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, into: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, at)
}

// Base64, block by block.

/// How many base64 digits are decoded at once; a multiple of four, so that no group is split.
const BLOCK: usize = 64 * 1024;

/// Decodes a media file from base64 (SPEC 4.2.2, RFC 4648 section 4), block by block.
///
/// White space, line breaks, the URL alphabet and missing padding are refused: two decoders could read them
/// differently.
///
/// # Errors
/// [`MediaError::NotBase64`], and as [`Store::push`]. Text that is too long for the limit is not decoded.
pub fn decode_base64(text: &str, mut store: Store) -> Result<Stored, MediaError> {
    if text.is_empty() {
        return Err(MediaError::NotBase64 { what: "it is empty" });
    }
    if !text.len().is_multiple_of(4) {
        return Err(MediaError::NotBase64 { what: "the length is not a multiple of four" });
    }
    store.expect(decoded_length(text))?;
    let mut block = vec![0; BLOCK / 4 * 3];
    let mut left = text.len();
    for digits in text.as_bytes().chunks(BLOCK) {
        left -= digits.len();
        if left > 0 && digits.ends_with(b"=") {
            return Err(MediaError::NotBase64 { what: "padding in the middle" });
        }
        let bytes = STANDARD
            .decode(digits, base64_simd::Out::from_slice(&mut block))
            .map_err(|_| MediaError::NotBase64 { what: "invalid character or padding" })?;
        store.push(bytes)?;
    }
    Ok(store.finish())
}

/// Encodes bytes as base64, for `data:` URLs and request bodies.
///
/// # Errors
/// If the disk cannot be read.
pub fn encode_base64(stored: &Stored) -> Result<String, MediaError> {
    let capacity = stored.len().div_ceil(3) * 4;
    let mut text = String::with_capacity(usize::try_from(capacity).unwrap_or_default());
    let mut block = vec![0; BLOCK / 4 * 3];
    let mut reader = stored.reader();
    loop {
        let mut filled = 0;
        // Only the last block may be incomplete, because only it ends in padding.
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match reader.read(rest)? {
                0 => break,
                read => filled += read,
            }
        }
        match block.get(..filled) {
            Some(bytes) if !bytes.is_empty() => STANDARD.encode_append(bytes, &mut text),
            _ => return Ok(text),
        }
    }
}

/// Returns how many bytes padded base64 decodes to.
fn decoded_length(text: &str) -> u64 {
    let padding = text.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    (text.len() / 4 * 3 - padding) as u64
}

// Threads that may block.

/// Runs work that grows with the size of a file on a thread that may block.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MediaError> + Send + 'static,
) -> Result<T, MediaError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| task_failed())?
}

/// Returns the error of work on another thread that panicked. The text of the panic can contain anything, so it is not a part of the
/// message; the panic hook has written it.
fn task_failed() -> std::io::Error {
    std::io::Error::other("a background task failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(bytes: &[u8]) -> Stored {
        let mut store = Store::with_limit(u64::MAX);
        bytes.chunks(100_000).for_each(|chunk| store.push(chunk).unwrap());
        store.finish()
    }

    fn read(stored: &Stored) -> Vec<u8> {
        let mut bytes = Vec::new();
        stored.reader().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn content_of_any_size_round_trips() {
        for length in [0, 1, HEAD, IN_MEMORY, IN_MEMORY + 1, 3 * IN_MEMORY + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let stored = stored(&bytes);
            assert_eq!(stored.len(), length as u64);
            assert!(read(&stored) == bytes && read(&stored) == bytes, "{length} bytes");
            assert_eq!(stored.sha256().unwrap()[..], Sha256::digest(&bytes)[..]);
            assert!(bytes.starts_with(stored.head()));
        }
    }

    #[test]
    fn limit_is_the_one_of_the_kind_once_the_type_is_known() {
        const MB: usize = 1 << 20;
        let block = vec![0; 64 * 1024];
        let accepted = |start: &[u8], declared: u64| {
            let mut store = Store::for_media(&MediaRules::default());
            assert!(store.expect(declared).is_ok());
            let mut pushed = 0;
            for bytes in std::iter::once(start).chain(std::iter::repeat(block.as_slice())) {
                if let Err(error) = store.push(bytes) {
                    let MediaError::TooLarge { limit } = error else { panic!("{error}") };
                    return ((pushed + bytes.len()) / MB, limit as usize / MB);
                }
                pushed += bytes.len();
            }
            unreachable!()
        };
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(accepted(png, 0), (20, 20));
        assert_eq!(accepted(b"ID3\x04\0\0\0\0\0\0", 0), (25, 25));
        assert_eq!(accepted(b"%PDF-1.7\n", 0), (50, 50));
        assert_eq!(accepted(b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2", 0), (100, 100));
        // A declared length that only a video may have.
        assert_eq!(accepted(png, 30 * MB as u64), (0, 20));
    }

    #[test]
    fn large_content_is_not_in_memory() {
        let stored = stored(&vec![7; 3 * IN_MEMORY]);
        assert!(matches!(&stored.location, Location::Disk(head, _) if head.len() <= HEAD));
    }

    #[test]
    fn first_bytes_stay_in_memory_for_any_chunking() {
        let bytes: Vec<u8> = (0..IN_MEMORY + 9).map(|at| u8::try_from(at % 251).unwrap()).collect();
        for (first, in_memory) in
            [(0, 0), (1, 0), (HEAD - 1, 0), (0, IN_MEMORY), (HEAD, IN_MEMORY), (IN_MEMORY, IN_MEMORY)]
        {
            let mut store = Store::with_limit(u64::MAX).in_memory(in_memory);
            store.push(&bytes[..first]).unwrap();
            store.push(&bytes[first..]).unwrap();
            let stored = store.finish();
            assert!(stored.head() == &bytes[..HEAD] && read(&stored) == bytes, "first {first}");
        }
    }

    #[test]
    fn small_content_can_be_moved_to_disk() {
        for length in [0, HEAD, HEAD + 1, 3 * IN_MEMORY] {
            let bytes = vec![7; length];
            let moved = stored(&bytes).on_disk().unwrap();
            assert!(
                matches!(&moved.location, Location::Disk(head, _) | Location::Memory(head) if head.len() <= HEAD)
            );
            assert!(read(&moved) == bytes && moved.sha256() == stored(&bytes).sha256(), "{length} bytes");
        }
    }

    #[test]
    fn readers_are_independent() {
        for length in [10_usize, 2 * IN_MEMORY] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let stored = stored(&bytes);
            let mut one = stored.reader();
            let mut other = stored.reader();
            let mut ends = [[0; 2]; 2];
            one.seek(SeekFrom::End(-2)).unwrap();
            other.read_exact(&mut ends[0]).unwrap();
            one.read_exact(&mut ends[1]).unwrap();
            assert_eq!((&ends[0][..], &ends[1][..]), (&bytes[..2], &bytes[length - 2..]));
        }
    }

    #[tokio::test]
    async fn text_of_a_panic_is_not_in_the_error() {
        let failed = run_blocking::<()>(|| panic!("canary")).await.unwrap_err();
        assert_eq!(failed.to_string(), "cannot store the media file: a background task failed");
    }

    #[test]
    fn too_much_content_of_an_unlisted_kind_is_refused_for_its_kind() {
        let rules = MediaRules {
            kinds: vec![cog_spec::Modality::Image],
            max_bytes: Some(100_000),
            ..MediaRules::default()
        };
        let movie = [b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2".as_slice(), &[0; 200_000]].concat();
        let image = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0; 200_000]].concat();
        for block in [1, 7_000, 64 * 1024, 300_000] {
            for declared in [None, Some(200_000)] {
                let refused = |content: &[u8]| {
                    let mut store = Store::for_media(&rules);
                    declared.map_or(Ok(()), |length| store.expect(length)).unwrap();
                    content.chunks(block).try_for_each(|chunk| store.push(chunk)).unwrap_err()
                };
                assert_eq!(refused(&movie).code(), cog_spec::Code::UnsupportedMediaType, "{block}");
                assert_eq!(refused(&[b'a'; 200_000]).code(), cog_spec::Code::UnsupportedMediaType, "{block}");
                assert!(matches!(refused(&image), MediaError::TooLarge { limit: 100_000 }), "{block}");
            }
        }
    }

    #[test]
    fn limit_is_exact_to_the_byte() {
        let mut store = Store::with_limit(10);
        store.push(&[0; 10]).unwrap();
        assert!(matches!(store.push(&[0]), Err(MediaError::TooLarge { limit: 10 })));
    }
}

#[cfg(test)]
mod base64_tests {
    use super::*;

    fn decode(text: &str) -> Result<Vec<u8>, MediaError> {
        let mut bytes = Vec::new();
        decode_base64(text, Store::with_limit(1 << 24))?.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn decodes_base64_of_any_length() {
        for length in [1, 2, 3, BLOCK / 4 * 3 - 1, BLOCK / 4 * 3, BLOCK / 4 * 3 + 1, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 256).unwrap()).collect();
            let text = STANDARD.encode_to_string(&bytes);
            assert!(decode(&text).unwrap() == bytes, "{length} bytes");
            let stored = decode_base64(&text, Store::with_limit(1 << 24)).unwrap();
            assert!(encode_base64(&stored).unwrap() == text, "{length} bytes");
        }
    }

    #[test]
    fn rejects_invalid_base64() {
        let middle = format!("{}=={}", "QUJD".repeat(BLOCK / 4 - 1) + "QQ", "QUJD");
        for bad in
            ["", "QQ", "QQ=", "Q===", "QU=J", "QQ==\n", "QQ==QUJD", "-_-_", "***=", "QR==", "ÄÄ", &middle]
        {
            assert!(matches!(decode(bad), Err(MediaError::NotBase64 { .. })), "{bad:.40}");
        }
    }

    #[test]
    fn limit_counts_decoded_bytes_and_is_checked_first() {
        let at_the_limit = STANDARD.encode_to_string([7; 10]);
        assert!(decode_base64(&at_the_limit, Store::with_limit(10)).is_ok());
        let past_it = STANDARD.encode_to_string([7; 11]);
        assert!(matches!(
            decode_base64(&past_it, Store::with_limit(10)),
            Err(MediaError::TooLarge { limit: 10 })
        ));
        let endless = "*".repeat(1 << 20);
        assert!(matches!(decode_base64(&endless, Store::with_limit(10)), Err(MediaError::TooLarge { .. })));
    }
}
