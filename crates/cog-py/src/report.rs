//! What Python asks about modules without running them: what `validate` found in their files and `verify` in a document, their types
//! in other languages, and the conformance level of a runtime.

use std::ops::ControlFlow;

use cog_answer::verify::{self, Kind, ModuleRules};
use cog_conformance::{Levels, Target};
use cog_contract::types::{self, Contents};
use cog_json::ToJson as _;
use cog_module::{Module, Report};
use cog_spec::ErrorBody;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyString},
};

use crate::{
    attach::attached,
    from_python::convert,
    module::LoadedModule,
    result::{RunResult, exception},
    to_python::{json_to_python, to_python},
};

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

/// What `verify` found in a document.
#[pyclass(name = "Verdict", module = "cognitive", frozen)]
pub(crate) struct Verdict(verify::Verdict);

impl Verdict {
    /// Checks a document: a result, JSON as text or bytes, or an object that becomes JSON.
    pub(crate) fn new(
        document: &Bound<'_, PyAny>,
        kind: Option<&str>,
        module: Option<&Module>,
    ) -> PyResult<Self> {
        let kind = kind.map(kind_of).transpose()?;
        let rules = module.map(|module| ModuleRules {
            checks: Some(&module.checks),
            ..ModuleRules::new(&module.manifest, &module.contract)
        });
        let py = document.py();
        Ok(Self(match text_of(document)? {
            Ok(text) => py.detach(|| verify::verify(&text, kind, rules)),
            Err(reason) => verify::Verdict::not_text(kind, &reason),
        }))
    }
}

#[pymethods]
impl Verdict {
    /// Whether there are no violations.
    #[getter]
    fn valid(&self) -> bool {
        self.0.valid
    }

    /// The kind of the document; None if it was not recognized.
    #[getter]
    fn kind(&self) -> Option<&str> {
        self.0.kind.map(Kind::as_str)
    }

    /// The violations, each with path, rule and message.
    #[getter]
    fn violations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.0.violations)
    }

    /// What is valid, but probably not what its author wants.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.0.warnings)
    }

    /// The verdict as `cog verify --format json` prints it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.0)
    }

    fn __repr__(&self) -> String {
        format!("Verdict(valid={}, violations={})", python_bool(self.0.valid), self.0.violations.len())
    }

    /// `if verdict:` could mean several things, so it is an error.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("a verdict is neither true nor false; use verdict.valid"))
    }
}

/// Returns a document as JSON, or why its bytes are not text.
fn text_of(document: &Bound<'_, PyAny>) -> PyResult<Result<String, String>> {
    if let Ok(text) = document.cast::<PyString>() {
        return Ok(Ok(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = document.cast::<PyBytes>() {
        return Ok(std::str::from_utf8(bytes.as_bytes())
            .map(str::to_owned)
            .map_err(|error| error.to_string()));
    }
    if let Ok(result) = document.cast::<RunResult>() {
        return Ok(Ok(result.get().json()));
    }
    if document.hasattr("__fspath__")? {
        return Err(PyTypeError::new_err("verify: found a path; pass its content: path.read_bytes()"));
    }
    Ok(Ok(convert(document, "document")?.value.to_json()))
}

fn kind_of(name: &str) -> PyResult<Kind> {
    name.parse().map_err(|_| {
        PyValueError::new_err(format!("kind: found {name:?}; allowed: {}, None", Kind::NAMES.join(", ")))
    })
}

// What does not run a module: the types of modules in other languages, and the level of conformance of a runtime.

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
