//! Opening a journal: a new one, or one that continues. It is locked: one program at a time.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Deref,
    path::Path,
};

use cog_store::sync_directory_of;

use super::{
    Description, Files, Finished, JournalError, JournalPaths, JournalStatus, Wrap,
    description::{self, DONE, Header, HeaderState, redescribe},
    recover::{read_finished, recover},
    writer::{Appender, Appenders},
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
    }))
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
