//! Attaches threads of the async runtime to Python, until the interpreter ends.
//!
//! Before Python 3.14, the interpreter ends the threads that wait for it. A thread of Rust must not be ended within a call.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_host::settings::Settings;
use pyo3::{
    exceptions::PyRuntimeError,
    prelude::*,
    types::{PyCFunction, PyDict, PyTuple},
};

/// The number of calls that are attached, and the bit [`ENDS`].
static ATTACHED: AtomicUsize = AtomicUsize::new(0);

/// Set when the interpreter ends: no further call is attached.
const ENDS: usize = 1 << (usize::BITS - 1);

/// How often the end looks whether calls are still attached, and how often at most.
const PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSES: usize = 2000;

/// Does something with Python, unless the interpreter ends.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    try_attached(work).unwrap_or_else(|| Err(PyRuntimeError::new_err("the interpreter ends")))
}

/// Does something with Python; returns none if the interpreter ends.
pub(crate) fn try_attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let before = ATTACHED.fetch_add(1, Ordering::SeqCst);
    // Counts down when it is dropped.
    let _section = Section;
    if before & ENDS == 0 { Python::try_attach(work) } else { None }
}

struct Section;

impl Drop for Section {
    fn drop(&mut self) {
        // A fork during the call has set the number to 0.
        let _ = ATTACHED.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |attached| {
            (attached & !ENDS > 0).then(|| attached - 1)
        });
    }
}

/// Lets the end of the interpreter wait for the calls that are attached. A forked process has none.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let end = PyCFunction::new_closure(
        py,
        None,
        None,
        |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            arguments.py().detach(|| {
                wait_for_calls();
                close_telemetry();
            });
        },
    )?;
    py.import("atexit")?.call_method1("register", (end,))?;
    let reset = |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| ATTACHED.store(0, Ordering::SeqCst);
    let forked = PyDict::new(py);
    forked.set_item("after_in_child", PyCFunction::new_closure(py, None, None, reset)?)?;
    match py.import("os")?.getattr("register_at_fork") {
        Ok(register) => register.call((), Some(&forked)).map(drop),
        // This system has no fork.
        Err(_) => Ok(()),
    }
}

fn wait_for_calls() {
    ATTACHED.fetch_or(ENDS, Ordering::SeqCst);
    for _ in 0..MAX_PAUSES {
        if ATTACHED.load(Ordering::SeqCst) == ENDS {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The settings of every runtime, until it is freed.
static OPEN: Mutex<Vec<Weak<Settings>>> = Mutex::new(Vec::new());

/// Exports what is left when the interpreter ends, if telemetry is on.
pub(crate) fn close_at_exit(settings: &Arc<Settings>) {
    if settings.telemetry_target().is_some() {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|settings| settings.strong_count() > 0);
        open.push(Arc::downgrade(settings));
    }
}

/// Exports what is left of spans and metrics of all runtimes.
fn close_telemetry() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for settings in open.iter().filter_map(Weak::upgrade) {
        // There is no reader of a note at the end of the interpreter.
        let _ = settings.close_telemetry();
    }
}
