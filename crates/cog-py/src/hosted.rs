//! A runtime with the settings of the operator.

use std::{path::PathBuf, sync::Arc};

use cog_host::{
    providers::{self, RecordMode},
    settings::{Environment, Flags, Settings, SettingsError},
};
use cog_media::Access;
use cog_module::{FindError, Module};
use cog_run::{RunInput, Runtime};
use cog_spec::{Code, ErrorBody};

/// A runtime with the settings of the operator.
pub(crate) struct Hosted {
    pub(crate) runtime: Runtime,
    /// Whether `execute_stream` streams.
    pub(crate) streams: bool,
    /// Which provider is called, and why.
    pub(crate) note: String,
    settings: Arc<Settings>,
    takes_media: bool,
    modules: Vec<PathBuf>,
}

/// The arguments of `CognitiveRuntime`.
pub(crate) struct HostOptions {
    pub(crate) flags: Flags,
    /// Directories of further modules, or directories that contain modules.
    pub(crate) modules: Vec<PathBuf>,
    pub(crate) streams: bool,
    pub(crate) takes_media: bool,
}

/// Why a runtime cannot be created.
pub(crate) enum HostError {
    /// The settings are invalid.
    Settings(SettingsError),
    /// An argument is invalid.
    Refused(Box<ErrorBody>),
}

impl Hosted {
    /// Reads the settings and selects the providers.
    pub(crate) fn new(options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { flags, modules, streams, takes_media } = options;
        let settings = Settings::read(flags, Environment::from_process()).map_err(HostError::Settings)?;
        Self::from_settings(Arc::new(settings), modules, streams, takes_media)
    }

    /// Creates the same runtime again, for a forked process: connections do not survive a fork.
    pub(crate) fn again(&self) -> Result<Self, HostError> {
        Self::from_settings(Arc::clone(&self.settings), self.modules.clone(), self.streams, self.takes_media)
    }

    fn from_settings(
        settings: Arc<Settings>,
        modules: Vec<PathBuf>,
        streams: bool,
        takes_media: bool,
    ) -> Result<Self, HostError> {
        let selected = providers::select(&settings, RecordMode::Off)?;
        let finder = settings.finder().with_paths(modules.iter().cloned())?;
        let builder = settings.runtime_builder(selected.providers).finder(finder);
        let runtime = settings.add_cache(builder, None).build();
        Ok(Self { runtime, streams, note: selected.note, settings, takes_media, modules })
    }

    /// Returns what a run may open: what the operator allows, and these files.
    ///
    /// # Errors
    /// E4011 if the input has media and the runtime takes none.
    pub(crate) fn access(
        &self,
        module: &Module,
        input: &RunInput,
        files: Vec<PathBuf>,
    ) -> Result<Access, ErrorBody> {
        if !self.takes_media
            && let RunInput::Json(value) = input
            && !module.contract.media_paths(value.node()).is_empty()
        {
            return Err(media_unsupported());
        }
        // The reader of documents, audio and video is the program itself, and that is the interpreter.
        Ok(Access { tool: None, ..self.settings.access(module, files) })
    }

    /// Whether every repair is a violation, unless an option says otherwise.
    pub(crate) fn is_strict(&self) -> bool {
        self.settings.strict.value
    }

    /// Returns a warning for each deprecated setting.
    pub(crate) fn deprecated(&self) -> impl Iterator<Item = String> {
        self.settings.deprecated.iter().map(|name| format!("{} is deprecated; use {}", name.old, name.new))
    }
}

impl From<ErrorBody> for HostError {
    fn from(error: ErrorBody) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<FindError> for HostError {
    fn from(error: FindError) -> Self {
        Self::from(not_found(&error))
    }
}

/// Returns the error of a module that is not found.
pub(crate) fn not_found(error: &FindError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

/// Returns the error of media in the input of a runtime without media (SPEC 8.2).
fn media_unsupported() -> ErrorBody {
    ErrorBody::new(
        Code::MultimodalNotSupported,
        "the input has media, and the runtime was created with multimodal=False",
    )
}
