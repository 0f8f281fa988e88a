//! A parser for server-sent events as specified by WHATWG, with size limits.
//!
//! Lines end with CR, LF or CRLF, split at any position. A leading byte order mark, comments and unknown fields are
//! skipped. Several `data` lines are joined by LF.
//! An event without a blank line at the end of the stream is dropped. Unlike in the specification, bytes that are not
//! UTF-8 are an error: a replacement character would silently change an answer.

use memchr::{memchr, memchr2};

use super::DecodeError;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event: its name (empty if it has none) and its data.
pub(crate) struct SseEvent<'a> {
    pub(crate) name: &'a str,
    pub(crate) data: &'a str,
}

/// The callback that receives events.
pub(crate) type EventSink<'a> = dyn FnMut(SseEvent<'_>) -> Result<(), DecodeError> + 'a;

/// An incremental parser of events.
#[derive(Default)]
pub(crate) struct SseReader {
    /// The maximum size of an event, in bytes.
    limit: usize,
    /// The part of the current line received so far.
    line: Vec<u8>,
    /// The name of the current event.
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last byte was a CR; a following LF belongs to it.
    after_cr: bool,
    past_first_line: bool,
}

impl SseReader {
    /// Creates a parser for events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
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
            rest = self.after_ending(ending);
            self.check_size(line)?;
            rest = match self.line.is_empty() {
                true => self.end_line(line, rest, sink)?,
                false => self.end_split_line(line, rest, sink)?,
            };
        }
        self.check_size(rest)?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// Skips a line ending, and remembers a CR whose LF may still arrive.
    fn after_ending<'a>(&mut self, ending: &'a [u8]) -> &'a [u8] {
        self.after_cr = ending == b"\r";
        ending.strip_prefix(b"\r\n").or_else(|| ending.get(1..)).unwrap_or_default()
    }

    fn check_size(&self, more: &[u8]) -> Result<(), DecodeError> {
        match self.line.len() + self.data.len() + more.len() > self.limit {
            true => Err(DecodeError::FrameTooLarge(self.limit)),
            false => Ok(()),
        }
    }

    /// Ends a line of which `end` is the last part. Returns the remaining bytes.
    fn end_split_line<'a>(
        &mut self,
        end: &[u8],
        rest: &'a [u8],
        sink: &mut EventSink<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end);
        let rest = self.end_line(&line, rest, sink);
        self.line = line;
        self.line.clear();
        rest
    }

    /// Parses a complete line. Returns the remaining bytes.
    fn end_line<'a>(
        &mut self,
        line: &[u8],
        rest: &'a [u8],
        sink: &mut EventSink<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        let line = match std::mem::replace(&mut self.past_first_line, true) {
            true => line,
            false => line.strip_prefix(BOM).unwrap_or(line),
        };
        if line.is_empty() {
            self.dispatch(None, sink)?;
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
            _ => {}
        }
        Ok(rest)
    }

    /// Adds a line of data. A complete event with a single data line is not copied.
    fn add_data<'a>(
        &mut self,
        value: &[u8],
        rest: &'a [u8],
        sink: &mut EventSink<'_>,
    ) -> Result<&'a [u8], DecodeError> {
        if !self.has_data
            && let Some(after) = rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n"))
        {
            self.dispatch(Some(value), sink)?;
            return Ok(after);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(rest)
    }

    /// Ends an event. `data` contains all of its data; otherwise the copied data is used.
    fn dispatch(&mut self, data: Option<&[u8]>, sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8);
        let has_data = std::mem::take(&mut self.has_data);
        let told = match data.or(has_data.then_some(&self.data)) {
            Some(data) => sink(SseEvent { name: text(&self.name)?, data: text(data)? }),
            None => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        told
    }
}

#[cfg(test)]
mod tests;
