//! Calls of Python functions during a run.

use std::sync::{Mutex, PoisonError};

use pyo3::{exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock, types::PyTuple};
use tokio::sync::oneshot;

use crate::{attach::attached, caller::Caller};

/// A Python function that a run calls.
pub(crate) struct Callback {
    function: Py<PyAny>,
    /// Whether it is called in an event loop. Otherwise it is called on a thread of its own.
    is_async: bool,
}

impl Callback {
    pub(crate) fn new(function: Py<PyAny>, is_async: bool) -> Self {
        Self { function, is_async }
    }

    /// Calls the function with these arguments. Dropping the future cancels the task of an asynchronous function; any other
    /// function runs to its end, and its result is dropped.
    pub(crate) async fn call<A>(&self, arguments: A) -> PyResult<Py<PyAny>>
    where
        A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
    {
        let caller = Caller::current()?;
        match self.is_async {
            true => call_in_loop(&caller, &self.function, arguments).await,
            false => call_in_thread(&caller, &self.function, arguments).await,
        }
    }
}

/// Calls a function on a thread of Python, which the interpreter can end.
async fn call_in_thread<A>(caller: &Caller, function: &Py<PyAny>, arguments: A) -> PyResult<Py<PyAny>>
where
    A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
{
    static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (send, done) = oneshot::channel();
    attached(|py| {
        let (arguments, done) = (PyTuple::new(py, arguments(py)?)?, Done(Mutex::new(Some(send))));
        let start = START.import(py, "cognitive._calls", "start_thread")?;
        start.call1((caller.context(py)?, function, arguments, done)).map(drop)
    })?;
    done.await.unwrap_or_else(|_| Err(PyRuntimeError::new_err("the thread of the call has ended")))
}

/// Calls an asynchronous function in the event loop of the caller.
async fn call_in_loop<A>(caller: &Caller, function: &Py<PyAny>, arguments: A) -> PyResult<Py<PyAny>>
where
    A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
{
    static SUBMIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (send, done) = oneshot::channel();
    let mut running = attached(|py| {
        let submit = SUBMIT.import(py, "cognitive._calls", "submit")?;
        let (arguments, done) = (PyTuple::new(py, arguments(py)?)?, Done(Mutex::new(Some(send))));
        let call = (submit, function, arguments, caller.event_loop(py)?, done);
        Ok(Running(Some(caller.context(py)?.call_method1("run", call)?.unbind())))
    })?;
    let result = done.await;
    running.0 = None;
    result.unwrap_or_else(|_| Err(PyRuntimeError::new_err("the event loop was closed during the call")))
}

/// A task of an event loop, as the function that cancels it. Dropping it cancels the task.
struct Running(Option<Py<PyAny>>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            let _ = attached(|py| cancel.call0(py));
        }
    }
}

/// What an event loop calls with the future of a task that has ended.
#[pyclass(frozen)]
struct Done(Mutex<Option<oneshot::Sender<PyResult<Py<PyAny>>>>>);

#[pymethods]
impl Done {
    fn __call__(&self, future: &Bound<'_, PyAny>) {
        let send = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(send) = send {
            let _ = send.send(future.call_method0("result").map(Bound::unbind));
        }
    }
}

/// Returns whether an exception ends the run, and no other code handles it: `KeyboardInterrupt`, `SystemExit`.
pub(crate) fn ends_run(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<pyo3::exceptions::PyException>(py)
}

/// Logs a warning in Python.
pub(crate) fn warn(sentence: String) {
    let _ = attached(|py| {
        let logger = py.import("logging")?.call_method1("getLogger", ("cognitive",))?;
        logger.call_method1("warning", (sentence,)).map(drop)
    });
}
