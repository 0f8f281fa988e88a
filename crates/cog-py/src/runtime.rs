//! The class that loads and runs modules.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use cog_host::{HostError, settings::Flags};
use cog_module::Level;
use cog_spec::ErrorBody;
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyUserWarning, PyValueError},
    prelude::*,
    types::PyDict,
};

use crate::{
    call::{Call, answer},
    caller::within,
    chunks::Chunks,
    events::wait,
    from_python::seconds,
    hosted::{Cassette, Hosted, Parts, not_found},
    module::LoadedModule,
    provider::NativeProvider,
    reader::Reader,
    report::{ValidationReport, Verdict},
    request::{Request, Target},
    result::{RunResult, exception},
    to_python::json_to_python,
    tool::NativeTool,
};

/// Loads and runs modules with the settings of the operator.
#[pyclass(name = "Runtime", module = "cognitive._cognitive", frozen)]
pub(crate) struct NativeRuntime {
    /// The runtime, with the process that it belongs to.
    hosted: Mutex<(u32, Arc<Hosted>)>,
    /// The owners of its functions, for the garbage collector.
    tools: Vec<Py<NativeTool>>,
    providers: Vec<Py<NativeProvider>>,
}

#[pymethods]
impl NativeRuntime {
    #[new]
    #[pyo3(signature = (*, provider, model, timeout, strict, modules, tools, providers, streaming, multimodal, cassette = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of a Python class")]
    fn new(
        py: Python<'_>,
        provider: Option<String>,
        model: Option<String>,
        timeout: Option<f64>,
        strict: Option<bool>,
        modules: Vec<PathBuf>,
        tools: Vec<Bound<'_, NativeTool>>,
        providers: Vec<Bound<'_, NativeProvider>>,
        streaming: bool,
        multimodal: bool,
        cassette: Option<(PathBuf, bool)>,
    ) -> PyResult<Self> {
        let timeout = timeout.map(|time| seconds("timeout", time)).transpose()?;
        let flags = Flags { provider, model, timeout, strict, trust: None };
        let parts = Parts {
            modules,
            tools: tools.iter().map(|tool| Arc::clone(&tool.get().0)).collect(),
            providers: providers.iter().map(|provider| Arc::clone(&provider.get().0)).collect(),
            streams: streaming,
            takes_media: multimodal,
            reader: Reader::find(py),
            cassette: cassette.map(|(directory, records)| Cassette { directory, records }),
        };
        let hosted = py.detach(|| Hosted::new(flags, parts)).map_err(|error| invalid(py, error))?;
        let category = py.get_type::<PyUserWarning>();
        for note in hosted.notes.iter().cloned().chain(hosted.offline_warning()) {
            PyErr::warn(py, &category, &std::ffi::CString::new(note)?, 2)?;
        }
        Ok(Self {
            hosted: Mutex::new((std::process::id(), Arc::new(hosted))),
            tools: tools.into_iter().map(Bound::unbind).collect(),
            providers: providers.into_iter().map(Bound::unbind).collect(),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.tools.iter().try_for_each(|tool| visit.call(tool))?;
        self.providers.iter().try_for_each(|provider| visit.call(provider))
    }

    /// Which provider is called, and why.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.hosted(py)?.note.clone())
    }

    /// Why its cassette lacks a reply; None if it has all.
    #[getter]
    fn recording_error(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.hosted(py)?.recording.error().map(ToString::to_string))
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
        let hosted = self.hosted(py)?;
        let target = Target::read(module)?;
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
        let hosted = self.hosted(py)?;
        let target = Target::read(module)?;
        let level = level_of(level)?;
        let report: Result<_, ErrorBody> = py.detach(|| {
            let finder = hosted.runtime.finder();
            let origin = match &target {
                Target::Loaded(module) => module.origin.clone(),
                Target::Named(name) | Target::Found(name) => {
                    finder.find(name).map_err(|error| not_found(&error))?
                }
            };
            Ok(cog_host::validate([&origin], level, finder).pop())
        });
        let report = report.map_err(|error| exception(py, error))?;
        report.map(ValidationReport).ok_or_else(|| PyValueError::new_err("no module was validated"))
    }

    /// Returns what a run would send, without sending it.
    fn render<'py>(
        &self,
        py: Python<'py>,
        module: &Bound<'py, PyAny>,
        input: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hosted = self.hosted(py)?;
        let request = Request::read(&hosted, module, input, options)?;
        let rendered = wait(py, request.render(&hosted))?;
        json_to_python(py, &rendered.map_err(|error| exception(py, error))?)
    }

    /// Checks a document, also against a module if there is one.
    fn verify(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        kind: Option<&str>,
        module: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Verdict> {
        let hosted = self.hosted(py)?;
        let target = module.map(Target::read).transpose()?;
        let loaded = target.map(|target| py.detach(|| target.load(&hosted))).transpose();
        Verdict::new(document, kind, loaded.map_err(|error| exception(py, error))?.as_deref())
    }

    /// Runs a module, and waits for its result.
    fn execute(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<RunResult> {
        let hosted = self.hosted(py)?;
        let request = Request::read(&hosted, module, input, options)?;
        let caller = request.caller.clone();
        let run = Arc::clone(&request.run);
        let envelope = wait(py, within(caller.as_ref(), answer(&hosted, request)))??;
        Ok(RunResult::from_run(py, envelope, caller.as_deref(), run))
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
        let hosted = self.hosted(py)?;
        let request = Request::read(&hosted, module, input, options)?;
        Call::start(py, hosted, request, notify)
    }

    /// Returns a run that starts when its chunks are read.
    fn stream(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Chunks> {
        let hosted = self.hosted(py)?;
        let request = Request::read(&hosted, module, input, options)?;
        Ok(Chunks::new(hosted, request))
    }
}

impl NativeRuntime {
    /// Returns the runtime of this process. After a fork, a new one is created with the same settings.
    fn hosted(&self, py: Python<'_>) -> PyResult<Arc<Hosted>> {
        let process = std::process::id();
        let (owner, hosted) = {
            let current = self.hosted.lock().unwrap_or_else(PoisonError::into_inner);
            (current.0, Arc::clone(&current.1))
        };
        if owner == process {
            return Ok(hosted);
        }
        let renewed = py.detach(|| hosted.again()).map_err(|error| invalid(py, error))?;
        // The connections of the parent are left alone: closing them here would end them there.
        std::mem::forget(hosted);
        let renewed = Arc::new(renewed);
        *self.hosted.lock().unwrap_or_else(PoisonError::into_inner) = (process, Arc::clone(&renewed));
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

/// Names arguments of Python where an error of the settings names flags of the command line.
fn with_arguments(mut error: ErrorBody) -> ErrorBody {
    for name in ["provider", "model", "timeout", "strict"] {
        let flag = format!("--{name}");
        let argument = format!("`{name}`");
        error.message = error.message.replace(&flag, &argument);
        error.suggestion = error.suggestion.map(|text| text.replace(&flag, &argument));
    }
    error
}

fn invalid(py: Python<'_>, error: HostError) -> PyErr {
    match error {
        HostError::Refused(error) => exception(py, with_arguments(error)),
        HostError::Settings(error) => {
            let place = error.location().map(|place| format!("{place}: ")).unwrap_or_default();
            PyValueError::new_err(format!("{place}{error}. {}", error.suggestion()))
        }
    }
}
