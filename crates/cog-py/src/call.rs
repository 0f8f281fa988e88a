//! A run whose result is delivered to a callback.

use std::{panic::AssertUnwindSafe, sync::Arc};

use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::{
    events::events,
    hosted::Hosted,
    request::{Mode, Request},
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
    /// Starts a run. `notify` is called once with its result, on a thread of the async runtime.
    pub(crate) fn start(
        py: Python<'_>,
        hosted: Arc<Hosted>,
        request: Request,
        notify: Py<PyAny>,
    ) -> PyResult<Self> {
        let task = events(py)?.spawn(async move {
            let answer = AssertUnwindSafe(answer(&hosted, request)).catch_unwind().await;
            deliver(&notify, answer.unwrap_or_else(|_| panicked()));
        });
        Ok(Self(task.abort_handle()))
    }
}

/// Runs a module to its envelope.
pub(crate) async fn answer(hosted: &Hosted, request: Request) -> Envelope {
    match request.start(hosted, Mode::Answer).await {
        Ok(chunks) => chunks.fold().await,
        Err(refused) => *refused,
    }
}

/// Calls the callback. Its errors are ignored: its event loop is closed, or the interpreter ends.
fn deliver(notify: &Py<PyAny>, envelope: Envelope) {
    let _ = Python::try_attach(|py| notify.call1(py, (RunResult::new(envelope),)).map(drop));
}

fn panicked() -> Envelope {
    Envelope::failure(ErrorBody::new(
        Code::InternalError,
        "the run failed because of a defect of the runtime",
    ))
}
