use std::path::PathBuf;

use cog_spec::Code;

/// Why there can be no store of sessions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The directory cannot be used.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another program keeps its sessions there.
    #[error("{}: another server keeps its sessions in this directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

impl SessionError {
    /// The code of the error: E4000, because no request is at fault.
    pub fn code(&self) -> Code {
        match self {
            Self::Directory { .. } | Self::InUse { .. } => Code::InternalError,
        }
    }
}
