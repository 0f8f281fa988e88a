//! The errors of runs as Python exceptions.

use cog_spec::{Envelope, ErrorBody};
use pyo3::prelude::*;

use crate::result::{RunResult, exception_of};

/// Returns the exception of an error that was found before a run.
pub(crate) fn exception(py: Python<'_>, error: ErrorBody) -> PyErr {
    let result = Bound::new(py, RunResult::new(Envelope::failure(error)));
    result.and_then(|result| exception_of(&result)).unwrap_or_else(|error| error)
}
