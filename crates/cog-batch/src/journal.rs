//! The journal: what a batch has done, on disk, so that it continues after any interruption.
//!
//! Two files grow next to the output. `OUT.results` contains the results in the order in which they finish, one
//! JSON line each. `OUT.journal` contains a header that describes the batch, then a record of 36 bytes per
//! result. A line is written before its record, so that each record has its line. One thread writes both
//! files, and syncs them in groups: the results first.
//!
//! A program that is killed loses at most the results that wait for that thread. A machine that loses power
//! loses at most a group. What is cut or damaged at the end is truncated when the journal is opened.

mod description;
mod finished;
mod open;
mod record;
mod results;
mod writer;

use std::{
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread::JoinHandle,
};

use tokio::sync::{Semaphore, watch};

use self::{
    open::LockedFile,
    record::StoredLines,
    writer::{Added, Queue},
};
use crate::row::{Position, RowResult};

pub(crate) use self::{
    description::{COMPLETE, DONE},
    finished::{Kept, KeptResult},
    open::remove_records,
    record::{RECORD_LEN, Record, Records, Slot, read_line},
};
pub use self::{
    description::{Description, Difference},
    finished::{Finished, FinishedRow},
    open::Resume,
    results::{LeftOut, Lines, Order, ResultLine, Results},
};

/// The bytes of results that may wait for the writer.
const QUEUE_BYTES: usize = 8 << 20;
/// The least that a result takes in the queue, so that its results fit into a group.
const MIN_QUEUED: usize = QUEUE_BYTES / writer::GROUP_ROWS;

/// The open journal of a batch, locked for this program.
///
/// Dropping it stores what is queued.
#[derive(Debug)]
pub struct Journal {
    queue: Queue,
    room: Arc<Semaphore>,
    failure: Arc<OnceLock<JournalError>>,
    writer: Option<JoinHandle<()>>,
    files: Option<Files>,
    stored: Box<StoredLines>,
}

impl Journal {
    /// Opens the journal of a batch, or creates it, and returns the rows that have a result. Blocks.
    ///
    /// # Errors
    /// If another program uses the journal, it belongs to another batch, it is damaged, or a file cannot be
    /// read or written. Nothing is changed then.
    pub fn open(
        paths: &JournalPaths,
        description: &Description,
        resume: Resume,
    ) -> Result<(Self, Finished), JournalError> {
        Self::open_with(paths, description, resume, &plain)
    }

    /// Removes the files of a batch that was killed after its output was complete. A caller that then finds an output knows that it
    /// is complete, and starts no batch over it. Blocks.
    ///
    /// # Errors
    /// If another program uses the journal, or a file cannot be read or removed.
    pub fn clear_done(paths: &JournalPaths) -> Result<(), JournalError> {
        open::clear_done(paths)
    }

    /// Opens a journal that writes to its files through a layer.
    pub(crate) fn open_with(
        paths: &JournalPaths,
        description: &Description,
        resume: Resume,
        wrap: Wrap<'_>,
    ) -> Result<(Self, Finished), JournalError> {
        let opened = open::open(paths, description, resume, wrap)?;
        let room = Arc::new(Semaphore::new(QUEUE_BYTES));
        let failure = Arc::new(OnceLock::new());
        let end = opened.appenders.results.length;
        let queue = Queue::new(end);
        let (said, written) = watch::channel(end);
        let writer =
            writer::start(opened.appenders, queue.clone(), said, Arc::clone(&room), Arc::clone(&failure))
                .map_err(|source| JournalError::write(&paths.journal, source))?;
        let journal = Self {
            queue,
            room,
            failure,
            writer: Some(writer),
            files: Some(opened.files),
            stored: Box::new(StoredLines::new(&paths.results, written)),
        };
        Ok((journal, opened.finished))
    }

    /// Returns the rows that have a result in the journal of a batch, and changes nothing. Blocks.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn finished(
        paths: &JournalPaths,
        description: &Description,
        resume: Resume,
    ) -> Result<Finished, JournalError> {
        open::read(paths, description, resume)
    }

    /// Returns what a journal says about its batch, also while the batch runs. None if there is no journal. Blocks.
    ///
    /// # Errors
    /// If it is not a journal, or cannot be read.
    pub fn status(paths: &JournalPaths) -> Result<Option<JournalStatus>, JournalError> {
        open::status(paths)
    }

    /// Queues the result of a row: a JSON line, without its line break. Waits while the queue is full. Returns where the line
    /// will be.
    ///
    /// A result that is queued is written within two milliseconds, and synced with its group.
    ///
    /// # Errors
    /// If an earlier result could not be written. The results before it are stored.
    pub async fn append(&self, result: &RowResult<'_>) -> Result<Position, JournalError> {
        let RowResult { row, hash, ok, is_unanswered, line } = *result;
        let places = line.len().clamp(MIN_QUEUED, QUEUE_BYTES);
        let room = self.room.acquire_many(u32::try_from(places).unwrap_or(u32::MAX)).await;
        room.map_err(|_| self.stopped())?.forget(); // the writer frees them
        let added = Added { row, hash, ok, is_unanswered, line, places };
        self.queue.add(&added).ok_or_else(|| self.stopped())
    }

    /// Returns the line of a result, without its line break. Waits until it is written.
    ///
    /// # Errors
    /// As [`Journal::append`], and if the line cannot be read.
    pub async fn read(&mut self, position: Position) -> Result<Vec<u8>, JournalError> {
        let line = self.stored.read(position).await;
        line.and_then(|line| line.ok_or_else(|| self.stopped()))
    }

    /// Returns the error that ended the writing of results, so that no further row is sent.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn check(&self) -> Result<(), JournalError> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Stores and syncs what is queued, and returns the results.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub async fn close(mut self) -> Result<Results, JournalError> {
        self.queue.close();
        let writer = self.writer.take();
        let ended = tokio::task::spawn_blocking(move || writer.map(JoinHandle::join)).await;
        self.check()?;
        if !matches!(ended, Ok(Some(Ok(())))) {
            return Err(JournalError::Stopped); // a panic
        }
        self.files.take().map(Results::new).ok_or_else(|| self.stopped())
    }

    fn stopped(&self) -> JournalError {
        self.failure.get().cloned().unwrap_or(JournalError::Stopped)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// What a journal says about its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalStatus {
    /// What the batch is.
    pub description: Description,
    /// The rows that have a result.
    pub rows: u64,
    /// The rows among them that failed.
    pub failed: u64,
    /// Whether a program uses the journal now.
    pub is_in_use: bool,
    /// Whether the output has all these results.
    pub is_complete: bool,
}

/// The files of a journal.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) paths: JournalPaths,
    pub(crate) header_len: u64,
    pub(crate) journal: LockedFile,
    pub(crate) results: File,
}

// The file layer of the journal, which tests replace by one that fails.

/// A file that grows at its end.
pub(crate) trait Append: io::Write + Send {
    /// Waits until what was written is on disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file at a length, and continues there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// Wraps a file in a layer.
pub(crate) type Wrap<'a> = &'a dyn Fn(File) -> Box<dyn Append>;

/// Writes to the file itself.
pub(crate) fn plain(file: File) -> Box<dyn Append> {
    Box::new(file)
}

impl Append for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        io::Seek::seek(self, io::SeekFrom::Start(length)).map(drop)
    }
}

/// The paths of a journal and its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalPaths {
    /// The journal.
    pub journal: PathBuf,
    /// The results, one JSON line each.
    pub results: PathBuf,
}

impl JournalPaths {
    /// Returns the paths next to an output: `OUT.journal` and `OUT.results`.
    #[must_use]
    pub fn beside(out: &Path) -> Self {
        Self { journal: with_suffix(out, ".journal"), results: with_suffix(out, ".results") }
    }

    /// Returns the paths for a journal at any path (`--journal`), with the results next to it.
    #[must_use]
    pub fn from_journal(journal: &Path) -> Self {
        let out = journal.extension().filter(|extension| *extension == "journal");
        let out = out.map_or_else(|| journal.to_owned(), |_| journal.with_extension(""));
        Self { journal: journal.to_owned(), results: with_suffix(&out, ".results") }
    }
}

/// Adds a suffix to a path, after its extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

// The errors of the journal.

/// An error of the journal of a batch.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another program uses the journal.
    #[error("{}: another batch uses this journal", path.display())]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The file is not a journal.
    #[error("{}: not a journal of a batch", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// The journal has a format of another version.
    #[error("{}: version {found} of the journal is not supported, only version {supported}", path.display())]
    OtherVersion {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        supported: u32,
    },
    /// The header of the journal is damaged.
    #[error("{}: the header of the journal is damaged", path.display())]
    DamagedHeader {
        /// The journal.
        path: PathBuf,
    },
    /// The batch differs from the one in the journal.
    #[error("{}: the journal belongs to a different batch: {}", path.display(), list(differences))]
    Changed {
        /// The journal.
        path: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// There are results without a journal.
    #[error("{}: there are results, but their journal is missing: {}", results.display(), journal.display())]
    JournalMissing {
        /// The results.
        results: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// The file of the results is missing.
    #[error("{}: the results of the journal are missing", path.display())]
    ResultsMissing {
        /// The results.
        path: PathBuf,
    },
    /// The file of the results is shorter than the journal says.
    #[error("{}: the results are incomplete: {found} bytes, but the journal lists {expected}", path.display())]
    ResultsIncomplete {
        /// The results.
        path: PathBuf,
        /// The length of the file.
        found: u64,
        /// The length that the journal lists.
        expected: u64,
    },
    /// Results in the middle of the file are damaged. Their rows have no result any more.
    #[error("{}: damaged results: {count}, the first is of row {first}", path.display())]
    ResultsDamaged {
        /// The results.
        path: PathBuf,
        /// The number of rows.
        count: u64,
        /// The first of them.
        first: u64,
    },
    /// The journal has more records than the program supports.
    #[error("{}: the journal has too many records: {count}, at most {max}", path.display())]
    TooManyRecords {
        /// The journal.
        path: PathBuf,
        /// The number of records.
        count: u64,
        /// The maximum number.
        max: u64,
    },
    /// The result of a row is longer than 4 GiB.
    #[error("{}: the result of row {row} is too long: {length} bytes, at most {}", path.display(), u32::MAX)]
    ResultTooLong {
        /// The results.
        path: PathBuf,
        /// The row.
        row: u64,
        /// The length of the result.
        length: u64,
    },
    /// A file cannot be opened or read.
    #[error("{}: cannot open or read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// A file cannot be written. What was stored before is intact.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// The thread that writes the journal has ended unexpectedly.
    #[error("the thread that writes the journal has ended unexpectedly")]
    Stopped,
}

impl JournalError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source: Arc::new(source) }
    }

    /// Returns a suggestion how to solve the problem.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "Wait until the other batch ends, or choose another output.",
            Self::NotAJournal { .. } => "Choose another output, or move the file away.",
            Self::OtherVersion { .. } => {
                "Continue with the version of cog that started the batch, or move the journal and its results away."
            }
            Self::DamagedHeader { .. } => {
                "Continue with --allow-changes, which keeps the results of rows that are the same. If that fails too, restore the journal, or move it and its results away."
            }
            Self::JournalMissing { .. } => {
                "Restore the journal, or move the journal and its results away to start from the beginning."
            }
            Self::Changed { .. } => {
                "Use the same module, model, options and input, choose another output, or continue with --allow-changes."
            }
            Self::ResultsMissing { .. } | Self::ResultsIncomplete { .. } => {
                "Restore the results, or move the journal and the results away to start from the beginning."
            }
            Self::ResultsDamaged { .. } => "Run the same command again: these rows are sent again.",
            Self::TooManyRecords { .. } => "Split the input.",
            Self::ResultTooLong { .. } => "Limit the output of the module.",
            Self::Read { .. } => "Check that the file and its directory exist and are readable and writable.",
            Self::Write { source, .. } => suggestion_for_write(source.kind()),
            Self::Stopped => "Run the same command again: stored rows are not sent again.",
        }
    }
}

/// Returns what to do about an error of a write.
pub(crate) fn suggestion_for_write(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "Free space, then run the same command again: stored rows are not sent again."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose an output in a directory that you may write to."
        }
        io::ErrorKind::NotFound => "Create the directory first, or choose another output.",
        _ => "Check the disk, then run the same command again: stored rows are not sent again.",
    }
}

fn list(differences: &[Difference]) -> String {
    let texts: Vec<_> = differences.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

#[cfg(test)]
mod paths_tests {
    use super::*;

    #[test]
    fn names_follow_the_output_or_the_journal() {
        let beside = JournalPaths::beside(Path::new("a/out.csv"));
        assert_eq!(beside.journal, Path::new("a/out.csv.journal"));
        assert_eq!(beside.results, Path::new("a/out.csv.results"));
        assert_eq!(JournalPaths::from_journal(&beside.journal), beside);
        assert_eq!(JournalPaths::from_journal(Path::new("a/b")).results, Path::new("a/b.results"));
    }
}

#[cfg(test)]
mod tests;
