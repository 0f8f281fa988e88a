//! The path of a value in a document.

use std::{
    fmt::{self, Write},
    str::FromStr,
};

use crate::{value::Value, write::write_string};

/// The steps from the root of a document to a value.
///
/// Displays as ruling R44 writes paths: `data.objects[0].label`, keys outside `[A-Za-z_$][A-Za-z0-9_$-]*` as
/// `["…"]`, the root as the empty string. [`Path::from_str`] reads this form.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Path {
    /// The keys, concatenated.
    keys: String,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// A key: its range in `keys`.
    Key {
        start: u32,
        end: u32,
    },
    Index(usize),
}

/// One step of a [`Path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Into an object.
    Key(&'a str),
    /// Into an array, counted from 0.
    Index(usize),
}

impl Path {
    /// Returns the path of the root.
    #[must_use]
    pub const fn root() -> Self {
        Path { keys: String::new(), steps: Vec::new() }
    }

    /// Returns the number of steps; 0 for the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the steps, starting at the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Segment<'_>> + ExactSizeIterator {
        self.steps.iter().map(|step| self.segment(*step))
    }

    /// Returns the first step.
    #[must_use]
    pub fn first(&self) -> Option<Segment<'_>> {
        self.segments().next()
    }

    /// Returns the last step.
    #[must_use]
    pub fn last(&self) -> Option<Segment<'_>> {
        self.segments().next_back()
    }

    /// Returns whether this path is `other` or is below it.
    #[must_use]
    pub fn starts_with(&self, other: &Path) -> bool {
        self.steps.starts_with(&other.steps) && self.keys.starts_with(&other.keys)
    }

    /// Adds a key.
    pub fn push_key(&mut self, key: &str) {
        let start = self.keys.len() as u32;
        self.keys.push_str(key);
        self.steps.push(Step::Key { start, end: self.keys.len() as u32 });
    }

    /// Adds an index.
    pub fn push_index(&mut self, index: usize) {
        self.steps.push(Step::Index(index));
    }

    /// Removes the last step, if there is one.
    pub fn pop(&mut self) {
        if let Some(Step::Key { start, .. }) = self.steps.pop() {
            self.keys.truncate(start as usize);
        }
    }

    /// Removes all steps.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.steps.clear();
    }

    /// Returns the path as a JSON pointer (RFC 6901).
    #[must_use]
    pub fn pointer(&self) -> String {
        pointer(self.segments())
    }

    fn segment(&self, step: Step) -> Segment<'_> {
        match step {
            Step::Index(index) => Segment::Index(index),
            Step::Key { start, end } => {
                Segment::Key(self.keys.get(start as usize..end as usize).unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self.segments(), f)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse(text)
    }
}

impl<'a> FromIterator<Segment<'a>> for Path {
    fn from_iter<I: IntoIterator<Item = Segment<'a>>>(segments: I) -> Self {
        let mut path = Path::root();
        path.extend(segments);
        path
    }
}

impl<'a> Extend<Segment<'a>> for Path {
    fn extend<I: IntoIterator<Item = Segment<'a>>>(&mut self, segments: I) {
        for segment in segments {
            match segment {
                Segment::Key(key) => self.push_key(key),
                Segment::Index(index) => self.push_index(index),
            }
        }
    }
}

// Paths as text: the form of ruling R44, and JSON pointers.

/// A string that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a path: expected a form like `data.objects[0].label` at byte {offset}")]
pub struct PathError {
    text: String,
    offset: usize,
}

fn write<'a>(segments: impl Iterator<Item = Segment<'a>>, out: &mut impl Write) -> fmt::Result {
    let mut before = "";
    for segment in segments {
        match segment {
            Segment::Index(index) => write!(out, "[{index}]")?,
            Segment::Key(key) if is_name(key) => write!(out, "{before}{key}")?,
            Segment::Key(key) => {
                let mut quoted = String::new();
                write_string(key, &mut quoted);
                write!(out, "[{quoted}]")?;
            }
        }
        before = ".";
    }
    Ok(())
}

fn pointer<'a>(segments: impl Iterator<Item = Segment<'a>>) -> String {
    let mut out = String::new();
    for segment in segments {
        out.push('/');
        match segment {
            Segment::Index(index) => out.push_str(&index.to_string()),
            Segment::Key(key) => out.push_str(&key.replace('~', "~0").replace('/', "~1")),
        }
    }
    out
}

fn parse(text: &str) -> Result<Path, PathError> {
    let mut path = Path::root();
    let mut rest = text;
    while !rest.is_empty() {
        let offset = text.len() - rest.len();
        rest = step(rest, offset == 0, &mut path).ok_or(PathError { text: text.to_owned(), offset })?;
    }
    Ok(path)
}

/// Reads one step and returns the rest.
fn step<'a>(rest: &'a str, first: bool, path: &mut Path) -> Option<&'a str> {
    if let Some(inner) = rest.strip_prefix('[') {
        return if inner.starts_with('"') { quoted(inner, path) } else { index(inner, path) };
    }
    let rest = if first { rest } else { rest.strip_prefix('.')? };
    let end = rest.bytes().position(|byte| !is_inner(byte)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    is_name(name).then(|| path.push_key(name))?;
    Some(rest)
}

fn index<'a>(inner: &'a str, path: &mut Path) -> Option<&'a str> {
    let (digits, rest) = inner.split_once(']')?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    path.push_index(if plain { digits.parse().ok()? } else { return None });
    Some(rest)
}

fn quoted<'a>(inner: &'a str, path: &mut Path) -> Option<&'a str> {
    let mut end = 1;
    loop {
        end += inner.get(end..)?.find(['"', '\\'])?;
        match inner.get(end..)?.starts_with('"') {
            true => break,
            false => end += 2,
        }
    }
    let (literal, rest) = inner.split_at_checked(end + 1)?;
    path.push_key(Value::parse(literal).ok()?.as_str()?);
    rest.strip_prefix(']')
}

/// `[A-Za-z_$][A-Za-z0-9_$-]*`
fn is_name(key: &str) -> bool {
    let starts_like_one =
        key.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'));
    starts_like_one && key.bytes().all(is_inner)
}

fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-')
}

#[cfg(test)]
mod tests;
