//! Opening a journal: a new one, or one that continues. It is locked: one program at a time.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Deref,
    path::Path,
};

use cog_store::sync_directory_of;

use super::{
    Description, Files, Finished, JournalError, JournalPaths, JournalStatus, RECORD_LEN, Record, Records,
    Slot, Wrap,
    description::{self, COMPLETE, DONE, Header, HeaderState, redescribe},
    finished::MAX_RECORDS,
    writer::{Appender, Appenders, GROUP_BYTES, GROUP_ROWS},
};

/// Whether a batch may continue one that differs from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Only the same batch continues: the same module, model, options and input.
    Same,
    /// A batch that differs continues too (`--allow-changes`). The journal gets its description, and rows keep the results that belong to
    /// their hashes.
    Changed,
}

/// A journal that is ready for the next result.
pub(super) struct OpenJournal {
    pub(super) files: Files,
    pub(super) appenders: Appenders,
    pub(super) finished: Finished,
}

/// Opens or creates a journal, with the lock.
pub(super) fn open(
    paths: &JournalPaths,
    description: &Description,
    resume: Resume,
    wrap: Wrap<'_>,
) -> Result<OpenJournal, JournalError> {
    let journal = open_locked(&paths.journal)?;
    let Some(header) = read_header(&journal, paths, resume)? else {
        let started = start(paths, journal, description, wrap);
        return started.inspect_err(|_| remove_new(paths));
    };
    let is_same = check(&header, description, paths, resume)?;
    let header_len = header.length as u64;
    let results = open_results(&journal, header_len, paths)?;
    // After the results are open: a journal with another description, but without results, could not be continued by either command.
    let (journal, header_len) = match is_same {
        true => (journal, header_len),
        false => redescribe(journal, header_len, paths, description)?,
    };
    let files = Files { paths: paths.clone(), header_len, journal, results };
    let recovered = recover(&files, resume, wrap)?;
    let appenders = Appenders {
        journal: appender(&files.journal, &paths.journal, recovered.journal_len, wrap)?,
        results: appender(&files.results, &paths.results, recovered.results_len, wrap)?,
    };
    Ok(OpenJournal { files, appenders, finished: recovered.finished })
}

/// Reads the rows that have a result, and changes nothing.
pub(super) fn read(
    paths: &JournalPaths,
    description: &Description,
    resume: Resume,
) -> Result<Finished, JournalError> {
    if !paths.journal.exists() {
        return Ok(Finished::default());
    }
    let journal = open_locked(&paths.journal)?;
    let HeaderState::Header(header) = description::decode(&first_bytes(&journal, paths)?, paths)? else {
        return Ok(Finished::default());
    };
    check(&header, description, paths, resume)?;
    let finished = read_finished(&journal, header.length as u64, resume);
    finished.map_err(|error| JournalError::read(&paths.journal, error))
}

/// Reads a journal that another program may be writing.
pub(super) fn status(paths: &JournalPaths) -> Result<Option<JournalStatus>, JournalError> {
    let journal = match OpenOptions::new().read(true).open(&paths.journal) {
        Ok(journal) => journal,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(JournalError::read(&paths.journal, error)),
    };
    let HeaderState::Header(header) = description::decode(&first_bytes(&journal, paths)?, paths)? else {
        return Ok(None);
    };
    // A batch that runs holds the lock. This program gives it back at once, so that a batch that starts meanwhile is not refused.
    let is_in_use = matches!(journal.try_lock_shared(), Err(TryLockError::WouldBlock));
    if !is_in_use {
        let _ = journal.unlock();
    }
    let finished = read_finished(&journal, header.length as u64, Resume::Same);
    let finished = finished.map_err(|error| JournalError::read(&paths.journal, error))?;
    Ok(Some(JournalStatus {
        description: header.description,
        rows: finished.len(),
        failed: finished.failed_count(),
        is_in_use,
        is_complete: is_complete(&journal, header.length as u64)
            .map_err(|error| JournalError::read(&paths.journal, error))?,
    }))
}

/// Returns whether the journal ends with the note that the output has all its results.
fn is_complete(mut journal: &File, header_len: u64) -> io::Result<bool> {
    let records = journal.metadata()?.len().saturating_sub(header_len) / RECORD_LEN as u64;
    journal.seek(SeekFrom::Start(header_len + records * RECORD_LEN as u64))?;
    let mut end = Vec::new();
    journal.take(RECORD_LEN as u64).read_to_end(&mut end)?;
    Ok(end == COMPLETE)
}

/// Checks that the batch of the journal is this one, unless changes are allowed. Returns whether it is.
fn check(
    header: &Header,
    description: &Description,
    paths: &JournalPaths,
    resume: Resume,
) -> Result<bool, JournalError> {
    let differences = header.description.differences(description);
    match differences.is_empty() || resume == Resume::Changed {
        true => Ok(differences.is_empty()),
        false => Err(JournalError::Changed { path: paths.journal.clone(), differences }),
    }
}

/// Returns the beginning of a journal, with its header.
fn first_bytes(mut journal: &File, paths: &JournalPaths) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    let read = journal.take(description::MAX_LEN as u64).read_to_end(&mut bytes);
    read.and_then(|_| journal.rewind()).map_err(|source| JournalError::read(&paths.journal, source))?;
    Ok(bytes)
}

/// Reads the header. None if the journal is new: without results, nothing is lost whatever its header is.
fn read_header(journal: &File, paths: &JournalPaths, resume: Resume) -> Result<Option<Header>, JournalError> {
    let bytes = first_bytes(journal, paths)?;
    let has_results = std::fs::metadata(&paths.results).is_ok_and(|about| about.len() > 0);
    let found = match description::decode(&bytes, paths) {
        Err(JournalError::DamagedHeader { .. }) if !has_results => {
            journal.set_len(0).map_err(|error| JournalError::write(&paths.journal, error))?;
            return Ok(None);
        }
        // Each record has a checksum and the hash of its row, so the results count without the description too.
        Err(JournalError::DamagedHeader { .. }) if resume == Resume::Changed => {
            return description::salvage(&bytes)
                .map(Some)
                .ok_or_else(|| JournalError::DamagedHeader { path: paths.journal.clone() });
        }
        found => found?,
    };
    match found {
        HeaderState::Header(header) => Ok(Some(header)),
        HeaderState::Done => remove_done(journal, paths).map(|()| None),
        HeaderState::Cut if !has_results => Ok(None),
        HeaderState::Cut if bytes.is_empty() => {
            let _ = std::fs::remove_file(&paths.journal); // it was created now, and is locked
            Err(JournalError::JournalMissing {
                results: paths.results.clone(),
                journal: paths.journal.clone(),
            })
        }
        HeaderState::Cut => Err(JournalError::DamagedHeader { path: paths.journal.clone() }),
    }
}

/// Creates the results, then writes the header. The names are on disk before any result.
fn start(
    paths: &JournalPaths,
    journal: LockedFile,
    description: &Description,
    wrap: Wrap<'_>,
) -> Result<OpenJournal, JournalError> {
    let header =
        description::encode(description).map_err(|error| JournalError::write(&paths.journal, error))?;
    let results = open_file(&paths.results).map_err(|error| JournalError::write(&paths.results, error))?;
    let files = Files { paths: paths.clone(), header_len: header.len() as u64, journal, results };
    let mut appenders = Appenders {
        journal: appender(&files.journal, &paths.journal, 0, wrap)?,
        results: appender(&files.results, &paths.results, 0, wrap)?,
    };
    appenders.journal.append(&header).map_err(|failed| failed.error)?;
    // Records follow only a header that is on disk: after a power cut, a journal with records always says whose they are.
    appenders.journal.sync()?;
    sync_directory_of(&paths.journal).map_err(|error| JournalError::write(&paths.journal, error))?;
    Ok(OpenJournal { files, appenders, finished: Finished::default() })
}

/// Removes the files of a batch that was killed after its output was complete, if they are that.
pub(super) fn clear_done(paths: &JournalPaths) -> Result<(), JournalError> {
    if !paths.journal.exists() {
        return Ok(());
    }
    let journal = open_locked(&paths.journal)?;
    let mut mark = Vec::new();
    let read = (&*journal).take(DONE.len() as u64).read_to_end(&mut mark);
    read.map_err(|source| JournalError::read(&paths.journal, source))?;
    if mark != DONE {
        return Ok(());
    }
    remove_done(&journal, paths)?;
    std::fs::remove_file(&paths.journal).map_err(|error| JournalError::write(&paths.journal, error))
}

/// Removes what remains of a batch that was killed after its output was complete.
fn remove_done(journal: &File, paths: &JournalPaths) -> Result<(), JournalError> {
    match std::fs::remove_file(&paths.results) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(JournalError::write(&paths.results, error));
        }
        _ => {}
    }
    journal.set_len(0).map_err(|error| JournalError::write(&paths.journal, error))
}

/// Removes a journal without results that could not be created.
fn remove_new(paths: &JournalPaths) {
    if std::fs::metadata(&paths.results).is_ok_and(|about| about.len() == 0) {
        let _ = std::fs::remove_file(&paths.results);
    }
    let _ = std::fs::remove_file(&paths.journal);
}

/// Opens the results of a journal. They may be missing only if no record has been written.
fn open_results(journal: &File, header_len: u64, paths: &JournalPaths) -> Result<File, JournalError> {
    let length = journal.metadata().map_err(|error| JournalError::read(&paths.journal, error))?.len();
    if length > header_len && !paths.results.exists() {
        return Err(JournalError::ResultsMissing { path: paths.results.clone() });
    }
    open_file(&paths.results).map_err(|error| JournalError::write(&paths.results, error))
}

/// Continues a file at a length.
fn appender(file: &File, path: &Path, length: u64, wrap: Wrap<'_>) -> Result<Appender, JournalError> {
    let mut clone = file.try_clone().map_err(|error| JournalError::read(path, error))?;
    clone.seek(SeekFrom::Start(length)).map_err(|error| JournalError::read(path, error))?;
    Ok(Appender { file: wrap(clone), path: path.to_owned(), length })
}

/// A file that is locked until it is dropped.
///
/// A process that is being started holds a copy of each open file for a moment, so closing does not unlock it.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Takes a file that is locked.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opens a journal and locks it. A file that does not exist is created.
fn open_locked(path: &Path) -> Result<LockedFile, JournalError> {
    loop {
        let file = open_file(path).map_err(|source| JournalError::write(path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(JournalError::write(path, source)),
        }
        let file = LockedFile(file);
        // Another batch can end, and remove the file, between the opening and the lock.
        if is_at(&file, path).map_err(|source| JournalError::read(path, source))? {
            return Ok(file);
        }
    }
}

/// Opens a file for reading and writing. A pipe or a device would block.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true) // a file that is open cannot be removed
}

// Continuing a journal after an interruption: which records count, and where both files continue.
//
// The lines of the last group are read, because a machine that lost power can have stored a record without its
// line. Earlier groups were synced: there, a record counts if its own checksum is right.

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
fn read_finished(journal: &File, header_len: u64, resume: Resume) -> io::Result<Finished> {
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
