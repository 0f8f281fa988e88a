//! Splits the bytes of a reply into frames, in whatever format the server uses.
//!
//! Requests specify a stream, but servers reply in various formats: events, one JSON body, or a web page. The first
//! byte that is not white space identifies the format.

use cog_json::{SyntaxErrorKind, Value};
use memchr::{memchr, memchr2};

use super::DecodeError;

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

// A parser for server-sent events as specified by WHATWG, with size limits.
//
// Lines end with CR, LF or CRLF, split at any position. Comments and unknown fields are skipped. Several `data` lines
// are joined by LF. The field `error`, which is not part of the specification, is an event with this name: gateways send
// it when they fail in the middle of a reply.
// An event without a blank line at the end of the stream is dropped. Unlike in the specification, bytes that are not
// UTF-8 are an error: a replacement character would silently change an answer.

/// One event: its name (empty if it has none) and its data.
pub(crate) struct SseEvent<'a> {
    pub(crate) name: &'a str,
    pub(crate) data: &'a str,
}

/// The callback that receives events.
pub(crate) type EventSink<'a> = dyn FnMut(SseEvent<'_>) -> Result<(), DecodeError> + 'a;

/// An incremental parser of events.
pub(crate) struct SseReader {
    line: LineBuffer,
    event: EventBuilder,
    /// Whether the last byte was a CR; a following LF belongs to it.
    after_cr: bool,
}

/// The event whose lines are being read.
#[derive(Default)]
struct EventBuilder {
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The maximum size of the data, in bytes.
    limit: usize,
}

impl SseReader {
    /// Creates a parser for lines and events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let event = EventBuilder { limit, ..EventBuilder::default() };
        Self { line: LineBuffer::new(limit), event, after_cr: false }
    }

    /// Parses the next bytes, split at any position.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, ending) = rest.split_at(end);
            let after = self.skip_ending(ending);
            rest = self.line.complete(line, |line| self.event.add_line(line, after, sink))?;
        }
        self.line.append(rest)
    }

    /// Skips a line ending, and remembers a CR whose LF may still arrive.
    fn skip_ending<'a>(&mut self, ending: &'a [u8]) -> &'a [u8] {
        self.after_cr = ending == b"\r";
        ending.strip_prefix(b"\r\n").or_else(|| ending.get(1..)).unwrap_or_default()
    }
}

impl EventBuilder {
    /// Adds a complete line. Returns the bytes of `rest` that are still to be read.
    fn add_line<'a>(
        &mut self,
        line: &[u8],
        rest: &'a [u8],
        sink: &mut EventSink<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        if line.is_empty() {
            self.emit(None, sink)?;
            return Ok(rest);
        }
        let (field, value) =
            memchr(b':', line).and_then(|colon| line.split_at_checked(colon)).unwrap_or((line, b""));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" => return self.add_data(value, rest, sink),
            // Not at the end of the event: the server closes the connection, often without a blank line.
            b"error" if !value.is_empty() => {
                self.name = field.to_vec();
                self.emit(Some(value), sink)?;
            }
            _ => {}
        }
        Ok(rest)
    }

    /// Adds a line of data. The data of a complete event with a single data line is not copied.
    fn add_data<'a>(
        &mut self,
        value: &[u8],
        rest: &'a [u8],
        sink: &mut EventSink<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        if !self.has_data
            && let Some(after) = rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n"))
        {
            self.emit(Some(value), sink)?;
            return Ok(after);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        if self.data.len() + value.len() > self.limit {
            return Err(DecodeError::FrameTooLarge(self.limit));
        }
        self.data.extend_from_slice(value);
        Ok(rest)
    }

    /// Ends the event. `data` is all of its data, if it was not copied.
    fn emit(&mut self, data: Option<&[u8]>, sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let has_data = std::mem::take(&mut self.has_data);
        let result = match data.or(has_data.then_some(&self.data)) {
            Some(data) => sink(SseEvent { name: utf8(&self.name)?, data: utf8(data)? }),
            None => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        result
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8)
}

// A buffer for lines that arrive in several parts.

/// The part of a line received so far.
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// The maximum size of a line, in bytes.
    limit: usize,
}

impl LineBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a part of a line that is not complete.
    pub(super) fn append(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        self.check_size(part)?;
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Calls `read` with the complete line; `end` is its last part. A line that arrives at once is not copied.
    pub(super) fn complete<T>(
        &mut self,
        end: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.check_size(end)?;
        if self.bytes.is_empty() {
            return read(end);
        }
        self.bytes.extend_from_slice(end);
        let result = read(&self.bytes);
        self.bytes.clear();
        result
    }

    fn check_size(&self, part: &[u8]) -> Result<(), DecodeError> {
        match self.bytes.len() + part.len() > self.limit {
            true => Err(DecodeError::FrameTooLarge(self.limit)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
