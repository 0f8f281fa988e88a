use std::path::PathBuf;

use cog_spec::Code;
use thiserror::Error;

use crate::{LoadError, files::FileError};

/// Why no module was made from a skill. Nothing was written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The path is not that of a skill.
    #[error("{} is not a skill: neither a directory nor a file named SKILL.md", .path.display())]
    NoSkill {
        /// The path.
        path: PathBuf,
    },
    /// `SKILL.md` is a link or a device.
    #[error("{} is not a regular file: links of a skill are not followed", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The directory is over a limit.
    #[error("{} has more than 512 files or 16 MiB", .path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
    },
    /// No module name is similar to the name of the skill.
    #[error("`{name}` is not a name for a module: it has no letter from a to z")]
    Name {
        /// The name of the skill.
        name: String,
    },
    /// `SKILL.md`, the schema or the module in the skill is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The directory of the module exists.
    #[error("{} already exists", .path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ImportError {
    /// Returns the code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::NoSkill { .. } | Self::File { .. } => Code::InvalidReference,
            Self::Link { .. } | Self::Exists { .. } => Code::PermissionDenied,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::Name { .. } => Code::UnsupportedValue,
            Self::Load(_) => Code::ModuleInvalid,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<&str> {
        Some(match self {
            Self::NoSkill { .. } => "Give the path of a SKILL.md, or of the directory that contains it.",
            Self::Link { .. } => "Copy the file into the directory of the skill.",
            Self::TooLarge { .. } => {
                "Give the directory of one skill, without files that belong to no skill."
            }
            Self::Name { .. } => "Change `name` in SKILL.md to lower case letters, digits and hyphens.",
            Self::Load(_) => return None,
            Self::Exists { .. } => "Choose another directory with --output, or move the existing one.",
            Self::File { error, .. } => error.suggestion(),
        })
    }
}
