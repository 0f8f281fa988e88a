//! The Python code that waits for a run, and the Python functions that the run calls.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use cog_host::settings::Redactor;
use pyo3::{
    PyTraverseError, PyVisit, exceptions::PyRuntimeError, prelude::*, sync::PyOnceLock, types::PyTuple,
};
use tokio::sync::oneshot;

use crate::attach::attached;

tokio::task_local! {
    static CALLER: Arc<Caller>;
}

/// The caller of a run: where its functions run, and what they raised.
pub(crate) struct Caller {
    /// The context variables of the caller.
    context: Py<PyAny>,
    /// The event loop of asynchronous functions.
    event_loop: PyOnceLock<Py<PyAny>>,
    raised: Mutex<Raised>,
    /// The keys that no message contains.
    redactor: Redactor,
}

/// What the functions of a run raised.
#[derive(Default)]
struct Raised {
    /// The exceptions, in order.
    all: Vec<Py<PyAny>>,
    /// The exception because of which the last call of a provider failed.
    cause: Option<Py<PyAny>>,
    /// An exception that ends the run and is raised again, such as `KeyboardInterrupt`.
    end: Option<PyErr>,
}

impl Caller {
    /// Creates the caller of a run from the current Python code, with the `deps` of its tools and checks.
    ///
    /// # Errors
    /// `RecursionError` if functions of runs start runs too deeply.
    pub(crate) fn new(
        py: Python<'_>,
        redactor: Redactor,
        deps: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Self>> {
        static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let context = NEW.import(py, "cognitive._calls", "new_context")?.call1((deps,))?.unbind();
        Ok(Arc::new(Self { context, event_loop: PyOnceLock::new(), raised: Mutex::default(), redactor }))
    }

    /// Returns the caller of the run that this code is part of.
    pub(crate) fn current() -> PyResult<Arc<Self>> {
        CALLER
            .try_with(Arc::clone)
            .map_err(|_| PyRuntimeError::new_err("a Python function was called outside of a run"))
    }

    /// Lets asynchronous functions run in the event loop that runs this code, of asyncio or of trio, if one does.
    pub(crate) fn use_running_loop(&self, py: Python<'_>) -> PyResult<()> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let running = RUNNING.import(py, "cognitive._calls", "running_loop")?.call0()?;
        if !running.is_none() {
            let _ = self.event_loop.set(py, running.unbind());
        }
        Ok(())
    }

    /// Returns the event loop of asynchronous functions: the caller's, otherwise one of the package.
    pub(crate) fn event_loop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static OWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = self.event_loop.get_or_try_init(py, || {
            Ok::<_, PyErr>(OWN.import(py, "cognitive._calls", "own_loop")?.call1((&self.context,))?.unbind())
        });
        Ok(event_loop?.bind(py).clone())
    }

    /// Returns a copy of the context. Functions that run at the same time need one each.
    pub(crate) fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.context.bind(py).call_method0("copy")
    }

    /// Masks the keys of the settings in a string.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// Takes an exception that a function of the program raised. Returns false if it ends the run.
    pub(crate) fn survives(&self, py: Python<'_>, error: &PyErr) -> bool {
        let ends = ends_run(py, error);
        if ends {
            self.end(error.clone_ref(py));
        } else {
            self.record(py, error);
        }
        !ends
    }

    /// Records the exception of a function.
    pub(crate) fn record(&self, py: Python<'_>, error: &PyErr) {
        let error = value(py, error);
        self.raised().all.push(error);
    }

    /// Sets the exception because of which a call of a provider failed.
    pub(crate) fn set_cause(&self, py: Python<'_>, error: &PyErr) {
        let error = value(py, error);
        let before = self.raised().cause.replace(error);
        // Dropping an exception can run code of Python.
        drop(before);
    }

    /// Ends the run with an exception that is raised again.
    pub(crate) fn end(&self, error: PyErr) {
        let mut raised = self.raised();
        let later = match raised.end {
            Some(_) => Some(error),
            None => raised.end.replace(error),
        };
        drop(raised);
        drop(later);
    }

    /// Returns the exceptions of the functions, and the exception of the provider.
    pub(crate) fn exceptions(&self, py: Python<'_>) -> (Vec<Py<PyAny>>, Option<Py<PyAny>>) {
        let raised = self.raised();
        let all = raised.all.iter().map(|error| error.clone_ref(py)).collect();
        (all, raised.cause.as_ref().map(|error| error.clone_ref(py)))
    }

    fn raised(&self) -> MutexGuard<'_, Raised> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the exception with its traceback.
pub(crate) fn value(py: Python<'_>, error: &PyErr) -> Py<PyAny> {
    error.clone_ref(py).into_value(py).into_any()
}

/// Does a part of a run for its caller; without one, the run calls no functions.
///
/// # Errors
/// The exception that ends the run, such as `KeyboardInterrupt`. The rest of the work is dropped.
pub(crate) async fn within<T>(caller: Option<&Arc<Caller>>, work: impl Future<Output = T>) -> PyResult<T> {
    let Some(caller) = caller else { return Ok(work.await) };
    let mut work = pin!(CALLER.scope(Arc::clone(caller), work));
    std::future::poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        match caller.raised().end.take() {
            Some(error) => Poll::Ready(Err(error)),
            None => polled.map(Ok),
        }
    })
    .await
}

/// A Python function that a run calls. One Python object owns it for the garbage collector, which must count it once.
pub(crate) struct Callback {
    /// None once the garbage collector has freed it.
    function: Mutex<Option<Py<PyAny>>>,
    /// Whether it is called in an event loop. Otherwise it is called on a thread of its own.
    is_async: bool,
}

impl Callback {
    pub(crate) fn new(function: Py<PyAny>, is_async: bool) -> Self {
        Self { function: Mutex::new(Some(function)), is_async }
    }

    /// Shows the function to the garbage collector. Its owner calls this.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The lock is held only for a moment. What is not shown is kept.
        self.function.try_lock().map_or(Ok(()), |function| visit.call(function.as_ref()))
    }

    /// Frees the function, because it is part of a circle that nothing else uses.
    pub(crate) fn clear(&self) {
        let freed = self.function.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Dropping it can run code of Python.
        drop(freed);
    }

    fn function(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let function = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        let function = function.as_ref().map(|function| function.clone_ref(py));
        function.ok_or_else(|| PyRuntimeError::new_err("the function was freed together with its runtime"))
    }

    /// Calls the function with these arguments. Dropping the future cancels the task of an asynchronous function; any other
    /// function runs to its end, and its result is dropped.
    pub(crate) async fn call<A>(&self, arguments: A) -> PyResult<Py<PyAny>>
    where
        A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
    {
        let caller = Caller::current()?;
        match self.is_async {
            true => call_in_loop(&caller, self, arguments).await,
            false => call_in_thread(&caller, self, arguments).await,
        }
    }
}

/// Calls a function on a thread of Python, which the interpreter can end.
async fn call_in_thread<A>(caller: &Caller, callback: &Callback, arguments: A) -> PyResult<Py<PyAny>>
where
    A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
{
    static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (send, done) = oneshot::channel();
    attached(|py| {
        let arguments = PyTuple::new(py, arguments(py)?)?;
        let done = Done(Mutex::new(Some(send)));
        let start = START.import(py, "cognitive._calls", "start_thread")?;
        start.call1((caller.context(py)?, callback.function(py)?, arguments, done)).map(drop)
    })?;
    done.await.unwrap_or_else(|_| Err(PyRuntimeError::new_err("the thread of the call has ended")))
}

/// Calls an asynchronous function in the event loop of the caller.
async fn call_in_loop<A>(caller: &Caller, callback: &Callback, arguments: A) -> PyResult<Py<PyAny>>
where
    A: FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
{
    static SUBMIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (send, done) = oneshot::channel();
    let mut running = attached(|py| {
        let submit = SUBMIT.import(py, "cognitive._calls", "submit")?;
        let arguments = PyTuple::new(py, arguments(py)?)?;
        let done = Done(Mutex::new(Some(send)));
        let call = (submit, callback.function(py)?, arguments, caller.event_loop(py)?, done);
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
fn ends_run(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<pyo3::exceptions::PyException>(py)
}

/// Logs a warning in Python.
pub(crate) fn warn(sentence: String) {
    let _ = attached(|py| {
        let logger = py.import("logging")?.call_method1("getLogger", ("cognitive",))?;
        logger.call_method1("warning", (sentence,)).map(drop)
    });
}
