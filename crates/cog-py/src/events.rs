//! The async runtime of the process, and its thread for results.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use cog_spec::Envelope;
use pyo3::{
    exceptions::{PyOSError, PyRuntimeError},
    prelude::*,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{
    attach::{register, try_attached},
    caller::Caller,
    hosted::LoggedRun,
    result::RunResult,
};

/// How often a blocked call looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// The threads of this process that run modules.
pub(crate) struct Events {
    pub(crate) runtime: Runtime,
    pub(crate) deliveries: Deliveries,
}

/// The threads, with the process that they belong to. The lock is only held by a thread that is attached to Python, so
/// that no other thread holds it when the process forks.
static EVENTS: Mutex<Option<(u32, &'static Events)>> = Mutex::new(None);

/// Returns the threads of this process. A forked process gets its own: threads do not survive a fork.
pub(crate) fn events(py: Python<'_>) -> PyResult<&'static Events> {
    let (events, is_new) = current()?;
    if is_new {
        register(py)?;
    }
    Ok(events)
}

/// Returns the threads of this process, and whether they were started now.
fn current() -> PyResult<(&'static Events, bool)> {
    let mut current = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match *current {
        Some((owner, events)) if owner == process => Ok((events, false)),
        _ => {
            let events = start()
                .map_err(|error| PyOSError::new_err(format!("cannot start the async runtime: {error}")))?;
            // They live as long as the process. Without a destructor, the interpreter can end while a run is active.
            let events: &'static Events = Box::leak(Box::new(events));
            *current = Some((process, events));
            Ok((events, true))
        }
    }
}

fn start() -> io::Result<Events> {
    let runtime = Builder::new_multi_thread().thread_name("cognitive").enable_all().build()?;
    Ok(Events { runtime, deliveries: Deliveries::start()? })
}

/// Waits for a future while other Python threads run. Ctrl-C raises `KeyboardInterrupt` and drops the future.
///
/// # Errors
/// `RuntimeError` if a hook calls it: hooks are called within a run, on a thread that must not wait for another one.
pub(crate) fn wait<T: Send>(py: Python<'_>, work: impl Future<Output = T> + Send) -> PyResult<T> {
    let events = events(py)?;
    if Handle::try_current().is_ok() {
        return Err(PyRuntimeError::new_err("a hook cannot wait for a run; start it in a thread of its own"));
    }
    py.detach(|| {
        events.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                interrupted = interrupted() => Err(interrupted),
            }
        })
    })
}

/// Waits until a signal handler of Python raises an exception.
async fn interrupted() -> PyErr {
    loop {
        tokio::time::sleep(SIGNALS).await;
        if let Some(Err(error)) = try_attached(|py| py.check_signals()) {
            return error;
        }
    }
}

/// A result for a callback.
pub(crate) struct Delivery {
    pub(crate) notify: Py<PyAny>,
    /// The result, or the exception that ended the run.
    pub(crate) answer: PyResult<Envelope>,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) run: Arc<LoggedRun>,
}

impl Delivery {
    /// Calls the callback. Its errors are ignored: its event loop is closed, or the interpreter ends.
    fn deliver(self, py: Python<'_>) {
        let Self { notify, answer, caller, run } = self;
        let _ = match answer {
            Ok(envelope) => notify.call1(py, (RunResult::from_run(py, envelope, caller.as_deref(), run),)),
            Err(error) => notify.call1(py, (error.into_value(py),)),
        };
    }
}

/// The thread that delivers results.
///
/// A thread that attaches to Python waits for the others. One thread takes all results that are ready and waits once for
/// them, and the threads of the async runtime never wait.
///
/// Not bounded: each run has one result, which it would hold otherwise.
pub(crate) struct Deliveries(Sender<Delivery>);

impl Deliveries {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, ready) = channel();
        thread::Builder::new().name("cognitive-results".to_owned()).spawn(move || deliver_all(&ready))?;
        Ok(Self(sender))
    }

    /// Delivers a result soon. It is dropped if the interpreter ends.
    pub(crate) fn send(&self, delivery: Delivery) {
        // The thread ends after the sender.
        let _ = self.0.send(delivery);
    }
}

fn deliver_all(ready: &Receiver<Delivery>) {
    while let Ok(first) = ready.recv() {
        // Without Python, the results are dropped one by one.
        let _ = try_attached(|py| {
            for delivery in std::iter::once(first).chain(ready.try_iter()) {
                // A defect in one delivery must not stop the others.
                let _ = catch_unwind(AssertUnwindSafe(|| delivery.deliver(py)));
            }
        });
    }
}
