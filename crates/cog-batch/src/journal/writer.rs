//! The thread that writes both files of a journal.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, watch};

use super::{Append, JournalError, RECORD_LEN, Record};
use crate::row::{Position, RowHash};

/// The maximum number of results between two syncs.
pub(super) const GROUP_ROWS: usize = 4096;
/// The bytes of results after which both files are synced.
pub(super) const GROUP_BYTES: u64 = 16 << 20;
/// The maximum time between a result and its sync.
const GROUP_TIME: Duration = Duration::from_millis(200);
/// The memory that a buffer of results keeps.
const BUFFER: usize = 512 << 10;
/// How long results wait for others while they finish fast. A write, and the wake-up of this thread, cost more than a result.
const GATHER: Duration = Duration::from_millis(1);
/// The time between two writes below which results finish fast, if there are [`FAST_WRITES`] of them in sequence.
const FAST: Duration = Duration::from_millis(1);
const FAST_WRITES: u32 = 16;

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
    queue: Queue,
    written: watch::Sender<u64>,
    room: Arc<Semaphore>,
    failure: Arc<OnceLock<JournalError>>,
) -> io::Result<JoinHandle<()>> {
    let mut writer = Writer {
        files,
        queue,
        written,
        chunk: Chunk::default(),
        room: Arc::clone(&room),
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
    queue: Queue,
    /// The length of the results.
    written: watch::Sender<u64>,
    /// Results that are being written.
    chunk: Chunk,
    /// The places of the queue. Those of a chunk are free after its write: each change wakes who waits for a place.
    room: Arc<Semaphore>,
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

impl Writer {
    fn run(&mut self) -> Result<(), JournalError> {
        loop {
            let received = self.queue.wait(self.group.due);
            if received == Received::Lines {
                self.gather();
                self.queue.take(&mut self.chunk);
                self.write()?;
            }
            let is_due = self.group.due.is_some_and(|due| Instant::now() >= due);
            if is_due || self.group.is_full() || received == Received::End {
                self.sync()?;
            }
            if received == Received::End {
                return Ok(());
            }
        }
    }

    /// Waits for further results, while they finish fast.
    fn gather(&mut self) {
        let is_fast = self.last_write.elapsed() < FAST;
        self.fast_writes = if is_fast { self.fast_writes.saturating_add(1) } else { 0 };
        if self.fast_writes > FAST_WRITES {
            thread::sleep(GATHER);
        }
    }

    /// Writes the lines, then their records. A group that they do not fit into is synced before.
    fn write(&mut self) -> Result<(), JournalError> {
        // The bounds of a group are also what the next start checks line by line, so no group may exceed them.
        if !self.group.has_room(&self.chunk) {
            self.sync()?;
        }
        // A record without its line would count as a result. A line without its record only takes space.
        if let Err(failed) = self.files.results.append(&self.chunk.lines) {
            self.keep_complete(failed.written);
            return Err(failed.error);
        }
        if let Err(failed) = self.files.journal.append(&self.chunk.records) {
            self.files.journal.cut_to_records(failed.written);
            return Err(failed.error);
        }
        if let Some((row, length)) = self.chunk.too_long {
            let path = self.files.results.path.clone();
            return Err(JournalError::ResultTooLong { path, row, length });
        }
        self.group.add(&self.chunk);
        self.written.send_replace(self.files.results.length);
        self.room.add_permits(self.chunk.places);
        self.chunk.clear(BUFFER);
        self.last_write = Instant::now();
        Ok(())
    }

    /// Stores the lines that were written completely, when the others could not be.
    fn keep_complete(&mut self, written: usize) {
        let end = self.files.results.length + written as u64;
        let (records, _) = self.chunk.records.as_chunks::<RECORD_LEN>();
        let decoded = records.iter().filter_map(Record::decode);
        let complete: Vec<Record> = decoded.take_while(|record| record.end() <= end).collect();
        let length = complete.last().map_or(self.files.results.length, Record::end);
        // Each step is an attempt; the next start of the batch repairs what remains.
        let _ = self.files.results.file.cut(length).and_then(|()| self.files.results.file.sync());
        let records = self.chunk.records.get(..complete.len() * RECORD_LEN).unwrap_or_default();
        match self.files.journal.append(records) {
            Ok(()) => drop(self.files.journal.file.sync()),
            Err(failed) => self.files.journal.cut_to_records(failed.written),
        }
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        if self.group.due.is_some() {
            // In this order: a power cut between the two leaves lines without records, never records without lines.
            self.files.results.sync()?;
            self.files.journal.sync()?;
        }
        self.group = Group::default();
        Ok(())
    }
}

impl Group {
    /// Whether these results may be written before the next sync.
    fn has_room(&self, chunk: &Chunk) -> bool {
        self.rows + chunk.rows <= GROUP_ROWS && self.bytes + chunk.lines.len() as u64 <= GROUP_BYTES
    }

    fn add(&mut self, chunk: &Chunk) {
        self.rows += chunk.rows;
        self.bytes += chunk.lines.len() as u64;
        self.due.get_or_insert_with(|| Instant::now() + GROUP_TIME);
    }

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

// The queue of the thread that writes a journal: lines and their records, as they will be in the files.
//
// A result is copied into the buffer of the queue, and the thread takes the whole buffer at once. So no memory is allocated by
// one thread and freed by the other, and the thread is woken only if it waits.

/// The queue. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    chunk: Chunk,
    /// The position after the last line.
    end: u64,
    is_closed: bool,
    is_waited_for: bool,
}

/// Results that are written together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The lines, each with its line break.
    pub(super) lines: Vec<u8>,
    /// Their records.
    pub(super) records: Vec<u8>,
    /// The number of results.
    pub(super) rows: usize,
    /// Their places in the queue.
    pub(super) places: usize,
    /// A result that is too long for a record: its row and its length. Nothing follows it.
    pub(super) too_long: Option<(u64, u64)>,
}

/// A result that is added.
pub(super) struct Added<'a> {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    pub(super) ok: bool,
    pub(super) is_unanswered: bool,
    /// The line, without its line break.
    pub(super) line: &'a [u8],
    /// The places that it takes.
    pub(super) places: usize,
}

/// A look at the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    Lines,
    Nothing,
    End,
}

impl Queue {
    /// Creates a queue whose first line is at this position.
    pub(super) fn new(end: u64) -> Self {
        let queue = Self::default();
        queue.lock().end = end;
        queue
    }

    /// Adds a result, and returns where its line will be. None if the queue is closed.
    pub(super) fn add(&self, added: &Added<'_>) -> Option<Position> {
        let mut state = self.lock();
        if state.is_closed || state.chunk.too_long.is_some() {
            return None;
        }
        let offset = state.end;
        state.end += state.chunk.push(added, offset);
        let wakes = std::mem::take(&mut state.is_waited_for);
        drop(state);
        if wakes {
            self.0.wake.notify_one();
        }
        Some(Position(offset))
    }

    /// Ends the queue: what it contains is still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.0.wake.notify_one();
    }

    /// Waits for results, at most until this time.
    pub(super) fn wait(&self, until: Option<Instant>) -> Received {
        let mut state = self.lock();
        loop {
            if !state.chunk.is_empty() {
                return Received::Lines;
            }
            if state.is_closed {
                return Received::End;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Received::Nothing;
            }
            state.is_waited_for = true;
            state = match left {
                None => self.0.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.0.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.is_waited_for = false;
        }
    }

    /// Takes all results. The empty chunk is filled next.
    pub(super) fn take(&self, chunk: &mut Chunk) {
        std::mem::swap(&mut self.lock().chunk, chunk);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chunk {
    /// Adds a line and its record. Returns the bytes that the line takes.
    fn push(&mut self, added: &Added<'_>, offset: u64) -> u64 {
        let &Added { row, hash, ok, is_unanswered, line, places } = added;
        self.places += places;
        let Ok(length) = u32::try_from(line.len() + 1) else {
            self.too_long = Some((row, line.len() as u64));
            return 0;
        };
        let start = self.lines.len();
        self.lines.reserve(line.len() + 1);
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        let line_crc = crc32fast::hash(self.lines.get(start..).unwrap_or_default());
        Record { row, hash, ok, is_unanswered, offset, length, line_crc }.encode(&mut self.records);
        self.rows += 1;
        u64::from(length)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0 && self.too_long.is_none()
    }

    /// Removes the results, and keeps this much memory for the next ones.
    pub(super) fn clear(&mut self, kept: usize) {
        self.lines.clear();
        self.lines.shrink_to(kept);
        self.records.clear();
        self.records.shrink_to(kept);
        (self.rows, self.places, self.too_long) = (0, 0, None);
    }
}
