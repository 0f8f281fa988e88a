//! The chunks of a run, read by a loop or by an event loop.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_answer::EnvelopeBuilder;
use cog_run::ChunkStream;
use cog_spec::Chunk;
use futures_util::StreamExt as _;
use pyo3::{exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock};
use tokio::{sync::Notify, task::AbortHandle};

use crate::{
    events::{events, wait},
    result::RunResult,
    to_python::json_to_python,
};

/// The maximum number of chunks that wait for the event loop.
const MAX_WAITING: usize = 256;

/// The chunks of a run. Dropping it cancels the run.
#[pyclass(name = "Chunks", module = "cognitive._cognitive", frozen)]
pub(crate) struct Chunks {
    source: Mutex<Source>,
    /// The chunks that a task has read.
    queue: Arc<Queue>,
    envelope: Mutex<EnvelopeBuilder>,
    result: PyOnceLock<Py<RunResult>>,
}

/// The reader of the run.
enum Source {
    /// The next call of [`Chunks::next`] or [`Chunks::wake`].
    Stream(ChunkStream),
    /// A call of [`Chunks::next`], now.
    Reading,
    /// A task, which fills the queue.
    Task(AbortHandle),
    /// None: it has ended or was closed.
    Ended,
}

/// The chunks between a task and the event loop.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified when there is room.
    room: Notify,
}

#[derive(Default)]
struct Waiting {
    chunks: VecDeque<Chunk>,
    is_over: bool,
    /// Called once when there is a chunk, or no further one.
    waker: Option<Py<PyAny>>,
}

impl Chunks {
    pub(crate) fn new(stream: ChunkStream) -> Self {
        Self {
            source: Mutex::new(Source::Stream(stream)),
            queue: Arc::default(),
            envelope: Mutex::default(),
            result: PyOnceLock::new(),
        }
    }

    /// Converts a chunk, and adds it to the envelope.
    fn convert<'py>(&self, py: Python<'py>, chunk: Chunk) -> PyResult<Bound<'py, PyAny>> {
        let converted = json_to_python(py, &chunk);
        locked(&self.envelope).push(chunk);
        converted
    }

    /// Takes the stream to read from it.
    fn take_stream(&self) -> PyResult<Option<ChunkStream>> {
        let mut source = locked(&self.source);
        match std::mem::replace(&mut *source, Source::Reading) {
            Source::Stream(stream) => Ok(Some(stream)),
            Source::Ended => {
                *source = Source::Ended;
                Ok(None)
            }
            other => {
                *source = other;
                Err(PyRuntimeError::new_err("another thread or an event loop reads this stream"))
            }
        }
    }
}

#[pymethods]
impl Chunks {
    /// Waits for the next chunk; None after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut stream) = self.take_stream()? else { return Ok(None) };
        let next = wait(py, stream.next());
        let mut source = locked(&self.source);
        match next {
            Ok(Some(chunk)) => {
                *source = Source::Stream(stream);
                drop(source);
                self.convert(py, chunk).map(Some)
            }
            Ok(None) => {
                *source = Source::Ended;
                Ok(None)
            }
            Err(interrupted) => {
                *source = Source::Ended;
                Err(interrupted)
            }
        }
    }

    /// Returns a chunk that a task has read; None if there is none yet.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let chunk = locked(&self.queue.waiting).chunks.pop_front();
        let Some(chunk) = chunk else { return Ok(None) };
        self.queue.room.notify_one();
        self.convert(py, chunk).map(Some)
    }

    /// Returns whether there is a chunk to take, or no further one. Otherwise `notify` is called once, from another thread, when
    /// that is the case.
    fn wake(&self, py: Python<'_>, notify: Py<PyAny>) -> PyResult<bool> {
        self.start_task(py)?;
        let mut waiting = locked(&self.queue.waiting);
        let is_ready = waiting.is_over || !waiting.chunks.is_empty();
        if !is_ready {
            waiting.waker = Some(notify);
        }
        Ok(is_ready)
    }

    /// Whether all chunks were read.
    #[getter]
    fn is_over(&self) -> bool {
        let waiting = locked(&self.queue.waiting);
        match *locked(&self.source) {
            Source::Ended => waiting.chunks.is_empty(),
            Source::Task(_) => waiting.is_over && waiting.chunks.is_empty(),
            Source::Stream(_) | Source::Reading => false,
        }
    }

    /// Cancels the run. There are no further chunks.
    fn close(&self) {
        let source = std::mem::replace(&mut *locked(&self.source), Source::Ended);
        if let Source::Task(task) = source {
            task.abort();
        }
        locked(&self.queue.waiting).chunks.clear();
    }

    /// The envelope of the chunks that were read; None before the last.
    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<RunResult>>> {
        if !self.is_over() {
            return Ok(None);
        }
        let result = self.result.get_or_try_init(py, || {
            let envelope = std::mem::take(&mut *locked(&self.envelope));
            Py::new(py, RunResult::new(envelope.finish()))
        });
        Ok(Some(result?.clone_ref(py)))
    }
}

impl Chunks {
    /// Starts the task that reads the run for an event loop, if there is none.
    fn start_task(&self, py: Python<'_>) -> PyResult<()> {
        if matches!(*locked(&self.source), Source::Task(_) | Source::Ended) {
            return Ok(());
        }
        let events = events(py)?;
        let Some(stream) = self.take_stream()? else { return Ok(()) };
        let end = End(Arc::clone(&self.queue));
        let task = events.spawn(async move {
            let mut batches = stream.ready_chunks(MAX_WAITING);
            while let Some(batch) = batches.next().await {
                end.0.add(batch).await;
            }
        });
        *locked(&self.source) = Source::Task(task.abort_handle());
        Ok(())
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    /// Adds chunks, and waits until there is room for more.
    async fn add(&self, batch: Vec<Chunk>) {
        let waker = {
            let mut waiting = locked(&self.waiting);
            waiting.chunks.extend(batch);
            waiting.waker.take()
        };
        wake(waker);
        while locked(&self.waiting).chunks.len() >= MAX_WAITING {
            self.room.notified().await;
        }
    }
}

/// Ends the queue when the task ends, also if it is cancelled.
struct End(Arc<Queue>);

impl Drop for End {
    fn drop(&mut self) {
        let waker = {
            let mut waiting = locked(&self.0.waiting);
            waiting.is_over = true;
            waiting.waker.take()
        };
        wake(waker);
    }
}

/// Calls a waker. Its errors are ignored: its event loop is closed, or the interpreter ends.
fn wake(waker: Option<Py<PyAny>>) {
    if let Some(waker) = waker {
        let _ = Python::try_attach(|py| waker.call0(py).map(drop));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
