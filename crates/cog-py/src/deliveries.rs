//! Delivers the results of runs to their callbacks, from one thread.
//!
//! A thread that attaches to Python waits for the others. One thread takes all results that are ready and waits once for
//! them, and the threads of the async runtime never wait.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use cog_spec::Envelope;
use pyo3::prelude::*;

use crate::{attach::try_attached, caller::Caller, result::RunResult};

/// A result for a callback.
pub(crate) struct Delivery {
    pub(crate) notify: Py<PyAny>,
    /// The result, or the exception that ended the run.
    pub(crate) answer: PyResult<Envelope>,
    pub(crate) caller: Option<Arc<Caller>>,
}

impl Delivery {
    /// Calls the callback. Its errors are ignored: its event loop is closed, or the interpreter ends.
    fn deliver(self, py: Python<'_>) {
        let Self { notify, answer, caller } = self;
        let _ = match answer {
            Ok(envelope) => notify.call1(py, (RunResult::from_run(py, envelope, caller.as_deref()),)),
            Err(error) => notify.call1(py, (error.into_value(py),)),
        };
    }
}

/// The thread that delivers results.
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
