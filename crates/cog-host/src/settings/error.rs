//! Errors of settings.

use std::path::PathBuf;

use cog_schema::nearest;
use thiserror::Error;

/// Why the settings cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A settings file exists but cannot be read.
    #[error("cannot read the settings file: {message}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        message: String,
    },
    /// A settings file has a syntax error, an unknown key or an invalid value.
    #[error("{message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1, if known.
        line: Option<usize>,
        /// The cause.
        message: String,
    },
    /// A settings file has a key that does not exist.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, from 1, if known.
        line: Option<usize>,
        /// The key.
        key: String,
        /// The keys that the file may have there.
        known: Vec<String>,
    },
    /// A file in the working directory sets a key that only the operator may set.
    #[error("a settings file in the working directory cannot set `{key}`")]
    Forbidden {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A settings file has a section for an unknown provider.
    #[error("unknown provider `{name}`")]
    UnknownProvider {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A setting of the server is invalid.
    #[error("{message}")]
    Server {
        /// The file that sets it; none for a flag or a variable.
        file: Option<String>,
        /// The cause.
        message: String,
    },
    /// The process was started to read a document, audio or video, but the program does not do that.
    #[error("this process was started to read a media file, which the program does not do")]
    Reader,
    /// An environment variable is invalid.
    #[error("{name}: {message}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// The cause.
        message: String,
    },
}

/// How a program becomes one that reads media files.
const READER_HINT: &str = "Call `cog_media::internal_media` first if the first argument is `internal-media`, or name another program with `set_reader`.";

impl SettingsError {
    /// Returns the file, with the line if it is known.
    pub fn location(&self) -> Option<String> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Forbidden { path, .. }
            | Self::Syntax { path, line: None, .. }
            | Self::UnknownKey { path, line: None, .. }
            | Self::UnknownProvider { path, .. } => Some(path.display().to_string()),
            Self::Syntax { path, line: Some(line), .. } | Self::UnknownKey { path, line: Some(line), .. } => {
                Some(format!("{}:{line}", path.display()))
            }
            Self::Server { file, .. } => file.clone(),
            Self::Reader | Self::Variable { .. } => None,
        }
    }

    /// Returns what to do about the error.
    pub fn suggestion(&self) -> String {
        match self {
            Self::Forbidden { .. } => {
                "Set URLs, keys, media rules, module directories, trust and the run log in the environment or in \
                 ~/.config/cog/config.toml."
                    .to_owned()
            }
            Self::UnknownProvider { .. } => "`cog doctor --all` lists the providers.".to_owned(),
            Self::Unreadable { .. } => "Make it a text file that this user can read, or remove it.".to_owned(),
            Self::UnknownKey { key, known, .. } => match nearest(key, known.iter().map(String::as_str)) {
                Some(name) => format!("Did you mean `{name}`?"),
                None => format!(
                    "The keys here are {}. The keys of a provider are in a table of its own, such as `[providers.openai]`.",
                    known.join(", ")
                ),
            },
            Self::Syntax { .. } => "Settings files are TOML, such as `timeout = \"30s\"`.".to_owned(),
            Self::Server { .. } => "`cog serve --help` shows the format of each setting.".to_owned(),
            Self::Reader => READER_HINT.to_owned(),
            Self::Variable { name, .. } => format!("Set {name} to a valid value, or unset it."),
        }
    }
}
