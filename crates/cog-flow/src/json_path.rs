//! JSONPath (RFC 9535) in mappings, with limits.

mod limits;
mod wild;

use std::{cell::OnceCell, io};

use cog_json::{Limits, Value};
use cog_spec::{Code, ErrorBody};
use serde_json_path::JsonPath as Query;
use thiserror::Error;

use crate::{
    cursor::TextError,
    value_path::{Step, ValuePath},
};

pub(crate) use self::wild::{WildPath, WildStep};

/// The maximum size of the values that a path selects, as JSON: 8 MB.
const MAX_RESULT: usize = 8 << 20;

/// A parsed path of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonPath {
    /// A path to at most one value, which is read in place.
    One(ValuePath),
    /// A path that selects a list of values.
    Many(Box<Query>, WildPath),
}

/// The values that a mapping selects are too large (E1005).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the selected values exceed {max_bytes} bytes")]
#[non_exhaustive]
pub struct PathError {
    /// The limit that they exceed.
    pub max_bytes: usize,
}

/// The values of one path are too large.
const TOO_LARGE: PathError = PathError { max_bytes: MAX_RESULT };

/// A document from which paths select values.
pub(crate) struct Document<'v> {
    value: &'v Value,
    /// The same document for paths to several values.
    copy: OnceCell<serde_json::Value>,
}

impl<'v> Document<'v> {
    pub(crate) const fn new(value: &'v Value) -> Self {
        Self { value, copy: OnceCell::new() }
    }
}

impl From<PathError> for ErrorBody {
    fn from(error: PathError) -> Self {
        ErrorBody::new(Code::InputTooLarge, error.to_string())
            .suggest("Select fewer values: name the members instead of `..` and `*`.")
    }
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// When it is not valid, or exceeds a limit that bounds the time to evaluate it.
    pub(crate) fn parse(text: &str) -> Result<Self, TextError> {
        limits::check(text)?;
        if let Some(path) = ValuePath::parse(text) {
            return Ok(JsonPath::One(path));
        }
        match Query::parse(text.trim()) {
            Ok(query) => Ok(JsonPath::Many(Box::new(query), WildPath::read(text))),
            Err(error) => Err(explain(text, &error)),
        }
    }

    /// Returns the value that it selects; a list if it can select several, none if the only value is absent.
    ///
    /// # Errors
    /// When the values are too large.
    pub(crate) fn select(&self, document: &Document<'_>) -> Result<Option<Value>, PathError> {
        let Document { value, copy } = document;
        match self {
            JsonPath::One(path) => Ok(path.find(value.node()).map(|node| value.child(node))),
            JsonPath::Many(query, _) => many(query, copy.get_or_init(|| value.to_serde())).map(Some),
        }
    }

    /// Returns the name of the member of the document that it reads, if it names one.
    pub(crate) fn first_key(&self) -> Option<&str> {
        match self {
            JsonPath::One(path) => match path.steps().first()? {
                Step::Key(key) => Some(key.as_str()),
                Step::Index(_) => None,
            },
            JsonPath::Many(_, path) => match path.steps.first()? {
                WildStep::Key(key) => Some(key),
                WildStep::Index | WildStep::All => None,
            },
        }
    }
}

fn many(query: &Query, document: &serde_json::Value) -> Result<Value, PathError> {
    let mut text = BoundedText(Vec::new());
    serde_json::to_writer(&mut text, &query.query(document).all()).map_err(|_| TOO_LARGE)?;
    Value::parse_within(&text.0, Limits::unbounded()).map_err(|_| TOO_LARGE)
}

/// The text of the selected values, up to [`MAX_RESULT`].
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RESULT {
            return Err(io::Error::other(TOO_LARGE));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the error of the library at its position.
fn explain(text: &str, error: &serde_json_path::ParseError) -> TextError {
    let start = text.len() - text.trim_start().len();
    let at = text.floor_char_boundary((start + error.position()).min(text.len()));
    let end = at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let found = TextError::new(at..end, "not a valid JSONPath");
    if text.trim().starts_with('$') {
        found.suggest("Write a path such as `$.data.issues[*].id` (RFC 9535).")
    } else {
        found.suggest(format!("Start with `$`: `$.{}`.", text.trim().chars().take(40).collect::<String>()))
    }
}

#[cfg(test)]
mod tests;
