//! Splits the bytes of a reply into frames, in whatever format the server uses.
//!
//! Requests specify a stream, but servers reply in various formats: events, one JSON body, or a web page. The first
//! byte that is not white space identifies the format.

use cog_json::{Node, Reader, SyntaxErrorKind, Value};
use memchr::memchr;

use super::{
    DecodeError,
    sse::{SseEvent, SseReader},
};

/// One frame of a reply: an event, a line or a body.
pub(crate) struct Frame<'a> {
    /// The event's name; empty for lines and bodies.
    pub(crate) event: &'a str,
    /// The text: JSON, or a marker of the protocol such as `[DONE]`.
    pub(crate) text: &'a str,
}

impl Frame<'_> {
    /// Parses the text as JSON, in the memory of `reader`.
    pub(crate) fn json<'a>(&self, reader: &'a mut Reader) -> Result<Node<'a>, DecodeError> {
        reader.read(self.text).map_err(|error| DecodeError::NotJson(error.to_string()))
    }
}

/// The callback that receives frames.
pub(crate) type FrameSink<'a> = dyn FnMut(Frame<'_>) -> Result<(), DecodeError> + 'a;

/// Splits a reply into frames.
pub(crate) struct Frames {
    form: Form,
    lines: bool,
    sse: SseReader,
    /// The part of a body, page or line received so far, or the first bytes of events.
    held: Vec<u8>,
    frames: usize,
    /// The maximum size of a frame, in bytes.
    limit: usize,
}

/// The detected format of the reply.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Unknown,
    Events,
    Lines,
    Body,
    Page,
}

/// The number of bytes of a page or other invalid text that are retained for the error message.
const SHOWN: usize = 512;

impl Frames {
    /// Creates a splitter for a protocol that streams server-sent events.
    pub(crate) fn events(limit: usize) -> Self {
        let sse = SseReader::new(limit);
        Self { form: Form::Unknown, lines: false, sse, held: Vec::new(), frames: 0, limit }
    }

    /// Creates a splitter for a protocol that streams one JSON object per line.
    pub(crate) fn lines(limit: usize) -> Self {
        Self { lines: true, ..Self::events(limit) }
    }

    /// Reads the next bytes, split at any position.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        let bytes = if self.form == Form::Unknown { self.recognise(bytes) } else { bytes };
        match self.form {
            Form::Unknown => Ok(()),
            Form::Events => self.push_events(bytes, sink),
            Form::Lines => self.push_lines(bytes, sink),
            Form::Body => self.hold(bytes),
            Form::Page => self.push_page(bytes),
        }
    }

    /// Reads the end of the reply. A reply that is one body is emitted here.
    pub(crate) fn finish(&mut self, sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        let held = std::mem::take(&mut self.held);
        match self.form {
            Form::Unknown => Err(DecodeError::Empty),
            Form::Page => Err(web_page(&held)),
            Form::Events if self.frames == 0 => Err(no_events(&held)),
            Form::Events => Ok(()),
            Form::Lines if held.trim_ascii().is_empty() => Ok(()),
            Form::Lines | Form::Body => {
                let text = std::str::from_utf8(&held).map_err(|_| DecodeError::NotUtf8)?;
                match Value::parse(text) {
                    Err(error) if error.kind() == SyntaxErrorKind::UnexpectedEnd => {
                        Err(DecodeError::Incomplete)
                    }
                    _ => sink(Frame { event: "", text }),
                }
            }
        }
    }

    /// Detects the format from the first significant byte, and returns the bytes that are still to be read.
    fn recognise<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let skipped = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
        let start = bytes.iter().take_while(|byte| skipped(byte)).count();
        let rest = bytes.get(start..).unwrap_or_default();
        self.form = match rest.first() {
            None => Form::Unknown,
            Some(b'<') => Form::Page,
            Some(b'{' | b'[') if self.lines => Form::Lines,
            Some(b'{' | b'[') => Form::Body,
            Some(_) => Form::Events,
        };
        rest
    }

    fn push_events(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        if self.frames == 0 {
            self.show(bytes);
        }
        let frames = &mut self.frames;
        self.sse.push(bytes, &mut |SseEvent { name, data }| {
            *frames += 1;
            sink(Frame { event: name, text: data })
        })
    }

    fn push_lines(&mut self, bytes: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, ending) = rest.split_at(end);
            match self.held.is_empty() {
                true => self.line(line, sink)?,
                false => {
                    self.hold(line)?;
                    let mut line = std::mem::take(&mut self.held);
                    self.line(&line, sink)?;
                    line.clear();
                    self.held = line;
                }
            }
            rest = ending.get(1..).unwrap_or_default();
        }
        self.hold(rest)
    }

    fn line(&mut self, line: &[u8], sink: &mut FrameSink<'_>) -> Result<(), DecodeError> {
        if line.len() > self.limit {
            return Err(DecodeError::FrameTooLarge(self.limit));
        }
        let text = std::str::from_utf8(line).map_err(|_| DecodeError::NotUtf8)?.trim();
        if text.is_empty() {
            return Ok(());
        }
        self.frames += 1;
        sink(Frame { event: "", text })
    }

    fn push_page(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.show(bytes);
        if self.held.len() < SHOWN { Ok(()) } else { Err(web_page(&self.held)) }
    }

    /// Retains the beginning of the reply for an error message.
    fn show(&mut self, bytes: &[u8]) {
        let room = SHOWN.saturating_sub(self.held.len());
        self.held.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.held.len() + bytes.len() > self.limit {
            return Err(DecodeError::FrameTooLarge(self.limit));
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns the error for a reply without events: an incomplete event, or a different kind of text.
fn no_events(held: &[u8]) -> DecodeError {
    let known = [b":".as_slice(), b"data", b"event", b"id", b"retry"];
    match known.iter().any(|field| held.starts_with(field) || field.starts_with(held)) {
        true => DecodeError::Incomplete,
        false => DecodeError::NotJson(format!("it begins with `{}`", first_words(held))),
    }
}

/// Describes a page by its title, or otherwise by its first words.
fn web_page(held: &[u8]) -> DecodeError {
    let text = String::from_utf8_lossy(held);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let title = text.get(start + "<title>".len()..)?;
        title.split('<').next()
    });
    DecodeError::WebPage(first_words(title.unwrap_or(&text).as_bytes()))
}

fn first_words(held: &[u8]) -> String {
    String::from_utf8_lossy(held).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect()
}

#[cfg(test)]
mod tests;
