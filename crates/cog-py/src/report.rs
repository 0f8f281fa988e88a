//! What is wrong with the files of a module.

use cog_module::Report;
use pyo3::prelude::*;

use crate::to_python::json_to_python;

/// What `validate` found in the files of a module.
#[pyclass(name = "Report", module = "cognitive", frozen)]
pub(crate) struct ValidationReport(pub(crate) Report);

#[pymethods]
impl ValidationReport {
    /// Whether there is no error. Warnings may remain.
    #[getter]
    fn valid(&self) -> bool {
        self.0.is_valid()
    }

    /// The errors and warnings, each with rule, file, line and suggestion.
    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &cog_json::Array(&self.0.diagnostics))
    }

    /// The report as `cog validate --format json` prints it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.0)
    }

    /// The diagnostics with the lines that they are about.
    fn __str__(&self) -> String {
        let shown: Vec<_> = self.0.diagnostics.iter().map(|found| found.render(false)).collect();
        let verdict = if self.0.is_valid() { "valid" } else { "invalid" };
        shown.iter().map(|text| format!("{text}\n\n")).collect::<String>() + verdict
    }

    fn __repr__(&self) -> String {
        format!("Report(valid={}, diagnostics={})", python_bool(self.0.is_valid()), self.0.diagnostics.len())
    }
}

const fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
