//! The error of a failed run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

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

    /// Who reports the error: `model`, `runtime` or `provider`.
    #[getter]
    fn origin(&self) -> &'static str {
        self.0.origin.as_str()
    }

    /// Details for programs, with the origin.
    #[getter]
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, self.0.all_details().node())
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

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0.code.as_str(), &self.0.message).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("ErrorInfo(code={:?}, message={:?})", self.0.code.as_str(), self.0.message)
    }

    fn __str__(&self) -> String {
        format!("{}: {}", self.0.code.as_str(), self.0.message)
    }
}
