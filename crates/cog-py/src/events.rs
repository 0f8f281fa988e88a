//! The async runtime of the process.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pyo3::{PyErr, PyResult, Python, exceptions::PyOSError};
use tokio::runtime::{Builder, Runtime};

use crate::attach::{register, try_attached};

/// How often a blocked call looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// The async runtime, with the process that it belongs to. The lock is only held by a thread that is attached to Python, so
/// that no other thread holds it when the process forks.
static EVENTS: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// Returns the async runtime of this process. A forked process gets its own: threads do not survive a fork.
pub(crate) fn events(py: Python<'_>) -> PyResult<&'static Runtime> {
    let (runtime, is_new) = current()?;
    if is_new {
        register(py)?;
    }
    Ok(runtime)
}

/// Returns the async runtime of this process, and whether it was created now.
fn current() -> PyResult<(&'static Runtime, bool)> {
    let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match *events {
        Some((owner, runtime)) if owner == process => Ok((runtime, false)),
        _ => {
            let runtime = Builder::new_multi_thread().thread_name("cognitive").enable_all().build();
            let runtime = runtime
                .map_err(|error| PyOSError::new_err(format!("cannot start the async runtime: {error}")))?;
            // It lives as long as the process. Without a destructor, the interpreter can end while a run is active.
            let runtime: &'static Runtime = Box::leak(Box::new(runtime));
            *events = Some((process, runtime));
            Ok((runtime, true))
        }
    }
}

/// Waits for a future while other Python threads run. Ctrl-C raises `KeyboardInterrupt` and drops the future.
pub(crate) fn wait<T: Send>(py: Python<'_>, work: impl Future<Output = T> + Send) -> PyResult<T> {
    let events = events(py)?;
    py.detach(|| {
        events.block_on(async {
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
