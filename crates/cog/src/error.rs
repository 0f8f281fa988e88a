//! Why a command could not do its work, told in one style on stderr.

use std::{io, path::PathBuf};

use cog_module::{FindError, LoadError, files::FileError, migrate::MigrateError, scaffold::ScaffoldError};
use cog_spec::{Code, ErrorBody};
use thiserror::Error;

use crate::{
    exit::Exit,
    output::{Console, ErrorReport},
    settings::SettingsError,
};

/// Why a command could not do its work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// No module was found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A module does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A module cannot be migrated.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// A module cannot be made.
    #[error(transparent)]
    Scaffold(#[from] ScaffoldError),
    /// What would be the error of an envelope, in a command that prints none.
    #[error("{}", .0.message)]
    Body(Box<ErrorBody>),
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    File {
        /// What was to be done with it: `the input cannot be read`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: FileError,
    },
    /// The settings cannot be understood.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// What was typed does not make sense together.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to type instead.
        suggestion: Option<String>,
    },
    /// stdout cannot be written to.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// What was typed does not make sense together.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), suggestion: None }
    }

    /// Tells the fault on stderr, and says how the program ends.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        if self.is_broken_pipe() {
            return Exit::Ok;
        }
        if let Some(error) = self.load_error() {
            console.diagnose(&error.diagnostics);
        }
        let (message, place, help) = (self.to_string(), self.place(), self.suggestion());
        console.complain(&ErrorReport {
            code: self.code(),
            message: &message,
            place: place.as_deref(),
            help: help.as_deref(),
        });
        self.exit()
    }

    /// The code, where the specification has one.
    fn code(&self) -> Option<&str> {
        if let Some(error) = self.load_error() {
            return Some(error.code().as_str());
        }
        match self {
            CliError::Find(error) => Some(error.code().as_str()),
            CliError::Body(error) => Some(error.code.as_str()),
            CliError::File { .. } => Some(Code::InvalidReference.as_str()),
            CliError::Scaffold(ScaffoldError::Name { .. }) => Some(Code::UnsupportedValue.as_str()),
            CliError::Migrate(_) | CliError::Scaffold(_) => Some(Code::PermissionDenied.as_str()),
            _ => None,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            _ if self.load_error().is_some() => Exit::Invalid,
            CliError::Body(error) if error.code == Code::ModuleInvalid.into() => Exit::Invalid,
            CliError::Settings(_)
            | CliError::Usage { .. }
            | CliError::Scaffold(ScaffoldError::Name { .. }) => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    /// The findings, where a module does not load.
    fn load_error(&self) -> Option<&LoadError> {
        match self {
            CliError::Load(error)
            | CliError::Migrate(MigrateError::Load(error) | MigrateError::Result(error))
            | CliError::Scaffold(ScaffoldError::Source(error)) => Some(error),
            _ => None,
        }
    }

    /// The fault as the error of an envelope.
    pub(crate) fn to_body(&self) -> ErrorBody {
        let code = self.code().and_then(|code| code.parse().ok()).unwrap_or(Code::InternalError);
        let message = self.place().map_or_else(|| self.to_string(), |place| format!("{place}: {self}"));
        let body = ErrorBody::new(code, message);
        match self.suggestion() {
            Some(suggestion) => body.suggest(suggestion),
            None => body,
        }
    }

    fn place(&self) -> Option<String> {
        match self {
            CliError::File { path, .. } => Some(path.display().to_string()),
            CliError::Settings(error) => error.location(),
            _ => None,
        }
    }

    fn suggestion(&self) -> Option<String> {
        match self {
            CliError::Find(error) => Some(error.suggestion()),
            CliError::Scaffold(error) => error.suggestion(),
            CliError::Migrate(error) => error.suggestion(),
            CliError::Settings(error) => Some(error.suggestion()),
            CliError::Body(error) => error.suggestion.clone(),
            CliError::File { source, .. } => Some(source.suggestion().to_owned()),
            CliError::Usage { suggestion, .. } => suggestion.clone(),
            _ => None,
        }
    }

    /// Whoever read stdout has heard enough: `cog list | head -1`.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, CliError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<ErrorBody> for CliError {
    fn from(error: ErrorBody) -> Self {
        CliError::Body(Box::new(error))
    }
}
