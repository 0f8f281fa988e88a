//! Checks of answers that are Python functions.

use std::sync::Arc;

use cog_json::{ToJson as _, Value};
use cog_run::{AnswerCheck, CheckFuture, CheckViolation};
use cog_spec::{Code, ErrorBody};
use pyo3::{PyTraverseError, PyVisit, prelude::*, types::PyString};

use crate::{
    attach::attached,
    caller::{Callback, Caller},
    to_python::to_python,
};

/// A check that can be an option of a run.
#[pyclass(name = "NativeCheck", module = "cognitive._cognitive", frozen)]
pub(crate) struct NativeCheck(pub(crate) Arc<FunctionCheck>);

/// A check that calls a Python function.
pub(crate) struct FunctionCheck {
    callback: Callback,
}

#[pymethods]
impl NativeCheck {
    /// `function` receives the data of an answer, also as JSON, and returns pairs of a path and of what is wrong.
    #[new]
    #[pyo3(signature = (function, *, is_async))]
    fn new(function: Py<PyAny>, is_async: bool) -> Self {
        Self(Arc::new(FunctionCheck { callback: Callback::new(function, is_async) }))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.callback.traverse(&visit)
    }

    fn __clear__(&self) {
        self.0.callback.clear();
    }
}

impl FunctionCheck {
    async fn run(&self, data: Value) -> Result<Vec<CheckViolation>, ErrorBody> {
        let called = self.callback.call(move |py| {
            let text = PyString::new(py, &data.to_json());
            Ok(vec![to_python(py, data.node())?.unbind(), text.into_any().unbind()])
        });
        let found = called.await.and_then(|found| attached(|py| violations(found.bind(py))));
        match found.map_err(|error| failed(&error)) {
            Ok(violations) => Ok(violations),
            Err(Some(error)) => Err(error),
            // The caller of the run notices it now, and drops this future.
            Err(None) => std::future::pending().await,
        }
    }
}

impl AnswerCheck for FunctionCheck {
    fn check<'a>(&'a self, data: &'a Value) -> CheckFuture<'a> {
        Box::pin(self.run(data.clone()))
    }
}

fn violations(found: &Bound<'_, PyAny>) -> PyResult<Vec<CheckViolation>> {
    let caller = Caller::current()?;
    let found: Vec<(String, String)> = found.extract()?;
    let found = found.into_iter();
    Ok(found.map(|(path, message)| CheckViolation { path, message: caller.redact(&message) }).collect())
}

/// Returns an exception of the check itself as the error of the run; none if it ends the run.
fn failed(error: &PyErr) -> Option<ErrorBody> {
    let described = attached(|py| {
        let caller = Caller::current()?;
        if !caller.survives(py, error) {
            return Ok(None);
        }
        caller.set_cause(py, error);
        let kind = error.get_type(py).name()?.to_string();
        let message = format!("a check of the answer raised {kind}: {}", error.value(py));
        Ok(Some(ErrorBody::new(Code::InternalError, caller.redact(&message))))
    });
    described.unwrap_or_else(|error| Some(ErrorBody::new(Code::InternalError, error.to_string())))
}
