//! The errors of runs as Python exceptions.

use cog_spec::{Envelope, ErrorBody};
use pyo3::prelude::*;

use crate::result::{RunResult, exception_of};

/// Returns the exception of an error that was found before a run.
pub(crate) fn exception(py: Python<'_>, error: ErrorBody) -> PyErr {
    raised(py, Envelope::failure(error)).unwrap_or_else(|error| error)
}

/// Returns the exception of a failed run.
pub(crate) fn raised(py: Python<'_>, envelope: Envelope) -> PyResult<PyErr> {
    exception_of(&Bound::new(py, RunResult::new(envelope))?)
}
