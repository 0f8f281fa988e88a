//! The class that loads and runs modules.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use cog_host::settings::Flags;
use cog_module::Level;
use cog_spec::ErrorBody;
use pyo3::{
    exceptions::{PyDeprecationWarning, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::{
    call::{Call, answer},
    chunks::Chunks,
    events::wait,
    exception::exception,
    hosted::{HostError, HostOptions, Hosted, not_found},
    module::LoadedModule,
    report::ValidationReport,
    request::{Request, Target, seconds},
    result::RunResult,
};

/// Loads and runs modules with the settings of the operator.
#[pyclass(name = "Runtime", module = "cognitive._cognitive", frozen)]
pub(crate) struct NativeRuntime(Mutex<(u32, Arc<Hosted>)>);

#[pymethods]
impl NativeRuntime {
    #[new]
    #[pyo3(signature = (*, provider, model, timeout, strict, modules, streaming, multimodal))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of a Python class")]
    fn new(
        py: Python<'_>,
        provider: Option<String>,
        model: Option<String>,
        timeout: Option<f64>,
        strict: Option<bool>,
        modules: Vec<PathBuf>,
        streaming: bool,
        multimodal: bool,
    ) -> PyResult<Self> {
        let timeout = timeout.map(|time| seconds("timeout", time)).transpose()?;
        let flags = Flags { provider, model, timeout, strict };
        let options = HostOptions { flags, modules, streams: streaming, takes_media: multimodal };
        let hosted = py.detach(|| Hosted::new(options)).map_err(|error| invalid(py, error))?;
        let category = py.get_type::<PyDeprecationWarning>();
        for warning in hosted.deprecated() {
            let warning = std::ffi::CString::new(warning)?;
            PyErr::warn(py, &category, &warning, 2)?;
        }
        Ok(Self(Mutex::new((std::process::id(), Arc::new(hosted)))))
    }

    /// Which provider is called, and why.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.hosted(py)?.note.clone())
    }

    /// The names of all modules, sorted.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let hosted = self.hosted(py)?;
        let mut names: Vec<String> =
            py.detach(|| hosted.runtime.finder().origins().into_iter().map(|(name, _)| name).collect());
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Loads a module by name or path.
    fn load(&self, py: Python<'_>, module: &Bound<'_, PyAny>) -> PyResult<LoadedModule> {
        let (hosted, target) = (self.hosted(py)?, Target::read(module)?);
        let loaded = py.detach(|| target.load(&hosted));
        loaded.map(LoadedModule).map_err(|error| exception(py, error))
    }

    /// Checks the files of a module.
    fn validate(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        level: Option<&str>,
    ) -> PyResult<ValidationReport> {
        let (hosted, target, level) = (self.hosted(py)?, Target::read(module)?, level_of(level)?);
        let report: Result<_, ErrorBody> = py.detach(|| {
            let finder = hosted.runtime.finder();
            let origin = match &target {
                Target::Loaded(module) => module.origin.clone(),
                Target::Named(name) => finder.find(name).map_err(|error| not_found(&error))?,
            };
            Ok(cog_host::validate([&origin], level, finder).pop())
        });
        let report = report.map_err(|error| exception(py, error))?;
        report.map(ValidationReport).ok_or_else(|| PyValueError::new_err("no module was validated"))
    }

    /// Runs a module, and waits for its result.
    fn execute(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<RunResult> {
        let (hosted, request) = (self.hosted(py)?, Request::read(module, input, options)?);
        wait(py, async { answer(&hosted, request).await }).map(RunResult::new)
    }

    /// Starts a run. `notify` is called once with its result, on another thread.
    fn start(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        notify: Py<PyAny>,
    ) -> PyResult<Call> {
        Call::start(py, self.hosted(py)?, Request::read(module, input, options)?, notify)
    }

    /// Returns a run that starts when its chunks are read.
    fn stream(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Chunks> {
        Ok(Chunks::new(self.hosted(py)?, Request::read(module, input, options)?))
    }
}

impl NativeRuntime {
    /// Returns the runtime of this process. After a fork, a new one is created with the same settings.
    fn hosted(&self, py: Python<'_>) -> PyResult<Arc<Hosted>> {
        let process = std::process::id();
        let (owner, hosted) = {
            let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            (current.0, Arc::clone(&current.1))
        };
        if owner == process {
            return Ok(hosted);
        }
        let renewed = py.detach(|| hosted.again()).map_err(|error| invalid(py, error))?;
        // The connections of the parent are left alone: closing them here would end them there.
        std::mem::forget(hosted);
        let renewed = Arc::new(renewed);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (process, Arc::clone(&renewed));
        Ok(renewed)
    }
}

fn level_of(level: Option<&str>) -> PyResult<Level> {
    match level {
        None => Ok(Level::Any),
        Some("v2.2") => Ok(Level::V22),
        Some("v2.5") => Ok(Level::V25),
        Some(other) => {
            Err(PyValueError::new_err(format!("level: found {other:?}; allowed: \"v2.2\", \"v2.5\", None")))
        }
    }
}

fn invalid(py: Python<'_>, error: HostError) -> PyErr {
    match error {
        HostError::Refused(error) => exception(py, *error),
        HostError::Settings(error) => {
            let place = error.location().map(|place| format!("{place}: ")).unwrap_or_default();
            PyValueError::new_err(format!("{place}{error}. {}", error.suggestion()))
        }
    }
}
