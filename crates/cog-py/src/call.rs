//! A run whose result is delivered to a callback.

use std::{panic::AssertUnwindSafe, sync::Arc};

use cog_spec::{Code, Envelope, ErrorBody};
use futures_util::FutureExt as _;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::{
    caller::within,
    events::{Delivery, events},
    hosted::Hosted,
    request::{Mode, Request},
};

/// A run whose result is delivered to a callback. Dropping it cancels the run.
#[pyclass(name = "Call", module = "cognitive._cognitive", frozen)]
pub(crate) struct Call(AbortHandle);

#[pymethods]
impl Call {
    /// Cancels the run and its call to the provider. The callback is not called any more, unless the run has ended.
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
    /// Starts a run. `notify` is called once with its result or the exception that ended it, on the thread of the deliveries.
    pub(crate) fn start(
        py: Python<'_>,
        hosted: Arc<Hosted>,
        request: Request,
        notify: Py<PyAny>,
    ) -> PyResult<Self> {
        let caller = request.caller.clone();
        let run = Arc::clone(&request.run);
        if let Some(caller) = &caller {
            caller.use_running_loop(py)?;
        }
        let events = events(py)?;
        let task = events.runtime.spawn(async move {
            let answer = AssertUnwindSafe(within(caller.as_ref(), answer(&hosted, request))).catch_unwind();
            let answer = answer.await.unwrap_or_else(|_| Ok(panicked()));
            events.deliveries.send(Delivery { notify, answer, caller, run });
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

fn panicked() -> Envelope {
    Envelope::failure(ErrorBody::new(
        Code::InternalError,
        "the run failed because of a defect of the runtime",
    ))
}
