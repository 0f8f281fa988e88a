//! The file of tokens.

use std::{fmt::Write as _, path::Path};

use cog_module::files::{FileError, read_text};
use thiserror::Error;

use super::{Client, Known, Tokens, digest};

/// The largest token file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;

/// The shortest token: 16 characters of base64 are 96 bits.
const SHORTEST: usize = 16;

/// Why a token file cannot be used. Never tells a token.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] FileError),
    /// It holds no token.
    #[error("it holds no token")]
    NoToken,
    /// A line is no token.
    #[error("line {line}: a token has at least {SHORTEST} characters")]
    TooShort {
        /// The line, from 1.
        line: usize,
    },
    /// A line holds what cannot stand in a header.
    #[error("line {line}: `{found}` cannot stand in a token")]
    Character {
        /// The line, from 1.
        line: usize,
        /// The first character that cannot.
        found: char,
    },
    /// The name before a token is none.
    #[error("line {line}: a name consists of letters, digits and -_.")]
    Name {
        /// The line, from 1.
        line: usize,
    },
    /// Two lines have the same name, or the same token.
    #[error("line {line}: its name or token stands on an earlier line already")]
    Twice {
        /// The line, from 1.
        line: usize,
    },
}

impl TokenFileError {
    /// What to do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Unreadable(error) => error.suggestion(),
            Self::NoToken | Self::TooShort { .. } => "`openssl rand -base64 32` makes a token",
            Self::Name { .. } | Self::Character { .. } => {
                "a line is TOKEN or NAME:TOKEN; a token consists of letters, digits and -._~+/ and may end in ="
            }
            Self::Twice { .. } => "give each holder a name and a token of its own",
        }
    }
}

impl Tokens {
    /// Reads a file of tokens: one a line, `TOKEN` or `NAME:TOKEN`; empty lines and those that begin with `#` are
    /// passed over.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is no token.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        Self::parse(&read_text(path, MAX_SIZE)?)
    }

    /// Whether others than its owner may read the file; never so where the system has no such modes.
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

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// A line is no token, or there is none.
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
        if known.is_empty() { Err(TokenFileError::NoToken) } else { Ok(Self(known.into())) }
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
    if token.len() < SHORTEST {
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

/// The name of a token that has none: the beginning of its digest, which tells nothing about it.
fn short(digest: &[u8; 32]) -> String {
    digest.iter().take(6).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}
