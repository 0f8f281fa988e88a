//! The journal: what a batch has done, on disk, so that it continues after any interruption.
//!
//! Two files grow beside the output. `OUT.results` contains the results in the order in which they finish, one
//! JSON line each. `OUT.journal` contains a header that describes the batch, then a record of 36 bytes per
//! result. A line is written before its record, so that each record has its line. One thread writes both
//! files, and syncs them in groups: the results first.
//!
//! A program that is killed loses at most the results that wait for that thread. A machine that loses power
//! loses at most a group. What is cut or damaged at the end is truncated when the journal is opened.

mod description;
mod error;
mod files;
mod finished;
mod header;
mod kept;
mod lock;
mod open;
mod paths;
mod queue;
mod record;
mod records;
mod recover;
mod redescribe;
mod storage;
mod stored;
mod writer;

use std::{
    sync::{Arc, OnceLock},
    thread::JoinHandle,
};

use tokio::sync::{Semaphore, watch};

pub use self::{
    description::{Description, Difference},
    error::JournalError,
    finished::{Finished, FinishedRow},
    open::Resume,
    paths::JournalPaths,
};
pub(crate) use self::{
    error::suggestion_for_write,
    files::Files,
    header::DONE,
    kept::{Kept, KeptResult},
    lock::sync_directory_of,
    paths::with_suffix,
    record::{RECORD_LEN, Record},
    records::{Records, Slot},
    recover::remove_records,
    stored::read_line,
};
use self::{
    queue::{Added, Queue},
    storage::Wrap,
    stored::StoredLines,
};
use crate::{
    results::Results,
    row::{Position, RowHash},
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
        Self::open_with(paths, description, resume, &storage::plain)
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
        let ends = (Arc::clone(&room), Arc::clone(&failure));
        let writer = writer::start(opened.appenders, (queue.clone(), said), ends)
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

    /// Queues the result of a row: a JSON line, without its line break. Waits while the queue is full. Returns where the line
    /// will be.
    ///
    /// A result that is queued is written within two milliseconds, and synced with its group.
    ///
    /// # Errors
    /// If an earlier result could not be written. The results before it are stored.
    pub async fn append(
        &self,
        row: u64,
        hash: RowHash,
        ok: bool,
        line: &[u8],
    ) -> Result<Position, JournalError> {
        let places = line.len().clamp(MIN_QUEUED, QUEUE_BYTES);
        let room = self.room.acquire_many(u32::try_from(places).unwrap_or(u32::MAX)).await;
        room.map_err(|_| self.stopped())?.forget(); // the writer frees them
        let added = Added { row, hash, ok, line, places };
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

#[cfg(test)]
mod tests;
