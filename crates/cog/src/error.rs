//! Errors of commands, how they are reported on stderr, and exit codes.

use std::{io, path::PathBuf, process::ExitCode};

use cog_batch::{JournalError, Stop, VendorBatchError, WriteError};
use cog_host::settings::SettingsError;
use cog_module::{
    FindError, LoadError, export::ExportError, files::FileError, import::ImportError, migrate::MigrateError,
    scaffold::ScaffoldError,
};
use cog_spec::{Code, ErrorBody};
use thiserror::Error;

use crate::output::{Console, ErrorReport};

/// Why a command failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// The module was not found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The module does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The module cannot be migrated.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The module cannot be created.
    #[error(transparent)]
    Scaffold(#[from] ScaffoldError),
    /// The module cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The skill cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// An error with a code of the specification.
    #[error("{}", .0.message)]
    Body(Box<ErrorBody>),
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    File {
        /// The operation that failed: `cannot write the file`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: FileError,
    },
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The arguments contradict each other.
    #[error("{message}")]
    Usage {
        /// The message.
        message: String,
        /// What to do about it.
        suggestion: Option<String>,
    },
    /// The batch was stopped.
    #[error(transparent)]
    Batch(#[from] Stop),
    /// The journal of a batch cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The jobs of a batch cannot go on.
    #[error(transparent)]
    Via(VendorBatchError),
    /// The results of a batch cannot be written.
    #[error(transparent)]
    Results(#[from] WriteError),
    /// Writing to stdout failed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The arguments contradict each other.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), suggestion: None }
    }

    /// Prints the error to stderr, and returns the exit code.
    pub(crate) fn report(&self, console: &Console) -> Exit {
        if self.is_broken_pipe() {
            return Exit::Ok;
        }
        if let Some(error) = self.load_error() {
            console.diagnose(&error.diagnostics);
        }
        let message = self.to_string();
        let location = self.location();
        let help = self.suggestion();
        console.error(&ErrorReport {
            code: self.code(),
            message: &message,
            location: location.as_deref(),
            help: help.as_deref(),
        });
        self.exit()
    }

    /// The code, if the specification has one.
    pub(crate) fn code(&self) -> Option<&str> {
        if let Some(error) = self.load_error() {
            return Some(error.code().as_str());
        }
        match self {
            CliError::Find(error) => Some(error.code().as_str()),
            CliError::Export(error) => Some(error.code().as_str()),
            CliError::Import(error) => Some(error.code().as_str()),
            CliError::Body(error) => Some(error.code.as_str()),
            CliError::File { .. } => Some(Code::InvalidReference.as_str()),
            CliError::Scaffold(ScaffoldError::Name { .. }) => Some(Code::UnsupportedValue.as_str()),
            CliError::Migrate(MigrateError::FlowStyle { .. }) => Some(Code::ModuleInvalid.as_str()),
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
            | CliError::Batch(Stop::Changed { .. })
            | CliError::Journal(JournalError::Changed { .. } | JournalError::InUse { .. })
            | CliError::Via(
                VendorBatchError::NoInterface { .. }
                | VendorBatchError::OtherVendor { .. }
                | VendorBatchError::Changed { .. }
                | VendorBatchError::NoJobs { .. }
                | VendorBatchError::Incomplete { .. },
            )
            | CliError::Scaffold(ScaffoldError::Name { .. }) => Exit::Usage,
            CliError::Batch(_) | CliError::Via(VendorBatchError::QueueFull { .. }) => Exit::Stopped,
            _ => Exit::Failed,
        }
    }

    /// Returns the findings of a module that does not load.
    fn load_error(&self) -> Option<&LoadError> {
        match self {
            CliError::Load(error)
            | CliError::Migrate(MigrateError::Load(error) | MigrateError::Result(error))
            | CliError::Import(ImportError::Load(error))
            | CliError::Scaffold(ScaffoldError::Source(error)) => Some(error),
            _ => None,
        }
    }

    /// Converts the error to the error of an envelope.
    pub(crate) fn to_body(&self) -> ErrorBody {
        let code = self.code().and_then(|code| code.parse().ok()).unwrap_or(Code::InternalError);
        let message =
            self.location().map_or_else(|| self.to_string(), |location| format!("{location}: {self}"));
        let body = ErrorBody::new(code, message);
        match self.suggestion() {
            Some(suggestion) => body.suggest(suggestion),
            None => body,
        }
    }

    fn location(&self) -> Option<String> {
        match self {
            CliError::File { path, .. } => Some(path.display().to_string()),
            CliError::Settings(error) => error.location(),
            _ => None,
        }
    }

    pub(crate) fn suggestion(&self) -> Option<String> {
        match self {
            CliError::Find(error) => Some(error.suggestion()),
            CliError::Scaffold(error) => error.suggestion(),
            CliError::Migrate(error) => error.suggestion(),
            CliError::Export(error) => error.suggestion(),
            CliError::Import(error) => error.suggestion().map(str::to_owned),
            CliError::Settings(error) => Some(error.suggestion()),
            CliError::Body(error) => error.suggestion.clone(),
            CliError::File { source, .. } => Some(source.suggestion().to_owned()),
            CliError::Usage { suggestion, .. } => suggestion.clone(),
            CliError::Batch(stop) => stop.suggestion(),
            CliError::Journal(error) => Some(error.suggestion().to_owned()),
            CliError::Via(error) => error.suggestion(),
            CliError::Results(error) => Some(error.suggestion().to_owned()),
            _ => None,
        }
    }

    /// Whether the reader of stdout has closed it: `cog list | head -1`.
    fn is_broken_pipe(&self) -> bool {
        let error = match self {
            CliError::Output(error) => error,
            _ => return false,
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}

/// An error of the vendor has its code.
impl From<VendorBatchError> for CliError {
    fn from(error: VendorBatchError) -> Self {
        match error {
            VendorBatchError::Provider(error) => ErrorBody::from(&error).into(),
            error => CliError::Via(error),
        }
    }
}

impl From<ErrorBody> for CliError {
    fn from(error: ErrorBody) -> Self {
        CliError::Body(Box::new(error))
    }
}

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: success.
    Ok,
    /// 1: the envelope has `ok: false`, a check found something, or the command failed.
    Failed,
    /// 2: invalid arguments or settings.
    Usage,
    /// 3: invalid module.
    Invalid,
    /// 4: a batch that was stopped before its end.
    Stopped,
    /// 5: an answer that did not pass its gate, and should be reviewed.
    Review,
    /// 130: interrupted; the call to the provider was cancelled.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Stopped => 4,
            Exit::Review => 5,
            Exit::Interrupted => 130,
        })
    }
}
