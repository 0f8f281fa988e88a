//! A run whose result is delivered to a callback.

use std::{panic::AssertUnwindSafe, sync::Arc};

use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::{
    attach::attached,
    caller::{Caller, within},
    events::events,
    hosted::Hosted,
    request::{Mode, Request, Started},
    result::RunResult,
};

/// A run whose result is delivered to a callback. Dropping it cancels the run.
#[pyclass(name = "Call", module = "cognitive._cognitive", frozen)]
pub(crate) struct Call(AbortHandle);

#[pymethods]
impl Call {
    /// Cancels the run and its call to the provider. The callback is not called any more.
    fn cancel(&self) {
        self.0.abort();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Call {
    /// Starts a run. `notify` is called once with its result or the exception that ended it, on a thread of the async runtime.
    pub(crate) fn start(
        py: Python<'_>,
        hosted: Arc<Hosted>,
        request: Request,
        notify: Py<PyAny>,
    ) -> PyResult<Self> {
        let caller = request.caller.clone();
        if let Some(caller) = &caller {
            caller.use_running_loop(py)?;
        }
        let task = events(py)?.spawn(async move {
            let answer = AssertUnwindSafe(within(caller.as_ref(), answer(&hosted, request))).catch_unwind();
            let answer = answer.await.unwrap_or_else(|_| Ok(panicked()));
            deliver(&notify, answer, caller.as_deref());
        });
        Ok(Self(task.abort_handle()))
    }
}

/// Runs a module to its envelope.
pub(crate) async fn answer(hosted: &Hosted, request: Request) -> Envelope {
    match request.start(hosted, Mode::Answer).await {
        Ok(Started { chunks, entry }) => {
            let envelope = chunks.fold().await;
            entry.into_iter().for_each(|entry| entry.add(&envelope));
            envelope
        }
        Err(refused) => *refused,
    }
}

/// Calls the callback. Its errors are ignored: its event loop is closed, or the interpreter ends.
fn deliver(notify: &Py<PyAny>, answer: PyResult<Envelope>, caller: Option<&Caller>) {
    let _ = attached(|py| match answer {
        Ok(envelope) => notify.call1(py, (RunResult::from_run(py, envelope, caller),)).map(drop),
        Err(error) => notify.call1(py, (error.into_value(py),)).map(drop),
    });
}

fn panicked() -> Envelope {
    Envelope::failure(ErrorBody::new(
        Code::InternalError,
        "the run failed because of a defect of the runtime",
    ))
}
