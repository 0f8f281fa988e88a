//! Splits the bytes of a reply into frames, in whatever format the server uses.
//!
//! Requests specify a stream, but servers reply in various formats: events, one JSON body, or a web page. The first
//! byte that is not white space identifies the format.

use cog_json::{SyntaxErrorKind, Value};
use memchr::memchr;

use super::{
    DecodeError,
    sse::{LineBuffer, SseEvent, SseReader},
};

/// One frame of a reply: an event, a line or a body.
pub(crate) struct Frame<'a> {
    /// The event's name; empty for lines and bodies.
    pub(crate) event: &'a str,
    /// The text: JSON, or a marker of the protocol such as `[DONE]`.
    pub(crate) text: &'a str,
}

/// The callback that receives frames.
pub(crate) type FrameSink<'a> = dyn FnMut(Frame<'_>) -> Result<(), DecodeError> + 'a;

/// Splits a reply into frames.
pub(crate) struct Frames {
    format: Format,
    streams_lines: bool,
    sse: SseReader,
    has_events: bool,
    /// The body or line received so far.
    buffer: LineBuffer,
    /// The beginning of a page or of events, for an error message.
    excerpt: Vec<u8>,
}

/// The detected format of the reply.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Unknown,
    Events,
    Lines,
    Body,
    Page,
}

/// The number of bytes of a page or other invalid text that are retained for the error message.
const MAX_EXCERPT: usize = 512;

impl Frames {
    /// Creates a splitter for a protocol that streams server-sent events. No frame may exceed `limit` bytes.
    pub(crate) fn events(limit: usize) -> Self {
        Self {
            format: Format::Unknown,
            streams_lines: false,
            sse: SseReader::new(limit),
            has_events: false,
            buffer: LineBuffer::new(limit),
            excerpt: Vec::new(),
        }
    }

    /// Creates a splitter for a protocol that streams one JSON object per line.
    pub(crate) fn lines(limit: usize) -> Self {
        Self { streams_lines: true, ..Self::events(limit) }
    }

    /// Reads the next bytes, split at any position.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        let bytes = if self.format == Format::Unknown { self.detect(bytes) } else { bytes };
        match self.format {
            Format::Unknown => Ok(()),
            Format::Events => self.push_events(bytes, sink),
            Format::Lines => self.push_lines(bytes, sink),
            Format::Body => self.buffer.append(bytes),
            Format::Page => self.push_page(bytes),
        }
    }

    /// Reads the end of the reply. A reply that is one body is emitted here.
    pub(crate) fn finish(&mut self, sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        match self.format {
            Format::Unknown => Err(DecodeError::Empty),
            Format::Page => Err(web_page(&self.excerpt)),
            Format::Events if self.has_events => Ok(()),
            Format::Events => Err(no_events(&self.excerpt)),
            Format::Lines | Format::Body => {
                let text = trimmed(self.buffer.bytes())?;
                // JSON that ends too early was cut by the connection. The decoder reports any other error.
                match Value::parse(text) {
                    Err(error) if !text.is_empty() && error.kind() == SyntaxErrorKind::UnexpectedEnd => {
                        Err(DecodeError::Incomplete)
                    }
                    _ => emit(text, sink),
                }
            }
        }
    }

    /// Detects the format from the first byte after white space and a byte order mark. Returns the bytes from there on.
    fn detect<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let start = bytes.iter().take_while(|byte| is_insignificant(**byte)).count();
        let rest = bytes.get(start..).unwrap_or_default();
        self.format = match rest.first() {
            None => Format::Unknown,
            Some(b'<') => Format::Page,
            Some(b'{' | b'[') if self.streams_lines => Format::Lines,
            // A server that does not stream, or an error, whatever the content type says.
            Some(b'{' | b'[') => Format::Body,
            Some(_) => Format::Events,
        };
        rest
    }

    fn push_events(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        if !self.has_events {
            self.retain_excerpt(bytes);
        }
        self.sse.push(bytes, &mut |SseEvent { name, data }| {
            self.has_events = true;
            sink(Frame { event: name, text: data })
        })
    }

    fn push_lines(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, ending) = rest.split_at(end);
            self.buffer.complete(line, |line| emit(trimmed(line)?, sink))?;
            rest = ending.get(1..).unwrap_or_default();
        }
        self.buffer.append(rest)
    }

    fn push_page(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.retain_excerpt(bytes);
        if self.excerpt.len() < MAX_EXCERPT { Ok(()) } else { Err(web_page(&self.excerpt)) }
    }

    fn retain_excerpt(&mut self, bytes: &[u8]) {
        let room = MAX_EXCERPT - self.excerpt.len();
        self.excerpt.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

/// Returns whether a byte is white space, or one of a byte order mark, which may arrive in several parts.
fn is_insignificant(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF)
}

/// Returns the text of a line or body, without the white space around it.
fn trimmed(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map(str::trim).map_err(|_| DecodeError::NotUtf8)
}

/// Emits a line or body, unless it is blank.
fn emit(text: &str, sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
    if text.is_empty() { Ok(()) } else { sink(Frame { event: "", text }) }
}

/// Returns the error for a reply without events: an incomplete event, or a different kind of text.
fn no_events(excerpt: &[u8]) -> DecodeError {
    let known = [b":".as_slice(), b"data", b"event", b"id", b"retry"];
    match known.iter().any(|field| excerpt.starts_with(field) || field.starts_with(excerpt)) {
        true => DecodeError::Incomplete,
        false => DecodeError::NotJson(format!("it begins with `{}`", first_words(excerpt))),
    }
}

/// Describes a page by its title, or otherwise by its first words.
fn web_page(excerpt: &[u8]) -> DecodeError {
    let text = String::from_utf8_lossy(excerpt);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let title = text.get(start + "<title>".len()..)?;
        title.split('<').next()
    });
    DecodeError::WebPage(first_words(title.unwrap_or(&text).as_bytes()))
}

fn first_words(excerpt: &[u8]) -> String {
    String::from_utf8_lossy(excerpt)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(80)
        .collect()
}

#[cfg(test)]
mod tests;
