//! Text contains no binary data (appendix A.9).

use crate::problem::{Path, Problems};
use crate::rules::BINARY_TEXT;

pub(super) fn check(text: &str, path: &Path<'_>, problems: &mut Problems) {
    if let Some(what) = find(text) {
        problems.add(path, &BINARY_TEXT, what);
    }
}

/// The shortest base64 of a file that is recognized by its first bytes.
const MIN_FILE: usize = 256;
/// The shortest base64 that is binary whatever it contains: prose and code have no word of this length.
const MIN_BLOB: usize = 4096;
/// The shortest base64 of audio or video in a `data:` URL.
const MIN_MEDIA: usize = 16;
/// The number of replacement characters from which text is bytes that were decoded as text.
const MIN_REPLACED: usize = 8;

/// Describes the first binary data in text.
fn find(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut replaced = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match CLASSES.get(usize::from(*byte)).copied().unwrap_or(Class::Text) {
            Class::Base64 => continue,
            Class::Control => return Some(format!("found the control character U+{byte:04X} at byte {at}")),
            Class::Text => {
                replaced += usize::from(*byte == 0xef && bytes.get(at..at + 3) == Some(b"\xef\xbf\xbd"));
            }
        }
        if at - start >= MIN_MEDIA
            && let Some(what) = describe(text, start, at)
        {
            return Some(what);
        }
        start = at + 1;
    }
    let is_decoded = replaced >= MIN_REPLACED && replaced * 8 >= text.chars().count();
    match bytes.len() - start >= MIN_MEDIA {
        _ if is_decoded => Some(format!("found {replaced} replacement characters: the bytes are not text")),
        true => describe(text, start, bytes.len()),
        false => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A character of base64, which most of prose is too.
    Base64,
    /// A control character that text does not contain.
    Control,
    Text,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Text; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::indexing_slicing, reason = "in a constant, and below the length")]
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        {
            classes[byte] = class(byte as u8);
        }
        byte += 1;
    }
    classes
};

const fn class(byte: u8) -> Class {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'-' | b'_' | b'=' => Class::Base64,
        // Tab, line breaks, form feed, and what terminals print: bell, backspace, escape.
        b'\t' | b'\n' | b'\r' | 0x0c | 0x07 | 0x08 | 0x1b => Class::Text,
        0..=0x1f => Class::Control,
        _ => Class::Text,
    }
}

/// The first characters of the base64 of common files.
const FILES: [(&str, &str); 11] = [
    ("iVBORw0KGgo", "a PNG image"),
    ("/9j/", "a JPEG image"),
    ("R0lGOD", "a GIF image"),
    ("UklGR", "a WebP image, a WAV or an AVI file"),
    ("JVBERi0", "a PDF"),
    ("UEsDB", "a ZIP archive or an office document"),
    ("SUQz", "an MP3 file"),
    ("T2dnUw", "an Ogg file"),
    ("GkXfo", "a WebM or Matroska file"),
    ("ZkxhQ", "a FLAC file"),
    ("H4sI", "a gzip archive"),
];

/// Describes a run of base64 if it is binary data.
fn describe(text: &str, start: usize, end: usize) -> Option<String> {
    let run = text.get(start..end)?;
    // Images of a few pixels are written into prose and code, but audio and video never are.
    if let Some(media_type) = data_url_before(text, start)
        && (run.len() >= MIN_FILE || media_type.starts_with("audio/") || media_type.starts_with("video/"))
    {
        return Some(format!("found a `data:` URL of {media_type} at byte {start}"));
    }
    if run.len() < MIN_FILE {
        return None;
    }
    let file = FILES.iter().find(|(prefix, _)| run.starts_with(prefix));
    if let Some((_, what)) = file {
        return Some(format!("found base64 of {what} at byte {start}"));
    }
    // The second box of an MP4 file: its size, then `ftyp`.
    if run.get(6..10) == Some("Z0eX") {
        return Some(format!("found base64 of an MP4 file at byte {start}"));
    }
    let tests = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, u8::is_ascii_digit];
    let is_mixed = tests.iter().all(|test| run.as_bytes().iter().any(test));
    (run.len() >= MIN_BLOB && is_mixed)
        .then(|| format!("found {} bytes of base64 at byte {start}", run.len()))
}

/// Returns the media type of a `data:` URL whose base64 starts at `start`.
fn data_url_before(text: &str, start: usize) -> Option<&str> {
    let before = text.get(..start)?.strip_suffix(";base64,")?;
    let from = before.len().saturating_sub(MAX_TYPE);
    let near = before.char_indices().rev().take_while(|(at, _)| *at >= from).last().map(|(at, _)| at)?;
    let (_, media_type) = before.get(near..)?.rsplit_once("data:")?;
    let is_type = media_type.bytes().all(|byte| byte.is_ascii_graphic());
    is_type.then_some(media_type)
}

/// The maximum number of bytes between `data:` and `;base64,`.
const MAX_TYPE: usize = 100;
