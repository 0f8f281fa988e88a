//! Reading the records of a journal, in one pass.

use std::{
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom},
};

use super::{RECORD_LEN, Record};

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
