//! The chunks of a run, read by a loop or by an event loop.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_answer::EnvelopeBuilder;
use cog_json::ToJson;
use cog_run::ChunkStream;
use cog_spec::{Chunk, Envelope};
use futures_util::StreamExt as _;
use pyo3::{exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock};
use tokio::{sync::Notify, task::AbortHandle};

use crate::{
    attach::attached,
    caller::{Caller, within},
    events::{events, wait},
    hosted::{Hosted, LoggedRun},
    request::{Mode, Request},
    result::{RunResult, exception_of},
    to_python::{json_text_to_python, json_to_python},
};

/// The chunks of a run. Dropping it cancels the run.
#[pyclass(name = "Chunks", module = "cognitive._cognitive", frozen)]
pub(crate) struct Chunks {
    source: Mutex<Source>,
    /// The chunks that a task has read.
    queue: Arc<Queue>,
    /// Notified when the chunks are closed while a thread reads them.
    closed: Notify,
    envelope: Mutex<EnvelopeBuilder>,
    result: PyOnceLock<Py<RunResult>>,
    caller: Option<Arc<Caller>>,
    run: Arc<LoggedRun>,
}

/// The reader of the run.
enum Source {
    /// The next call of [`Chunks::next`] or [`Chunks::wake`].
    Waiting(Run),
    /// A call of [`Chunks::next`], now.
    Reading,
    /// A task, which fills the queue.
    Task(AbortHandle),
    /// None: it has ended or was closed.
    Ended,
}

/// A run that is read.
enum Run {
    /// It starts when it is read.
    Requested(Arc<Hosted>, Box<Request>),
    /// It has started.
    Started(ChunkStream),
}

impl Chunks {
    pub(crate) fn new(hosted: Arc<Hosted>, request: Request) -> Self {
        Self {
            caller: request.caller.clone(),
            run: Arc::clone(&request.run),
            source: Mutex::new(Source::Waiting(Run::Requested(hosted, Box::new(request)))),
            queue: Arc::default(),
            closed: Notify::new(),
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

    /// Stores the result of a run that was refused, and returns its exception.
    fn refused(&self, py: Python<'_>, envelope: Envelope) -> PyErr {
        let result = self.result.get_or_try_init(py, || Py::new(py, self.finished(py, envelope)));
        result.and_then(|result| exception_of(result.bind(py))).unwrap_or_else(|error| error)
    }

    fn finished(&self, py: Python<'_>, envelope: Envelope) -> RunResult {
        RunResult::from_run(py, envelope, self.caller.as_deref(), Arc::clone(&self.run))
    }

    /// Takes the run to read it. None if it has ended.
    fn take_run(&self) -> PyResult<Option<Run>> {
        let mut source = locked(&self.source);
        match std::mem::replace(&mut *source, Source::Reading) {
            Source::Waiting(run) => Ok(Some(run)),
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

    /// Ends reading, unless the chunks were closed in the meantime.
    fn put_back(&self, next: Source) -> bool {
        let mut source = locked(&self.source);
        let is_reading = matches!(*source, Source::Reading);
        if is_reading {
            *source = next;
        }
        is_reading
    }

    /// Reads the next chunk, until the chunks are closed.
    async fn read(&self, run: Run) -> PyResult<Result<Option<(Chunk, ChunkStream)>, Box<Envelope>>> {
        let next = async {
            let mut stream = run.start().await?;
            Ok(stream.next().await.map(|chunk| (chunk, stream)))
        };
        tokio::select! {
            biased;
            () = self.closed.notified() => Ok(Ok(None)),
            next = within(self.caller.as_ref(), next) => next,
        }
    }
}

#[pymethods]
impl Chunks {
    /// Waits for the next chunk; None after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(run) = self.take_run()? else { return Ok(None) };
        match wait(py, self.read(run)).flatten() {
            Ok(Ok(Some((chunk, stream)))) => match self.put_back(Source::Waiting(Run::Started(stream))) {
                true => self.convert(py, chunk).map(Some),
                false => Ok(None),
            },
            Ok(Ok(None)) => {
                self.put_back(Source::Ended);
                Ok(None)
            }
            Ok(Err(refused)) => {
                self.put_back(Source::Ended);
                Err(self.refused(py, *refused))
            }
            Err(interrupted) => {
                self.put_back(Source::Ended);
                Err(interrupted)
            }
        }
    }

    /// Returns a chunk that a task has read; None if there is none yet.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.queue.take() {
            Some(Ok(chunk)) => self.convert(py, chunk).map(Some),
            Some(Err(Failed::Refused(envelope))) => Err(self.refused(py, *envelope)),
            Some(Err(Failed::Raised(error))) => Err(error),
            None => Ok(None),
        }
    }

    /// Returns whether there is a chunk to take, or no further one. Otherwise `notify` is called once, from another thread, when
    /// that is the case.
    fn wake(&self, py: Python<'_>, notify: Py<PyAny>) -> PyResult<bool> {
        match self.start_task(py)? {
            true => self.queue.wake(notify),
            false => Ok(true),
        }
    }

    /// Forgets this `notify`, because its task does not wait any more.
    fn forget(&self, notify: &Bound<'_, PyAny>) {
        self.queue.forget(notify);
    }

    /// Whether all chunks were read.
    #[getter]
    fn is_over(&self) -> bool {
        match *locked(&self.source) {
            Source::Ended => true,
            Source::Task(_) => self.queue.is_over(),
            Source::Waiting(_) | Source::Reading => false,
        }
    }

    /// Cancels the run. There are no further chunks.
    fn close(&self) {
        let source = std::mem::replace(&mut *locked(&self.source), Source::Ended);
        match source {
            Source::Task(task) => task.abort(),
            Source::Reading => self.closed.notify_one(),
            Source::Waiting(_) | Source::Ended => {}
        }
        self.queue.close();
    }

    /// The answer so far; None before the first chunk of data.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(result) = self.result.get(py) {
            let data = result.get().data(py)?.into_bound(py);
            return Ok((!data.is_none()).then_some(data));
        }
        let data = locked(&self.envelope).data().map(ToJson::to_json);
        data.map(|data| json_text_to_python(py, &data)).transpose()
    }

    /// The envelope of the chunks that were read; None before the last.
    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Option<Py<RunResult>>> {
        if self.result.get(py).is_none() && !locked(&self.envelope).is_over() && !self.is_over() {
            return Ok(None);
        }
        let result = self.result.get_or_try_init(py, || {
            let envelope = std::mem::take(&mut *locked(&self.envelope));
            Py::new(py, self.finished(py, envelope.finish()))
        });
        Ok(Some(result?.clone_ref(py)))
    }
}

impl Chunks {
    /// Starts the task that reads the run for an event loop, if there is none. Returns false if the run has ended.
    fn start_task(&self, py: Python<'_>) -> PyResult<bool> {
        if matches!(*locked(&self.source), Source::Task(_)) {
            return Ok(true);
        }
        let events = events(py)?;
        let Some(run) = self.take_run()? else { return Ok(false) };
        let end = End(Arc::clone(&self.queue));
        let caller = self.caller.clone();
        if let Some(caller) = &caller {
            caller.use_running_loop(py)?;
        }
        let task = events.runtime.spawn(async move {
            if let Err(error) = within(caller.as_ref(), run.fill(&end.0)).await {
                end.0.fail(Failed::Raised(error));
            }
        });
        let handle = task.abort_handle();
        if !self.put_back(Source::Task(handle)) {
            task.abort();
        }
        Ok(true)
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        self.close();
    }
}

impl Run {
    /// Starts the run, unless it has started.
    async fn start(self) -> Result<ChunkStream, Box<Envelope>> {
        match self {
            Self::Requested(hosted, request) => request.start(&hosted, Mode::Stream).await,
            Self::Started(stream) => Ok(stream),
        }
    }

    /// Reads the run into a queue.
    async fn fill(self, queue: &Queue) {
        match self.start().await {
            Ok(stream) => {
                let mut batches = stream.ready_chunks(MAX_WAITING);
                while let Some(batch) = batches.next().await {
                    queue.add(batch).await;
                }
            }
            Err(refused) => queue.fail(Failed::Refused(refused)),
        }
    }
}

/// Ends the queue when the task ends, also if it is cancelled.
struct End(Arc<Queue>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// The chunks between a task and the event loop that reads them.

/// The maximum number of chunks that wait for the event loop.
const MAX_WAITING: usize = 256;

/// The chunks between a task and the event loop that reads them.
#[derive(Default)]
struct Queue {
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
enum Failed {
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
    async fn add(&self, batch: Vec<Chunk>) {
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
    fn fail(&self, failed: Failed) {
        drop(self.change(|waiting| waiting.failed.replace(failed)));
    }

    /// Ends the queue. The chunks that wait can still be taken.
    fn end(&self) {
        self.change(|waiting| waiting.is_over = true);
    }

    /// Ends the queue, and removes what waits.
    fn close(&self) {
        let removed = self.change(|waiting| {
            waiting.is_over = true;
            (std::mem::take(&mut waiting.chunks), waiting.failed.take())
        });
        self.room.notify_one();
        // Dropping an exception can run code of Python.
        drop(removed);
    }

    /// Takes the next chunk, or why there is none. None if there is nothing yet, or nothing further.
    fn take(&self) -> Option<Result<Chunk, Failed>> {
        let mut waiting = self.locked();
        if let Some(chunk) = waiting.chunks.pop_front() {
            self.room.notify_one();
            return Some(Ok(chunk));
        }
        waiting.failed.take().map(Err)
    }

    /// Whether nothing can be taken any more.
    fn is_over(&self) -> bool {
        let waiting = self.locked();
        waiting.is_over && waiting.is_empty()
    }

    /// Returns whether there is something to take, or nothing further. Otherwise the waker is called once when that is the case.
    ///
    /// # Errors
    /// `RuntimeError` if another reader waits.
    fn wake(&self, waker: Py<PyAny>) -> PyResult<bool> {
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
    fn forget(&self, waker: &Bound<'_, PyAny>) {
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
