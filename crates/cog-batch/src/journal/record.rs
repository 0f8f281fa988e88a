//! A record of the journal: the row, and where its line is in the results.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use tokio::sync::watch;

use super::{JournalError, open};
use crate::row::{Position, RowHash};

/// The length of a record.
pub(crate) const RECORD_LEN: usize = 36;
/// The length of a record without its checksum.
const CHECKED_LEN: usize = RECORD_LEN - 4;

/// The bit of a position that says that the provider did not answer the row.
const UNANSWERED: u64 = 1 << 63;

/// A record of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) row: u64,
    pub(crate) hash: RowHash,
    /// Whether the run succeeded.
    pub(crate) ok: bool,
    /// Whether the provider did not answer, so that the row runs again when the batch continues.
    pub(crate) is_unanswered: bool,
    /// The position of the line in the results.
    pub(crate) offset: u64,
    /// The length of the line, with its line break.
    pub(crate) length: u32,
    /// The CRC-32 of the line, with its line break.
    pub(crate) line_crc: u32,
}

impl Record {
    /// Returns the position after the line.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// Appends the bytes of the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.row.to_le_bytes());
        // No file has 2^63 bytes, so the highest bit of the position is free.
        let offset = self.offset | if self.is_unanswered { UNANSWERED } else { 0 };
        out.extend_from_slice(&offset.to_le_bytes());
        let hash = self.hash.to_u64();
        out.extend_from_slice(&low(hash).to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.line_crc.to_le_bytes());
        out.extend_from_slice(&(low(hash >> 32) << 1 | u32::from(self.ok)).to_le_bytes());
        let crc = crc32fast::hash(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    /// Reads a record. None if its checksum is wrong.
    pub(crate) fn decode(bytes: &[u8; RECORD_LEN]) -> Option<Self> {
        let (checked, crc) = bytes.split_at_checked(CHECKED_LEN)?;
        if crc32fast::hash(checked).to_le_bytes() != *crc {
            return None;
        }
        let (row, rest) = checked.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (line_crc, rest) = rest.split_first_chunk()?;
        let (rest, _) = rest.split_first_chunk()?;
        let rest = u32::from_le_bytes(*rest);
        let hash = u64::from(u32::from_le_bytes(*hash)) | u64::from(rest >> 1) << 32;
        Some(Self {
            row: u64::from_le_bytes(*row),
            hash: RowHash::from_u64(hash),
            ok: rest & 1 == 1,
            is_unanswered: u64::from_le_bytes(*offset) & UNANSWERED != 0,
            offset: u64::from_le_bytes(*offset) & !UNANSWERED,
            length: u32::from_le_bytes(*length),
            line_crc: u32::from_le_bytes(*line_crc),
        })
    }
}

/// Returns the lower half of a number.
#[expect(clippy::cast_possible_truncation, reason = "it is what is wanted")]
const fn low(number: u64) -> u32 {
    number as u32
}

// Reading the records of a journal, in one pass.

/// The bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// A position of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Record(Record),
    /// The record was removed because its line is damaged.
    Removed,
    /// The checksum is wrong.
    Damaged,
}

/// The records of a journal. A record that is cut at the end of the file is skipped.
pub(crate) struct Records<'a> {
    reader: BufReader<&'a File>,
}

impl<'a> Records<'a> {
    pub(crate) fn read(mut journal: &'a File, header_len: u64) -> io::Result<Self> {
        journal.seek(SeekFrom::Start(header_len))?;
        Ok(Self { reader: BufReader::with_capacity(BUFFER, journal) })
    }
}

impl Iterator for Records<'_> {
    type Item = io::Result<Slot>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = [0; RECORD_LEN];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) if bytes == [0; RECORD_LEN] => Some(Ok(Slot::Removed)),
            Ok(()) => Some(Ok(Record::decode(&bytes).map_or(Slot::Damaged, Slot::Record))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }
}

// Reading results while the batch runs.

/// The results that are written, read by a file handle with a position of its own.
#[derive(Debug)]
pub(super) struct StoredLines {
    path: PathBuf,
    /// The length up to which the results are written.
    written: watch::Receiver<u64>,
    /// None until the first line is read.
    file: Option<BufReader<File>>,
}

impl StoredLines {
    pub(super) fn new(path: &Path, written: watch::Receiver<u64>) -> Self {
        Self { path: path.to_owned(), written, file: None }
    }

    /// Returns a line, once it is written. None if it never will be, because the writer has ended.
    pub(super) async fn read(&mut self, at: Position) -> Result<Option<Vec<u8>>, JournalError> {
        if self.written.wait_for(|end| *end > at.0).await.is_err() {
            return Ok(None);
        }
        self.read_written(at).await.map(Some).map_err(|error| JournalError::read(&self.path, error))
    }

    async fn read_written(&mut self, at: Position) -> io::Result<Vec<u8>> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => BufReader::new(open::open_file(&self.path)?),
        };
        let read = tokio::task::spawn_blocking(move || read_line(&mut file, at).map(|line| (file, line)));
        // The text of a panic can contain anything.
        let (file, line) = read.await.map_err(|_| io::Error::other("a background task failed"))??;
        self.file = Some(file);
        Ok(line)
    }
}

/// Reads the line at a position, without its line break.
pub(crate) fn read_line(file: &mut BufReader<File>, at: Position) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(at.0))?;
    file.read_until(b'\n', &mut line)?;
    line.pop_if(|byte| *byte == b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let hash = RowHash::from_bytes(b"row");
        Record { row: 1 << 40, hash, ok: true, is_unanswered: true, offset: 1 << 50, length: 7, line_crc: 8 }
    }

    #[test]
    fn survives_its_way_through_bytes() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        assert_eq!(Record::decode(bytes.as_slice().try_into().unwrap()), Some(record()));
    }

    #[test]
    fn each_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        record().encode(&mut bytes);
        for bit in 0..RECORD_LEN * 8 {
            let mut flipped: [u8; RECORD_LEN] = bytes.as_slice().try_into().unwrap();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(Record::decode(&[0; RECORD_LEN]), None, "a block that was never written");
    }
}
