//! The results of a batch, in the order of the input or as they finished.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
};

use super::{COMPLETE, DONE, Files, JournalError, JournalPaths, RECORD_LEN, Records, Slot, remove_records};

/// The results of a batch whose journal is closed. The journal is locked until they are dropped.
#[derive(Debug)]
pub struct Results {
    files: Files,
    /// The first row whose result does not count, if the input may have changed.
    end: Option<u64>,
}

/// The rows whose results in the journal are of a row that the batch no longer has.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Rows that are excluded, and were other rows before.
    pub(crate) rows: Vec<u64>,
    /// The first row after the input.
    pub(crate) from: Option<u64>,
}

/// The order of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The order of the input.
    #[default]
    Input,
    /// The order in which the runs ended.
    Free,
}

/// The result of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLine {
    /// The row.
    pub row: u64,
    /// Whether its run succeeded.
    pub ok: bool,
    /// The result: a JSON object, without a line break.
    pub json: Vec<u8>,
}

/// The results of a batch, each row once.
pub struct Lines<'a> {
    entries: std::vec::IntoIter<Entry>,
    file: &'a File,
    /// The position in the file.
    position: u64,
    paths: &'a JournalPaths,
}

/// Where the line of a row is. The order of the fields is the order of sorting: the newest comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    row: u64,
    /// The position of the line, and in the lowest bit whether its run succeeded.
    place: u64,
    length: u32,
    crc: u32,
}

impl Results {
    pub(crate) fn new(files: Files) -> Self {
        Self { files, end: None }
    }

    /// Returns the paths of the journal and the results.
    #[must_use]
    pub fn paths(&self) -> &JournalPaths {
        &self.files.paths
    }

    /// Returns the result of each row. An index of 24 bytes per row is held in memory.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn lines(&mut self, order: Order) -> Result<Lines<'_>, JournalError> {
        let paths = &self.files.paths;
        let entries = self.index(order).map_err(|error| JournalError::read(&paths.journal, error))?;
        let mut file: &File = &self.files.results;
        file.rewind().map_err(|error| JournalError::read(&paths.results, error))?;
        Ok(Lines { entries: entries.into_iter(), file, position: 0, paths })
    }

    /// Leaves out the results of rows that the batch no longer has.
    ///
    /// # Errors
    /// As [`Results::forget`].
    pub fn leave_out(&mut self, rows: &LeftOut) -> Result<(), JournalError> {
        self.end = rows.from;
        self.forget(rows.rows.clone())
    }

    /// Removes rows whose results are damaged from the journal, so that the next batch sends them again.
    ///
    /// # Errors
    /// If the journal cannot be read or written.
    pub fn forget(&mut self, mut rows: Vec<u64>) -> Result<(), JournalError> {
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable();
        self.remove_rows(&rows).map_err(|error| JournalError::write(&self.files.paths.journal, error))
    }

    /// Removes the records of rows, which are sorted.
    fn remove_rows(&self, rows: &[u64]) -> io::Result<()> {
        let Files { journal, header_len, .. } = &self.files;
        let mut positions = Vec::new();
        for (position, slot) in (*header_len..).step_by(RECORD_LEN).zip(Records::read(journal, *header_len)?)
        {
            if matches!(slot?, Slot::Record(record) if rows.binary_search(&record.row).is_ok()) {
                positions.push(position);
            }
        }
        remove_records(journal, &positions)
    }

    /// Returns whether the file of the results contains the newest line of each row and nothing else.
    pub(crate) fn is_minimal(&self) -> Result<bool, JournalError> {
        let paths = &self.files.paths;
        let entries = self.index(Order::Free);
        let entries = entries.map_err(|error| JournalError::read(&paths.journal, error))?;
        let about = self.files.results.metadata();
        let length = about.map_err(|error| JournalError::read(&paths.results, error))?.len();
        Ok(entries.iter().map(|entry| u64::from(entry.length)).sum::<u64>() == length)
    }

    /// Removes the journal and the results, after the output is complete.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(mut self) -> Result<(), JournalError> {
        // Two files cannot be removed at once. The mark says that the output is complete, whatever remains after a crash.
        self.mark_done()?;
        for path in [&self.files.paths.results, &self.files.paths.journal] {
            std::fs::remove_file(path).map_err(|error| JournalError::write(path, error))?;
        }
        Ok(())
    }

    /// Notes at the end of the journal that the output has all its results. The next batch that adds one removes the note.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn mark_complete(&mut self) -> Result<(), JournalError> {
        let mut journal: &File = &self.files.journal;
        let mark = journal.seek(SeekFrom::End(0)).and_then(|_| journal.write_all(COMPLETE));
        mark.and_then(|()| journal.sync_data())
            .map_err(|error| JournalError::write(&self.files.paths.journal, error))
    }

    /// Returns the newest line of each row.
    fn index(&self, order: Order) -> io::Result<Vec<Entry>> {
        let files = &self.files;
        let length = files.journal.metadata()?.len().saturating_sub(files.header_len);
        let mut entries = Vec::with_capacity(usize::try_from(length).unwrap_or(0) / RECORD_LEN);
        for slot in Records::read(&files.journal, files.header_len)? {
            let Slot::Record(record) = slot? else { continue };
            if self.end.is_some_and(|end| record.row >= end) {
                continue;
            }
            let place = record.offset << 1 | u64::from(record.ok);
            entries.push(Entry { row: record.row, place, length: record.length, crc: record.line_crc });
        }
        entries.sort_unstable();
        entries.dedup_by(|later, kept| {
            let is_same = later.row == kept.row;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        if order == Order::Free {
            entries.sort_unstable_by_key(|entry| entry.place);
        }
        Ok(entries)
    }

    /// Marks the journal, so that the next batch removes its files if this one is killed before it does.
    pub(crate) fn mark_done(&mut self) -> Result<(), JournalError> {
        let mut journal: &File = &self.files.journal;
        let mark = journal.rewind().and_then(|()| journal.write_all(DONE)).and_then(|()| journal.sync_data());
        mark.map_err(|error| JournalError::write(&self.files.paths.journal, error))
    }
}

impl Lines<'_> {
    /// Reads only the line: rows that ran at the same time are not in the order of the input, and a buffer would be read again for
    /// many of them.
    fn read(&mut self, entry: Entry) -> io::Result<ResultLine> {
        let offset = entry.place >> 1;
        if offset != self.position {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        let mut json = Vec::with_capacity(entry.length as usize);
        self.position = offset;
        self.position += self.file.take(u64::from(entry.length)).read_to_end(&mut json)? as u64;
        let is_intact = json.len() == entry.length as usize && crc32fast::hash(&json) == entry.crc;
        if !is_intact {
            return Err(io::ErrorKind::InvalidData.into());
        }
        json.pop();
        Ok(ResultLine { row: entry.row, ok: entry.place & 1 == 1, json })
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<ResultLine, JournalError>;

    /// Returns the next result, or [`JournalError::ResultsDamaged`] for a row whose line is damaged.
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        Some(self.read(entry).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                let path = self.paths.results.clone();
                JournalError::ResultsDamaged { path, count: 1, first: entry.row }
            }
            _ => JournalError::read(&self.paths.results, error),
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }
}
