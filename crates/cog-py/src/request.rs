//! A run that Python asks for, without its objects.

use std::{path::PathBuf, sync::Arc, time::Duration};

use cog_module::Module;
use cog_run::{ChunkStream, RunInput, RunOptions};
use cog_spec::{Envelope, ErrorBody, ResponseMode, Warning};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{
    exception::exception,
    from_python::{Converted, convert, text},
    hosted::Hosted,
    module::LoadedModule,
};

/// A run that Python asks for.
pub(crate) struct Request {
    module: Target,
    input: RunInput,
    /// The files that the input names as paths.
    files: Vec<PathBuf>,
    options: RunOptions,
    /// Whether the options say if repairs are violations.
    sets_strict: bool,
}

/// A module, loaded or not.
pub(crate) enum Target {
    /// Its name or path.
    Named(String),
    /// The module.
    Loaded(Arc<Module>),
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
        let (options, sets_strict) = read_options(options)?;
        Ok(Self { module: Target::read(module)?, input, files, options, sets_strict })
    }

    /// Loads the module, checks the input and starts the run.
    ///
    /// # Errors
    /// The envelope of a run that is refused before the provider is called.
    pub(crate) async fn start(self, hosted: &Hosted, mode: Mode) -> Result<ChunkStream, Box<Envelope>> {
        let refuse = |error| Box::new(Envelope::failure(error));
        let module = self.module.load_async(hosted).await.map_err(refuse)?;
        let access = hosted.access(&module, &self.input, self.files).map_err(refuse)?;
        let mut options = self.options.media(access);
        options.strict |= !self.sets_strict && hosted.is_strict();
        let streams = hosted.streams && module.manifest.response.mode != ResponseMode::Sync;
        match mode {
            Mode::Stream if streams => hosted.runtime.execute_stream(&module, self.input, options),
            Mode::Stream => {
                // One envelope with a warning (ruling R55).
                options.warnings.push(Warning::sync_instead_of_stream());
                hosted.runtime.execute_without_data(&module, self.input, options)
            }
            Mode::Answer => hosted.runtime.execute_without_data(&module, self.input, options),
        }
    }
}

impl Target {
    /// Reads a name, a path or a loaded module.
    pub(crate) fn read(module: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(loaded) = module.cast::<LoadedModule>() {
            return Ok(Self::Loaded(Arc::clone(&loaded.get().0)));
        }
        let path: PathBuf = module.extract().map_err(|_| {
            let kind = module.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("module: found {kind}; allowed: a name, a path or a Module"))
        })?;
        match path.to_str() {
            Some(name) => Ok(Self::Named(name.to_owned())),
            None => Err(PyValueError::new_err("module: the path is not valid UTF-8")),
        }
    }

    /// Returns the loaded module.
    pub(crate) fn load(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => hosted.runtime.load(name),
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }

    /// Returns the loaded module. Files are read on a thread that may block.
    async fn load_async(&self, hosted: &Hosted) -> Result<Arc<Module>, ErrorBody> {
        match self {
            Self::Named(name) => hosted.runtime.load_async(name).await,
            Self::Loaded(module) => Ok(Arc::clone(module)),
        }
    }
}

/// Reads the keyword arguments of `execute`: those of `_options` in a request, with `timeout` in seconds. An argument that is
/// None is not set.
fn read_options(given: &Bound<'_, PyDict>) -> PyResult<(RunOptions, bool)> {
    let (py, options) = (given.py(), PyDict::new(given.py()));
    let mut timeout = None;
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        match name.cast::<PyString>()?.to_str()? {
            "timeout" => timeout = Some(seconds("timeout", value.extract()?)?),
            _ => options.set_item(name, value)?,
        }
    }
    let sets_strict = options.contains("strict")?;
    let value = convert(options.as_any(), "options")?.value;
    let mut read = RunOptions::read(value.node(), &[]).map_err(|error| exception(py, error))?;
    read.timeout = timeout.or(read.timeout);
    Ok((read, sets_strict))
}

/// Converts a time in seconds.
pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| PyValueError::new_err(format!("{name}: found {seconds}; allowed: seconds above 0")))
}
