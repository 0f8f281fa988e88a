//! Continuing a journal after an interruption: which records count, and where both files continue.
//!
//! The lines of the last group are read, because a machine that lost power can have stored a record without its
//! line. Earlier groups were synced: there, a record counts if its own checksum is right.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
};

use super::{
    Files, Finished, JournalError, RECORD_LEN, Record, Records, Resume, Slot, Wrap,
    finished::MAX_RECORDS,
    writer::{GROUP_BYTES, GROUP_ROWS},
};

/// The state of both files, ready for the next result.
pub(super) struct Recovered {
    pub(super) finished: Finished,
    pub(super) journal_len: u64,
    pub(super) results_len: u64,
}

/// A record with its number in the journal.
type Numbered = (u64, Record);

/// What the journal contains.
#[derive(Default)]
struct Scan {
    finished: Finished,
    /// The last group.
    tail: VecDeque<Numbered>,
    /// The end of the last line before the group.
    settled: u64,
    /// The end of the last line.
    end: u64,
    damaged: u64,
    /// Damaged records after the last valid one.
    cut: u64,
}

/// Reads the journal, and removes what was not stored completely.
pub(super) fn recover(files: &Files, resume: Resume, wrap: Wrap<'_>) -> Result<Recovered, JournalError> {
    let path = &files.paths.journal;
    let length = files.journal.metadata().map_err(|source| JournalError::read(path, source))?.len();
    let count = length.saturating_sub(files.header_len) / RECORD_LEN as u64;
    if count > MAX_RECORDS {
        return Err(JournalError::TooManyRecords { path: path.clone(), count, max: MAX_RECORDS });
    }
    let count = usize::try_from(count).unwrap_or(0);
    let finished = Finished::with_capacity(count, resume == Resume::Changed);
    let scan = Scan::read(&files.journal, files.header_len, finished);
    let mut scan = scan.map_err(|source| JournalError::read(path, source))?;
    let broken = broken_lines(&scan, files)?;
    let last = scan.settle(&broken);
    let recovered = Recovered {
        journal_len: files.header_len + last * RECORD_LEN as u64,
        results_len: scan.settled,
        finished: scan.finished.complete(scan.damaged),
    };
    repair(files, &recovered, &broken, wrap)?;
    Ok(recovered)
}

/// Reads the rows that have a result, and changes nothing. The last lines are not checked.
pub(super) fn read_finished(journal: &File, header_len: u64, resume: Resume) -> io::Result<Finished> {
    let mut scan = Scan::read(journal, header_len, Finished::with_capacity(0, resume == Resume::Changed))?;
    scan.settle(&[]);
    Ok(scan.finished.complete(scan.damaged))
}

impl Scan {
    fn read(journal: &File, header_len: u64, finished: Finished) -> io::Result<Self> {
        let mut scan = Self { finished, ..Self::default() };
        for (number, slot) in (0..).zip(Records::read(journal, header_len)?) {
            match slot? {
                Slot::Record(record) => scan.push((number, record)),
                Slot::Damaged => scan.cut += 1,
                Slot::Removed => {}
            }
        }
        Ok(scan)
    }

    fn push(&mut self, (number, record): Numbered) {
        self.damaged += std::mem::take(&mut self.cut);
        self.end = self.end.max(record.end());
        self.tail.push_back((number, record));
        while self.tail.front().is_some_and(|(first, _)| first + GROUP_ROWS as u64 <= number) {
            self.settle_first();
        }
    }

    fn settle_first(&mut self) {
        if let Some((_, record)) = self.tail.pop_front() {
            self.settled = self.settled.max(record.end());
            self.finished.push(&record);
        }
    }

    /// Adds the records of the last group whose lines are not broken, and returns the number of records up to
    /// the last of them.
    fn settle(&mut self, broken: &[u64]) -> u64 {
        let mut count = self.tail.front().map_or(0, |(number, _)| *number);
        while let Some((number, _)) = self.tail.front() {
            if broken.binary_search(number).is_ok() {
                self.tail.pop_front();
                continue;
            }
            count = number + 1;
            self.settle_first();
        }
        self.damaged += broken.len() as u64;
        count
    }
}

/// Returns the numbers of the records in the last group whose lines are incomplete or damaged.
fn broken_lines(scan: &Scan, files: &Files) -> Result<Vec<u64>, JournalError> {
    let path = &files.paths.results;
    let found = files.results.metadata().map_err(|source| JournalError::read(path, source))?.len();
    let Some((_, last)) = scan.tail.back() else { return Ok(Vec::new()) };
    let is_synced = |record: &Record| record.offset.saturating_add(GROUP_BYTES) < last.offset;
    let synced = scan.tail.iter().filter(|(_, record)| is_synced(record)).map(|(_, record)| record.end());
    // What was synced cannot be lost by a power cut: somebody has cut or replaced the file, so nothing is removed from the journal.
    if synced.chain([scan.settled]).any(|end| end > found) {
        return Err(JournalError::ResultsIncomplete { path: path.clone(), found, expected: scan.end });
    }
    let mut reader = BufReader::new(&files.results);
    let mut broken = Vec::new();
    for (number, record) in scan.tail.iter().filter(|(_, record)| !is_synced(record)) {
        if !is_intact(&mut reader, record).map_err(|source| JournalError::read(path, source))? {
            broken.push(*number);
        }
    }
    Ok(broken)
}

/// Returns whether the line of a record is complete, with its checksum.
fn is_intact(reader: &mut BufReader<&File>, record: &Record) -> io::Result<bool> {
    let position = reader.stream_position()?;
    if position != record.offset {
        reader.seek(SeekFrom::Start(record.offset))?;
    }
    let mut line = reader.take(u64::from(record.length));
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = [0; 8192];
    loop {
        match line.read(&mut chunk)? {
            0 => break,
            count => hasher.update(chunk.get(..count).unwrap_or_default()),
        }
    }
    Ok(line.limit() == 0 && hasher.finalize() == record.line_crc)
}

/// Removes records without a line, then cuts both files after the last record.
fn repair(files: &Files, recovered: &Recovered, broken: &[u64], wrap: Wrap<'_>) -> Result<(), JournalError> {
    let positions = broken.iter().map(|number| files.header_len + number * RECORD_LEN as u64);
    let positions: Vec<u64> = positions.filter(|position| *position < recovered.journal_len).collect();
    // The records first: one without a line would be taken for a result if the program were killed between the two cuts.
    remove_records(&files.journal, &positions)
        .and_then(|()| cut(&files.journal, recovered.journal_len, wrap))
        .map_err(|source| JournalError::write(&files.paths.journal, source))?;
    cut(&files.results, recovered.results_len, wrap)
        .map_err(|source| JournalError::write(&files.paths.results, source))
}

/// Overwrites records with zeros, which takes no space.
pub(crate) fn remove_records(mut journal: &File, positions: &[u64]) -> io::Result<()> {
    for position in positions {
        journal.seek(SeekFrom::Start(*position))?;
        journal.write_all(&[0; RECORD_LEN])?;
    }
    if positions.is_empty() { Ok(()) } else { journal.sync_data() }
}

fn cut(file: &File, length: u64, wrap: Wrap<'_>) -> io::Result<()> {
    if file.metadata()?.len() <= length {
        return Ok(());
    }
    let mut file = wrap(file.try_clone()?);
    file.cut(length)?;
    file.sync()
}
