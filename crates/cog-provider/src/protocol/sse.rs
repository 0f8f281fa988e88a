//! Server-sent events, as the WHATWG's text has them, bounded.
//!
//! Lines end with CR, LF or CRLF, split anywhere; a byte order mark at the start, comments and unknown
//! fields are skipped; several `data` lines are joined by LF; an event without its blank line at the
//! end of the stream is dropped. Unlike there, bytes that are not UTF-8 are an error: a replacement
//! character inside an answer would be a silent change of it.

use super::DecodeError;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event: its name (empty if it has none) and its data.
pub(crate) struct SseEvent<'a> {
    pub(crate) name: &'a str,
    pub(crate) data: &'a str,
}

/// Where events go.
pub(crate) type EventSink<'a> = dyn FnMut(SseEvent<'_>) -> Result<(), DecodeError> + 'a;

/// A reader of events.
#[derive(Default)]
pub(crate) struct SseReader {
    /// The most bytes of an event.
    limit: usize,
    /// The line that is still arriving.
    line: Vec<u8>,
    /// The event that is still arriving.
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a CR: an LF right behind it belongs to it.
    after_cr: bool,
    past_first_line: bool,
}

impl SseReader {
    /// For events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// MediaCapabilities the next bytes, in any split.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, ending) = rest.split_at(end);
            self.keep(line)?;
            self.end_line(sink)?;
            rest = self.after_ending(ending);
        }
        self.keep(rest)
    }

    /// What follows a line ending; remembers a CR whose LF may still come.
    fn after_ending<'a>(&mut self, ending: &'a [u8]) -> &'a [u8] {
        self.after_cr = ending == b"\r";
        ending.strip_prefix(b"\r\n").or_else(|| ending.get(1..)).unwrap_or_default()
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(DecodeError::PieceTooLarge(self.limit));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let line = std::mem::take(&mut self.line);
        let text = match self.past_first_line {
            true => line.as_slice(),
            false => line.strip_prefix(BOM).unwrap_or(&line),
        };
        self.past_first_line = true;
        if text.is_empty() {
            self.dispatch(sink)?;
        } else {
            self.field(text);
        }
        self.line = line;
        self.line.clear();
        Ok(())
    }

    fn field(&mut self, line: &[u8]) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let field = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.name = value.to_vec(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            _ => {}
        }
    }

    fn dispatch(&mut self, sink: &mut EventSink<'_>) -> Result<(), DecodeError> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8);
        let told = match std::mem::take(&mut self.has_data) {
            true => sink(SseEvent { name: text(&self.name)?, data: text(&self.data)? }),
            false => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        told
    }
}

#[cfg(test)]
mod tests;
