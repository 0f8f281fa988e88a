//! The chunks between a task and the event loop that reads them.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cog_spec::{Chunk, Envelope};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::sync::Notify;

use crate::attach::attached;

/// The maximum number of chunks that wait for the event loop.
pub(super) const MAX_WAITING: usize = 256;

/// The chunks between a task and the event loop that reads them.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified when there is room.
    room: Notify,
}

#[derive(Default)]
struct Waiting {
    chunks: VecDeque<Chunk>,
    /// Why there are no further chunks, if the run failed without a chunk that says so.
    failed: Option<Failed>,
    is_over: bool,
    /// Called once when there is something to take, or nothing further.
    waker: Option<Py<PyAny>>,
}

/// Why there are no further chunks.
pub(super) enum Failed {
    /// The run was refused, with this envelope.
    Refused(Box<Envelope>),
    /// A Python function raised an exception that ends the run.
    Raised(PyErr),
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.failed.is_none()
    }
}

impl Queue {
    /// Adds chunks, and waits until there is room for more.
    pub(super) async fn add(&self, batch: Vec<Chunk>) {
        self.change(|waiting| {
            if !waiting.is_over {
                waiting.chunks.extend(batch);
            }
        });
        while self.locked().chunks.len() >= MAX_WAITING {
            self.room.notified().await;
        }
    }

    /// Ends the queue with the reason why the run failed.
    pub(super) fn fail(&self, failed: Failed) {
        drop(self.change(|waiting| waiting.failed.replace(failed)));
    }

    /// Ends the queue. The chunks that wait can still be taken.
    pub(super) fn end(&self) {
        self.change(|waiting| waiting.is_over = true);
    }

    /// Ends the queue, and removes what waits.
    pub(super) fn close(&self) {
        let removed = self.change(|waiting| {
            waiting.is_over = true;
            (std::mem::take(&mut waiting.chunks), waiting.failed.take())
        });
        self.room.notify_one();
        // Dropping an exception can run code of Python.
        drop(removed);
    }

    /// Takes the next chunk, or why there is none. None if there is nothing yet, or nothing further.
    pub(super) fn take(&self) -> Option<Result<Chunk, Failed>> {
        let mut waiting = self.locked();
        if let Some(chunk) = waiting.chunks.pop_front() {
            self.room.notify_one();
            return Some(Ok(chunk));
        }
        waiting.failed.take().map(Err)
    }

    /// Whether nothing can be taken any more.
    pub(super) fn is_over(&self) -> bool {
        let waiting = self.locked();
        waiting.is_over && waiting.is_empty()
    }

    /// Returns whether there is something to take, or nothing further. Otherwise the waker is called once when that is the case.
    ///
    /// # Errors
    /// `RuntimeError` if another reader waits.
    pub(super) fn wake(&self, waker: Py<PyAny>) -> PyResult<bool> {
        let mut waiting = self.locked();
        if waiting.is_over || !waiting.is_empty() {
            return Ok(true);
        }
        if waiting.waker.is_some() {
            return Err(PyRuntimeError::new_err("another task waits for the next chunk of this stream"));
        }
        waiting.waker = Some(waker);
        Ok(false)
    }

    /// Forgets this waker, whose reader does not wait any more.
    pub(super) fn forget(&self, waker: &Bound<'_, PyAny>) {
        let mut waiting = self.locked();
        let forgotten = waiting.waker.take_if(|other| other.is(waker));
        drop(waiting);
        // Dropping it can run code of Python.
        drop(forgotten);
    }

    /// Changes what waits, and calls the waker.
    fn change<T>(&self, change: impl FnOnce(&mut Waiting) -> T) -> T {
        let (changed, waker) = {
            let mut waiting = self.locked();
            (change(&mut waiting), waiting.waker.take())
        };
        if let Some(waker) = waker {
            // Its errors are ignored: its event loop is closed, or the interpreter ends.
            let _ = attached(|py| waker.call0(py).map(drop));
        }
        changed
    }

    fn locked(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
