use std::path::PathBuf;

use cog_spec::Code;

/// An error of opening a store of sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The directory cannot be used.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Another program stores its sessions in the directory.
    #[error("{}: another server stores its sessions in this directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

impl SessionError {
    /// Returns the code of the error: E4000, because no request caused it.
    pub fn code(&self) -> Code {
        match self {
            Self::Directory { .. } | Self::InUse { .. } => Code::InternalError,
        }
    }
}
