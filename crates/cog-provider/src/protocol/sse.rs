//! A parser for server-sent events as specified by WHATWG, with size limits.
//!
//! Lines end with CR, LF or CRLF, split at any position. Comments and unknown fields are skipped. Several `data` lines
//! are joined by LF. The field `error`, which is not part of the specification, is an event with this name: gateways send
//! it when they fail in the middle of a reply.
//! An event without a blank line at the end of the stream is dropped. Unlike in the specification, bytes that are not
//! UTF-8 are an error: a replacement character would silently change an answer.

use memchr::{memchr, memchr2};

use super::DecodeError;

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
