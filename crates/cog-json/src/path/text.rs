//! Paths as text: the form of ruling R44, and JSON pointers.

use std::fmt::{self, Write};

use crate::path::{Path, Segment};
use crate::value::Value;
use crate::write::write_string;

/// A text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a path: expected a form like `data.objects[0].label` at byte {offset}")]
pub struct PathError {
    text: String,
    offset: usize,
}

pub(super) fn write<'a>(segments: impl Iterator<Item = Segment<'a>>, out: &mut impl Write) -> fmt::Result {
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

pub(super) fn pointer<'a>(segments: impl Iterator<Item = Segment<'a>>) -> String {
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

pub(super) fn parse(text: &str) -> Result<Path, PathError> {
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
    let starts = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$';
    key.bytes().next().is_some_and(starts) && key.bytes().all(is_inner)
}

fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-')
}
