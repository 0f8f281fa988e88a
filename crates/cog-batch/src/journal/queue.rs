//! The queue of the thread that writes a journal: lines and their records, as they will be in the files.
//!
//! A result is copied into the buffer of the queue, and the thread takes the whole buffer at once. So no memory is allocated by
//! one thread and freed by the other, and the thread is woken only if it waits.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::Record;
use crate::row::{Position, RowHash};

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
        let &Added { row, hash, ok, line, places } = added;
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
        Record { row, hash, ok, offset, length, line_crc }.encode(&mut self.records);
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
