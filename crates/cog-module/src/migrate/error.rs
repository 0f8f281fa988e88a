use std::path::PathBuf;

use thiserror::Error;

use crate::{LoadError, files::FileError};

/// Why a module was not migrated. It is then unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// It does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is built in, so there is no directory to change.
    #[error("`{name}` is built in and cannot be migrated")]
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// The manifest has a form that text cannot be inserted into.
    #[error("module.yaml uses flow style (`{{ }}`), which cannot be edited")]
    FlowStyle,
    /// The result would not load: an error in this program.
    #[error("the migrated module is invalid: {0}")]
    Result(LoadError),
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl MigrateError {
    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Load(_) | Self::Result(_) => None,
            Self::BuiltIn { name } => Some(format!("Run `cog new NAME --from {name}` to create a copy.")),
            Self::FlowStyle => Some("Write each key on its own line, without braces.".to_owned()),
            Self::File { error, .. } => Some(error.suggestion().to_owned()),
        }
    }
}
