//! The thread that writes both files of a journal.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{JournalError, RECORD_LEN, Record, storage::Append};
use crate::row::RowHash;

/// The maximum number of results between two syncs.
pub(super) const GROUP_ROWS: usize = 4096;
/// The bytes of results after which both files are synced.
pub(super) const GROUP_BYTES: u64 = 16 << 20;
/// The maximum time between a result and its sync.
const GROUP_TIME: Duration = Duration::from_millis(200);
/// The bytes of results that are written at once.
const BUFFER: usize = 256 << 10;
/// How long results wait for others while they finish fast. A write, and the wake-up of this thread, cost more than a result.
const GATHER: Duration = Duration::from_millis(1);
/// The time between two writes below which results finish fast, if there are [`FAST_WRITES`] of them in sequence.
const FAST: Duration = Duration::from_millis(1);
const FAST_WRITES: u32 = 16;

/// A result that waits for the writer.
pub(super) struct QueuedLine {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    pub(super) ok: bool,
    pub(super) line: Vec<u8>,
    /// Its place in the queue.
    pub(super) room: OwnedSemaphorePermit,
}

/// Both files of a journal.
pub(super) struct Appenders {
    pub(super) journal: Appender,
    pub(super) results: Appender,
}

/// A file that grows at its end.
pub(super) struct Appender {
    pub(super) file: Box<dyn Append>,
    pub(super) path: PathBuf,
    /// The length up to which the file is complete.
    pub(super) length: u64,
}

/// A write that stopped early.
pub(super) struct Incomplete {
    pub(super) error: JournalError,
    /// The bytes that were written.
    written: usize,
}

/// Starts the thread, which says up to where the results are written. When it fails, it closes the queue and leaves the error.
pub(super) fn start(
    files: Appenders,
    (queue, written): (Receiver<QueuedLine>, watch::Sender<u64>),
    (room, failure): (Arc<Semaphore>, Arc<OnceLock<JournalError>>),
) -> io::Result<JoinHandle<()>> {
    let mut writer = Writer {
        files,
        queue,
        written,
        lines: Vec::new(),
        records: Vec::new(),
        room: None,
        group: Group::default(),
        last_write: Instant::now(),
        fast_writes: 0,
    };
    thread::Builder::new().name("cog-journal".to_owned()).spawn(move || {
        let closes = CloseOnDrop(room);
        if let Err(error) = writer.run() {
            let _ = failure.set(error);
        }
        drop((closes, writer)); // after the error is set, because then appending fails
    })
}

/// Closes the queue at the end of the thread, also after a panic.
struct CloseOnDrop(Arc<Semaphore>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Writer {
    files: Appenders,
    queue: Receiver<QueuedLine>,
    /// The length of the results.
    written: watch::Sender<u64>,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    /// Their records.
    records: Vec<u8>,
    /// Their places in the queue, which are free after the write: each change wakes who waits for a place.
    room: Option<OwnedSemaphorePermit>,
    group: Group,
    /// The time of the last write.
    last_write: Instant,
    /// The fast writes in sequence.
    fast_writes: u32,
}

/// The results since the last sync.
#[derive(Default)]
struct Group {
    rows: usize,
    bytes: u64,
    /// The time of the next sync; none if everything is synced.
    due: Option<Instant>,
}

/// A look at the queue.
enum Received {
    Lines,
    Nothing,
    End,
}

impl Writer {
    fn run(&mut self) -> Result<(), JournalError> {
        loop {
            let received = self.receive()?;
            self.write()?;
            let is_due = self.group.due.is_some_and(|due| Instant::now() >= due);
            if is_due || self.group.is_full() || matches!(received, Received::End) {
                self.sync()?;
            }
            if matches!(received, Received::End) {
                return Ok(());
            }
        }
    }

    /// Waits for a result or the next sync, and takes all results that fit into the buffer and the group.
    fn receive(&mut self) -> Result<Received, JournalError> {
        let first = match self.group.due {
            None => self.queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => self.queue.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        match first {
            Ok(line) => self.push(line)?,
            Err(RecvTimeoutError::Timeout) => return Ok(Received::Nothing),
            Err(RecvTimeoutError::Disconnected) => return Ok(Received::End),
        }
        self.gather();
        while self.lines.len() < BUFFER && !self.group.is_full() {
            let Ok(line) = self.queue.try_recv() else { break };
            self.push(line)?;
        }
        Ok(Received::Lines)
    }

    /// Waits for further results, while they finish fast.
    fn gather(&mut self) {
        let is_fast = self.last_write.elapsed() < FAST;
        self.fast_writes = if is_fast { self.fast_writes.saturating_add(1) } else { 0 };
        if self.fast_writes > FAST_WRITES {
            thread::sleep(GATHER);
        }
    }

    fn push(&mut self, queued: QueuedLine) -> Result<(), JournalError> {
        let start = self.lines.len();
        let offset = self.files.results.length + start as u64;
        let Ok(length) = u32::try_from(queued.line.len() + 1) else {
            let (path, length) = (self.files.results.path.clone(), queued.line.len() as u64);
            self.write()?;
            return Err(JournalError::ResultTooLong { path, row: queued.row, length });
        };
        self.lines.extend_from_slice(&queued.line);
        self.lines.push(b'\n');
        let line_crc = crc32fast::hash(self.lines.get(start..).unwrap_or_default());
        let QueuedLine { row, hash, ok, .. } = queued;
        Record { row, hash, ok, offset, length, line_crc }.encode(&mut self.records);
        self.group.rows += 1;
        self.group.bytes += u64::from(length);
        match &mut self.room {
            Some(room) => room.merge(queued.room),
            None => self.room = Some(queued.room),
        }
        Ok(())
    }

    /// Writes the lines, then their records.
    fn write(&mut self) -> Result<(), JournalError> {
        if self.records.is_empty() {
            return Ok(());
        }
        if let Err(failed) = self.files.results.append(&self.lines) {
            self.keep_complete(failed.written);
            return Err(failed.error);
        }
        if let Err(failed) = self.files.journal.append(&self.records) {
            self.files.journal.cut_to_records(failed.written);
            return Err(failed.error);
        }
        self.written.send_replace(self.files.results.length);
        self.room = None;
        self.last_write = Instant::now();
        self.group.due.get_or_insert_with(|| Instant::now() + GROUP_TIME);
        self.lines.clear();
        self.lines.shrink_to(2 * BUFFER);
        self.records.clear();
        Ok(())
    }

    /// Stores the lines that were written completely, when the others could not be.
    fn keep_complete(&mut self, written: usize) {
        let end = self.files.results.length + written as u64;
        let (records, _) = self.records.as_chunks::<RECORD_LEN>();
        let decoded = records.iter().filter_map(Record::decode);
        let complete: Vec<Record> = decoded.take_while(|record| record.end() <= end).collect();
        let length = complete.last().map_or(self.files.results.length, Record::end);
        // Each step is an attempt; the next start of the batch repairs what remains.
        let _ = self.files.results.file.cut(length).and_then(|()| self.files.results.file.sync());
        let records = self.records.get(..complete.len() * RECORD_LEN).unwrap_or_default();
        match self.files.journal.append(records) {
            Ok(()) => drop(self.files.journal.file.sync()),
            Err(failed) => self.files.journal.cut_to_records(failed.written),
        }
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.group.due.is_some() {
            self.files.results.sync()?;
            self.files.journal.sync()?;
        }
        self.group = Group::default();
        Ok(())
    }
}

impl Group {
    fn is_full(&self) -> bool {
        self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES
    }
}

impl Appender {
    /// Writes bytes at the end.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Incomplete> {
        let mut rest = bytes;
        let error = loop {
            if rest.is_empty() {
                self.length += bytes.len() as u64;
                return Ok(());
            }
            match self.file.write(rest) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        Err(Incomplete { error: JournalError::write(&self.path, error), written: bytes.len() - rest.len() })
    }

    pub(super) fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync().map_err(|error| JournalError::write(&self.path, error))
    }

    /// Removes a record that was written only in part.
    fn cut_to_records(&mut self, written: usize) {
        let complete = written - written % RECORD_LEN;
        let _ = self.file.cut(self.length + complete as u64).and_then(|()| self.file.sync());
    }
}
