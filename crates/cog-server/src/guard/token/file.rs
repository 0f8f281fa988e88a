//! The file of tokens.

use std::{fmt::Write as _, path::Path};

use cog_module::files::{FileError, read_text};
use thiserror::Error;

use super::{Client, Known, Tokens, digest};

/// The maximum size of a token file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;

/// The minimum length of a token: 16 characters of base64 are 96 bits.
const MIN_CHARS: usize = 16;

/// Why a token file is not valid. Never contains a token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] FileError),
    /// The file has no token.
    #[error("the file contains no token")]
    NoToken,
    /// A token is too short.
    #[error("line {line}: the token is shorter than {MIN_CHARS} characters")]
    TooShort {
        /// The line, from 1.
        line: usize,
    },
    /// A token contains a character that is not valid.
    #[error("line {line}: a token cannot contain `{found}`")]
    Character {
        /// The line, from 1.
        line: usize,
        /// The first invalid character.
        found: char,
    },
    /// The name of a token is not valid.
    #[error("line {line}: a name may contain only letters, digits and -_.")]
    Name {
        /// The line, from 1.
        line: usize,
    },
    /// Two lines have the same name or the same token.
    #[error("line {line}: the name or token is already on an earlier line")]
    Twice {
        /// The line, from 1.
        line: usize,
    },
}

impl TokenFileError {
    /// Returns what to do.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Unreadable(error) => error.suggestion(),
            Self::NoToken | Self::TooShort { .. } => "`openssl rand -base64 32` creates a token.",
            Self::Name { .. } | Self::Character { .. } => {
                "Write TOKEN or NAME:TOKEN; a token has letters, digits and -._~+/ and may end with =."
            }
            Self::Twice { .. } => "Use a different name and token on each line.",
        }
    }
}

impl Tokens {
    /// Reads a file with one token per line, `TOKEN` or `NAME:TOKEN`. Empty lines and lines that start with `#` are ignored.
    ///
    /// # Errors
    /// The file cannot be read, or is not valid.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        Self::parse(&read_text(path, MAX_SIZE)?)
    }

    /// Whether other users may read the file; false where the system has no file modes.
    pub fn is_exposed(path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            false
        }
    }

    /// Parses the text of a token file.
    ///
    /// # Errors
    /// A line is not valid, or there is no token.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut known: Vec<Known> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let next = read_line(line, text)?;
            if known.iter().any(|other| other.client == next.client || other.digest == next.digest) {
                return Err(TokenFileError::Twice { line });
            }
            known.push(next);
        }
        if known.is_empty() { Err(TokenFileError::NoToken) } else { Ok(Self::new(known)) }
    }
}

fn read_line(line: usize, text: &str) -> Result<Known, TokenFileError> {
    let (name, token) = match text.split_once(':') {
        Some((name, token)) => (Some(name.trim()), token.trim()),
        None => (None, text),
    };
    if let Some(found) = token.trim_end_matches('=').chars().find(|c| !is_of_a_token(*c)) {
        return Err(TokenFileError::Character { line, found });
    }
    if token.len() < MIN_CHARS {
        return Err(TokenFileError::TooShort { line });
    }
    let digest = digest(token);
    if name.is_some_and(|name| !is_name(name)) {
        return Err(TokenFileError::Name { line });
    }
    let name = name.map_or_else(|| short(&digest), str::to_owned);
    Ok(Known { digest, client: Client::Token(name.into()) })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// RFC 6750, b64token.
fn is_of_a_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/".contains(c)
}

/// The name of an unnamed token: the start of its digest, which reveals nothing about it.
fn short(digest: &[u8; 32]) -> String {
    digest.iter().take(6).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
