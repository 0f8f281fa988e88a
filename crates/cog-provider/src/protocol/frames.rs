//! From bytes to the pieces of a reply, whatever form the vendor chose for it.
//!
//! A reply is asked for as a stream, yet servers answer as they like: with events, with one JSON body,
//! with a web page. The first byte that is no white space tells which.

use cog_json::{Node, Reader, SyntaxErrorKind, Value};
use memchr::memchr;

use super::{
    DecodeError,
    sse::{SseEvent, SseReader},
};

/// One piece of a reply.
pub(crate) struct Frame<'a> {
    /// The event's name; empty for lines and bodies.
    pub(crate) event: &'a str,
    /// The text: JSON, or a protocol's own mark such as `[DONE]`.
    pub(crate) text: &'a str,
}

impl Frame<'_> {
    /// The text as JSON, in the memory of `reader`.
    pub(crate) fn json<'a>(&self, reader: &'a mut Reader) -> Result<Node<'a>, DecodeError> {
        reader.read(self.text).map_err(|error| DecodeError::NotJson(error.to_string()))
    }
}

/// Where pieces go.
pub(crate) type FrameSink<'a> = dyn FnMut(Frame<'_>) -> Result<(), DecodeError> + 'a;

/// Cuts a reply into its pieces.
pub(crate) struct Frames {
    form: Form,
    lines: bool,
    sse: SseReader,
    /// A body, a page or a line that is still arriving; the first bytes of events.
    held: Vec<u8>,
    frames: usize,
    /// The most bytes of a piece.
    limit: usize,
}

/// What the reply turned out to be.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Unknown,
    Events,
    Lines,
    Body,
    Page,
}

/// How much of a page, or of a text that is no reply, is kept for the message about it.
const SHOWN: usize = 512;

impl Frames {
    /// For a protocol that streams server-sent events.
    pub(crate) fn events(limit: usize) -> Self {
        let sse = SseReader::new(limit);
        Self { form: Form::Unknown, lines: false, sse, held: Vec::new(), frames: 0, limit }
    }

    /// For a protocol that streams a JSON object a line.
    pub(crate) fn lines(limit: usize) -> Self {
        Self { lines: true, ..Self::events(limit) }
    }

    /// MediaCapabilities the next bytes, in any split.
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

    /// MediaCapabilities the end of the reply. A reply that is one body is told here.
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
                    Err(error) if error.kind() == SyntaxErrorKind::UnexpectedEnd => Err(DecodeError::Cut),
                    _ => sink(Frame { event: "", text }),
                }
            }
        }
    }

    /// Finds the form by the first byte that says something; gives what is left to read.
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
            return Err(DecodeError::PieceTooLarge(self.limit));
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

    /// Holds the beginning of the reply, for a message about it.
    fn show(&mut self, bytes: &[u8]) {
        let room = SHOWN.saturating_sub(self.held.len());
        self.held.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.held.len() + bytes.len() > self.limit {
            return Err(DecodeError::PieceTooLarge(self.limit));
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }
}

/// Events were expected and none came: was there a beginning of one, or another kind of text?
fn no_events(held: &[u8]) -> DecodeError {
    let known = [b":".as_slice(), b"data", b"event", b"id", b"retry"];
    match known.iter().any(|field| held.starts_with(field) || field.starts_with(held)) {
        true => DecodeError::Cut,
        false => DecodeError::NotJson(format!("it begins with `{}`", first_words(held))),
    }
}

/// Names a page by its title, else by its first words.
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
