//! A run that Python asks for, without its objects.

use std::{path::PathBuf, sync::Arc};

use cog_module::Module;
use cog_run::{
    ChunkStream, ModuleRef, Rendered, RunContext, RunInput, RunOptions,
    tools::{Approval, Decision},
};
use cog_spec::{Envelope, ErrorBody, ResponseMode, Warning};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    caller::{Caller, warn},
    from_python::{Converted, convert, seconds, text},
    hosted::Hosted,
    module::LoadedModule,
    result::exception,
    tool::NativeTool,
};

/// A run that Python asks for.
pub(crate) struct Request {
    module: Target,
    input: RunInput,
    /// The files that the input names as paths.
    files: Vec<PathBuf>,
    options: RunOptions,
    /// For the Python functions that the run calls; none if it calls none.
    pub(crate) caller: Option<Arc<Caller>>,
    /// Whether the options say if repairs are violations.
    sets_strict: bool,
}

/// A module, loaded or not.
pub(crate) enum Target {
    /// Its name or path, which the caller chose.
    Named(String),
    /// Its name or path, which is stored with a halted run.
    Found(String),
    /// The module.
    Loaded(Arc<Module>),
}

/// A run that waits for a confirmation, with the decision. It is passed instead of a module.
#[pyclass(name = "Halted", module = "cognitive._cognitive", frozen)]
pub(crate) struct HaltedCall {
    approval: Approval,
    /// The module, if the runtime does not find it by its name.
    module: Option<Py<PyAny>>,
}

#[pymethods]
impl HaltedCall {
    #[new]
    #[pyo3(signature = (id, *, confirm, deny, module))]
    fn new(id: String, confirm: Option<String>, deny: bool, module: Option<Py<PyAny>>) -> PyResult<Self> {
        let decision = match (confirm, deny) {
            (Some(text), false) => Decision::Approve(text),
            (None, true) => Decision::Deny,
            _ => return Err(PyValueError::new_err("continue_run: give confirm=\"YES\" or deny=True")),
        };
        Ok(Self { approval: Approval { id, decision }, module })
    }
}

/// The chunks that a run returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Those without data, and the last one.
    Answer,
    /// All.
    Stream,
}

impl Request {
    /// Reads the arguments of `execute`. A text as input becomes the text field of the module's input.
    ///
    /// # Errors
    /// `TypeError` or `ValueError` for an object that cannot be converted, `CognitiveError` for an invalid option.
    pub(crate) fn read(
        hosted: &Hosted,
        module: &Bound<'_, PyAny>,
        input: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (input, files) = match input.cast::<PyString>() {
            Ok(given) => (RunInput::text(text(given, "input")?), Vec::new()),
            Err(_) => {
                let Converted { value, files } = convert(input, "input")?;
                (RunInput::Json(value), files)
            }
        };
        let (mut options, tools, sets_strict) = read_options(options)?;
        let calls_python = hosted.calls_python || !tools.is_empty();
        let caller = calls_python.then(|| Caller::new(module.py(), hosted.redactor())).transpose()?;
        for tool in &tools {
            options.tools.push(Arc::clone(&tool.get().0) as _);
        }
        let module = match module.cast::<HaltedCall>() {
            Ok(halted) => {
                let HaltedCall { approval, module: given } = halted.get();
                options.approval = Some(approval.clone());
                let found = hosted.runtime.pending_approval(&approval.id, None);
                let found = found.map_err(|error| exception(module.py(), error))?;
                match given {
                    Some(given) => Target::read(given.bind(module.py()))?,
                    None if found.is_trusted_for_run => Target::Named(found.module),
                    None => Target::Found(found.module),
                }
            }
            Err(_) => Target::read(module)?,
        };
        Ok(Self { module, input, files, options, caller, sets_strict })
    }

    /// Loads the module, checks the input and starts the run.
    ///
    /// # Errors
    /// The envelope of a run that is refused before the provider is called.
    pub(crate) async fn start(self, hosted: &Hosted, mode: Mode) -> Result<ChunkStream, Box<Envelope>> {
        let prepared = self.prepare(hosted).await;
        let (module, input, mut options) = prepared.map_err(|error| Box::new(Envelope::failure(error)))?;
        if let Some(log) = &hosted.log {
            options.events.push(log.listener(&options));
        }
        let streams = hosted.streams() && module.manifest.response.mode != ResponseMode::Sync;
        let mut context = RunContext::default();
        context.is_folded = mode == Mode::Answer || !streams;
        if mode == Mode::Stream && !streams {
            // One envelope with a warning (ruling R55).
            context.warnings.push(Warning::sync_instead_of_stream());
        }
        hosted.runtime.prepare(&module, input, options, context)
    }

    /// Returns what the run would send.
    ///
    /// # Errors
    /// The run would be refused before the provider is called.
    pub(crate) async fn render(self, hosted: &Hosted) -> Result<Rendered, ErrorBody> {
        let (module, input, options) = self.prepare(hosted).await?;
        hosted.runtime.render(&module, input, options).await
    }

    /// Loads the module, and completes the options with what the settings allow.
    async fn prepare(self, hosted: &Hosted) -> Result<(Arc<Module>, RunInput, RunOptions), ErrorBody> {
        let module = self.module.load_async(hosted).await?;
        let access = hosted.access(&module, &self.input, self.files)?;
        let options = RunOptions { media: Some(access), ..self.options };
        let mut options = hosted.add_server_tools(&module, options).await?;
        options.strict |= !self.sets_strict && hosted.is_strict();
        Ok((module, self.input, options))
    }
}

impl Target {
    /// Reads a name, a path or a loaded module.
    pub(crate) fn read(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(loaded) = module.cast::<LoadedModule>() {
            return Ok(Self::Loaded(Arc::clone(&loaded.get().0)));
        }
        let Ok(path) = module.extract::<PathBuf>() else {
            let made = module.getattr("__cognitive_module__").ok();
            let made = made.and_then(|made| made.cast_into::<LoadedModule>().ok());
            return made.map(|made| Self::Loaded(Arc::clone(&made.get().0))).ok_or_else(|| {
                let kind = module.get_type().name().map(|name| name.to_string()).unwrap_or_default();
                PyTypeError::new_err(format!("module: found {kind}; allowed: a name, a path or a Module"))
            });
        };
        match path.to_str() {
            Some(name) => Ok(Self::Named(name.to_owned())),
            None => Err(PyValueError::new_err("module: the path is not valid UTF-8")),
        }
    }

    /// Returns the loaded module.
    pub(crate) fn load(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => noted(name, hosted, hosted.runtime.load(name)),
            Self::Found(path) => hosted.runtime.load(ModuleRef::Found(path)),
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }

    /// Returns the loaded module. Files are read on a thread that may block.
    async fn load_async(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => noted(name, hosted, hosted.runtime.load_async(name).await),
            Self::Found(path) => hosted.runtime.load_async(ModuleRef::Found(path)).await,
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }
}

/// Logs that a name means a module of the working directory, not the one that it means elsewhere.
fn noted(
    name: &str,
    hosted: &Hosted,
    loaded: Result<Arc<Module>, ErrorBody>,
) -> Result<Arc<Module>, ErrorBody> {
    if let Ok(module) = &loaded
        && let Some(shadowing) = hosted.runtime.finder().shadowing(name, &module.origin)
    {
        warn(shadowing.to_string());
    }
    loaded
}

/// Reads the keyword arguments of `execute`: the options of `_options` in a request, with `timeout` in seconds. An argument that is
/// None is not set.
fn read_options<'py>(
    given: &Bound<'py, PyDict>,
) -> PyResult<(RunOptions, Vec<Bound<'py, NativeTool>>, bool)> {
    let py = given.py();
    let options = PyDict::new(given.py());
    let mut timeout = None;
    let mut tools = Vec::new();
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        match name.cast::<PyString>()?.to_str()? {
            "timeout" => timeout = Some(seconds("timeout", value.extract()?)?),
            "tools" => tools = value.extract()?,
            _ => options.set_item(name, value)?,
        }
    }
    let sets_strict = options.contains("strict")?;
    let value = convert(options.as_any(), "options")?.value;
    let mut read = RunOptions::read(value.node(), &[]).map_err(|error| exception(py, error))?;
    read.timeout = timeout.or(read.timeout);
    Ok((read, tools, sets_strict))
}
