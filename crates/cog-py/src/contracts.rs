//! What does not run a module: the types of modules in other languages, and the level of conformance of a runtime.

use std::ops::ControlFlow;

use cog_conformance::{Levels, Target};
use cog_contract::types::{self, Contents};
use cog_module::Module;
use cog_spec::ErrorBody;
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{attach::attached, module::LoadedModule, result::exception, to_python::to_python};

/// Returns the types of modules as a file in a language, as `cog types` prints it.
#[pyfunction]
#[pyo3(signature = (modules, language = "python", *, functions = true))]
pub(crate) fn module_types(
    modules: Vec<PyRef<'_, LoadedModule>>,
    language: &str,
    functions: bool,
) -> PyResult<String> {
    let all: Vec<&Module> = modules.iter().map(|module| &*module.0).collect();
    let contents = if functions { Contents::TypesAndFunctions } else { Contents::Types };
    match language {
        "python" => Ok(types::python(&all, contents)),
        "rust" => Ok(types::rust(&all, contents)),
        "typescript" => Ok(types::typescript(&all, contents)),
        other => Err(PyValueError::new_err(format!(
            "module_types: unknown language {other:?}; use python, rust or typescript"
        ))),
    }
}

/// Checks the runtime at a URL, and returns the report of `cog conformance --format json`.
///
/// Raises `CognitiveError` if the runtime does not respond or the model of the cases cannot listen.
#[pyfunction]
#[pyo3(signature = (url, *, mock_port = 9797, level = None))]
pub(crate) fn check_conformance<'py>(
    py: Python<'py>,
    url: String,
    mock_port: u16,
    level: Option<u8>,
) -> PyResult<Bound<'py, PyAny>> {
    let target = Target::Url { url, mock_port };
    // Ctrl-C ends the check after the case that runs.
    let mut interrupt = Ok(());
    let checked = py.detach(|| {
        Levels::new()?.check(&target, level, |_, _| {
            interrupt = attached(|py| py.check_signals());
            if interrupt.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    interrupt?;
    let report = checked.map_err(|error| exception(py, ErrorBody::from(error)))?;
    let report = cog_json::to_value(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_python(py, report.node())
}
