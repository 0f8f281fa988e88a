//! The error of a failed run.

use cog_json::ToJson as _;
use cog_spec::{Envelope, ErrorBody};
use pyo3::{prelude::*, types::PyTuple};

use crate::to_python::{card, to_python};

/// The error of a failed run.
#[pyclass(name = "ErrorInfo", module = "cognitive", frozen)]
pub(crate) struct ErrorInfo(pub(crate) ErrorBody);

#[pymethods]
impl ErrorInfo {
    /// The code: `E4006`.
    #[getter]
    fn code(&self) -> &str {
        self.0.code.as_str()
    }

    /// What happened.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether a retry can succeed; None if it is unknown.
    #[getter]
    fn recoverable(&self) -> Option<bool> {
        self.0.recoverable
    }

    /// What to do about it.
    #[getter]
    fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Details for programs.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.details.as_ref().map(|details| to_python(py, details.node())).transpose()
    }

    /// How it is pickled and copied: as the error of a result.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let json = Envelope::failure(self.0.clone()).to_json();
        let result = py.import("cognitive._cognitive")?.getattr("Result")?.call1((json,))?;
        (py.import("builtins")?.getattr("getattr")?, (result, "error")).into_pyobject(py)
    }

    /// The card that a notebook shows.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        card("error", slf)
    }

    fn __repr__(&self) -> String {
        format!("ErrorInfo(code={:?}, message={:?})", self.0.code.as_str(), self.0.message)
    }

    fn __str__(&self) -> String {
        format!("{}: {}", self.0.code.as_str(), self.0.message)
    }
}
