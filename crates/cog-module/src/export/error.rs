use std::path::PathBuf;

use cog_spec::Code;
use thiserror::Error;

use crate::files::FileError;

/// Why a module was not exported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The name of the module is not allowed for a skill.
    #[error("`{name}` is not a valid name of a skill: {reason}")]
    SkillName {
        /// The name.
        name: String,
        /// The rule that it violates.
        reason: &'static str,
        /// A similar name that is allowed.
        similar: Option<String>,
    },
    /// The manifest does not allow calls from agents.
    #[error("agents may not call `{name}`: its manifest has `agent_invocable: false`")]
    NotForAgents {
        /// The module.
        name: String,
    },
    /// The namespace of a registry entry is invalid.
    #[error("`{namespace}` is not a namespace in reverse-DNS form")]
    Namespace {
        /// The namespace.
        namespace: String,
    },
    /// The container image of a registry entry is invalid.
    #[error("`{image}` does not name one version of a container image")]
    Image {
        /// The image.
        image: String,
    },
    /// A path cannot be written into a command.
    #[error("the path `{path}` contains a quote, `$`, a backslash or a control character")]
    Path {
        /// The path.
        path: String,
    },
    /// A file of the module could not be read.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: FileError,
    },
}

impl ExportError {
    /// Returns the code of the error.
    pub const fn code(&self) -> Code {
        match self {
            Self::SkillName { .. } | Self::Namespace { .. } | Self::Image { .. } | Self::Path { .. } => {
                Code::UnsupportedValue
            }
            Self::NotForAgents { .. } => Code::PermissionDenied,
            Self::File { .. } => Code::InvalidReference,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> Option<String> {
        Some(match self {
            Self::SkillName { name, similar, .. } => {
                let similar = similar.as_deref().unwrap_or("my-skill");
                format!("Copy the module under another name: `cog new {similar} --from {name}`.")
            }
            Self::NotForAgents { .. } => {
                "Export it as `claude-code`, where only a person calls it, or change `invocation` in the manifest."
                    .to_owned()
            }
            Self::Namespace { .. } => {
                "Use a domain or an account of yours, such as `com.example` or `io.github.your-name`.".to_owned()
            }
            Self::Image { .. } => {
                "Write `REGISTRY/NAME:TAG`, with a tag other than `latest`, or `REGISTRY/NAME@sha256:DIGEST`.".to_owned()
            }
            Self::Path { .. } => "Move the module to a path without these characters.".to_owned(),
            Self::File { error, .. } => error.suggestion().to_owned(),
        })
    }
}
