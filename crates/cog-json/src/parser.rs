//! Parsing JSON as it arrives.

mod build;
mod call;
mod drafts;
mod fragment;
mod machine;
mod markup;
mod opening;
mod reply;
mod scalar;
mod seek;
mod tolerance;

pub use self::tolerance::{Deviation, Tolerance};
use self::{machine::Machine, reply::Reply};
use crate::{
    error::{SyntaxError, SyntaxErrorKind},
    event::{Event, Limits},
    node::Node,
    value::Value,
};

/// A push parser: takes bytes in any split, emits events, and gives access to the draft at any time.
///
/// Time is linear in the input, memory is bounded by the [`Limits`], and there is no recursion. After an error the draft
/// can still be read, and more bytes return the same error.
pub struct Parser {
    machine: Machine,
    input: Input,
    /// Only in tolerant mode.
    reply: Option<Reply>,
    failed: Option<SyntaxError>,
}

/// The end of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The value is complete.
    Complete,
    /// The text ended inside the value; the draft contains what arrived.
    Truncated,
}

/// An error and its offset in the text.
type ErrorAt = (SyntaxErrorKind, usize);

impl Parser {
    /// Returns a parser that accepts exactly RFC 8259, within the limits.
    #[must_use]
    pub fn strict(limits: Limits) -> Parser {
        let limits = limits.addressable();
        Parser { machine: Machine::new(limits, false), input: Input::new(limits), reply: None, failed: None }
    }

    /// Returns a parser for what language models send (ruling R24). It also accepts text, reasoning and code fences
    /// around the document, trailing commas, single quotes, comments, control characters in strings, and Python's
    /// `None`, `True` and `False`. [`Parser::deviations`] lists each deviation.
    ///
    /// The document is the first object with a member in the reply, or the outermost array around that object. No
    /// event is emitted before the first key and colon. Brackets that do not open like an object or array are prose;
    /// what opens like one and cannot be read is an error (ruling R76). An empty object, an array without objects or
    /// a scalar is the document only if the reply contains nothing else but a fence; [`Parser::finish`] emits it.
    #[must_use]
    pub fn tolerant(limits: Limits) -> Parser {
        let limits = limits.addressable();
        let reply = Some(Reply::new(limits));
        Parser { machine: Machine::new(limits, true), input: Input::new(limits), reply, failed: None }
    }

    /// Emits the value of the key `wrapper` with the path of the root, so that paths start inside it, if it is the first
    /// key of the root. A member that follows shows that it was not a wrapper: its path has a first step, although a value
    /// at the root was complete before. The tree contains the document as it is; [`Parser::unwrapped_root`] returns what is
    /// inside.
    #[must_use]
    pub fn unwrapping(mut self, wrapper: &'static str) -> Parser {
        self.machine.wrapper = Some(wrapper);
        self
    }

    /// Parses the next bytes and passes the events to `sink`.
    ///
    /// # Errors
    /// When the text so far cannot be the start of a document, or exceeds a limit. Events before the error were
    /// emitted.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), SyntaxError> {
        self.feed(bytes, &mut Live(sink))
    }

    /// Ends the text. In tolerant mode an incomplete document is [`End::Truncated`], and its draft is not completed
    /// (ruling R25).
    ///
    /// # Errors
    /// When there is no document; in strict mode also when it is incomplete.
    pub fn finish(&mut self, sink: &mut impl FnMut(Event<'_>)) -> Result<End, SyntaxError> {
        self.end(&mut Live(sink))
    }

    /// Returns the document as far as it has arrived.
    #[must_use]
    pub fn root(&self) -> Option<Node<'_>> {
        self.machine.root()
    }

    /// Returns the value of the wrapper if it is an object and the only member of the document, otherwise the document,
    /// as far as it has arrived.
    #[must_use]
    pub fn unwrapped_root(&self) -> Option<Node<'_>> {
        self.root().map(|root| self.machine.unwrapped(root))
    }

    /// Returns the deviations from JSON so far. [`Parser::finish`] adds the text after the document.
    #[must_use]
    pub fn deviations(&self) -> &[Deviation] {
        self.machine.ledger.entries()
    }

    /// Returns whether the reply contains another object after the document. The caller must not choose one of them
    /// (ruling R25).
    #[must_use]
    pub fn has_second_object(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::has_second_object)
    }

    /// Returns whether a closing tag of reasoning may still retract all events and errors so far
    /// ([`EventKind::Retracted`](crate::EventKind::Retracted)).
    ///
    /// The templates of some reasoning models write `<think>` themselves, so that a reply begins with reasoning and
    /// shows only `</think>`. A document with text before it may be a draft in that reasoning until the reply is over;
    /// so long no error is reported either, and no second object counts. A document that the reply begins with is
    /// retracted by a closing tag too, but its faults are final (ruling R76).
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::is_tentative)
    }

    /// Returns the document as far as it has arrived, as an owned value.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.machine.root()?;
        Some(Value::from_tape(self.machine.tape))
    }

    /// Returns [`Parser::unwrapped_root`] as an owned value.
    #[must_use]
    pub fn into_unwrapped_value(self) -> Option<Value> {
        let index = self.unwrapped_root()?.index;
        Some(Value::from_tape_at(self.machine.tape, index))
    }

    /// Parses a complete document without events.
    pub(crate) fn one_shot(bytes: &[u8], limits: Limits) -> Result<Value, SyntaxError> {
        let mut parser = Parser::strict(limits);
        parser.machine.reserve(bytes);
        parser.feed(bytes, &mut Silent)?;
        parser.end(&mut Silent)?;
        Ok(parser.into_value().unwrap_or_default())
    }

    fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // Text before an encoding error is parsed first, so that the split does not matter.
        let taken = self.input.take(bytes, &mut self.machine.tape.text);
        let read = match &mut self.reply {
            Some(reply) => reply.run(&mut self.machine, sink),
            None => self.machine.run(sink),
        };
        read.and(taken).map_err(|error| self.fail(error))
    }

    fn end<S: Sink>(&mut self, sink: &mut S) -> Result<End, SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let ended = match &mut self.reply {
            Some(reply) => reply.finish(&mut self.machine, sink),
            None => match self.machine.finish(sink) {
                // After the value, the bytes of an incomplete character may be left.
                Ok(true) if self.input.is_complete() => Ok(End::Complete),
                Ok(_) => Err((SyntaxErrorKind::UnexpectedEnd, self.machine.tape.text.len())),
                Err(error) => Err(error),
            },
        };
        ended.map_err(|error| self.fail(error))
    }

    fn fail(&mut self, (kind, offset): ErrorAt) -> SyntaxError {
        // Kept, because the machine has stopped inside a token: parsing more would start from a state that no text leads to.
        let error = SyntaxError::new(kind, offset, &self.machine.tape.text);
        *self.failed.insert(error)
    }
}

// The receivers of events.

/// Receives events. With [`Silent`] the compiler removes the work for them.
trait Sink {
    const LIVE: bool;

    fn emit(&mut self, event: Event<'_>);
}

/// Passes events to a function.
struct Live<'f>(&'f mut dyn FnMut(Event<'_>));

impl Sink for Live<'_> {
    const LIVE: bool = true;

    fn emit(&mut self, event: Event<'_>) {
        (self.0)(event);
    }
}

/// Drops events.
struct Silent;

impl Sink for Silent {
    const LIVE: bool = false;

    fn emit(&mut self, _: Event<'_>) {}
}

// Parsing one document after another.

/// The memory that a reader retains between two documents, in bytes of their text.
const RETAINED: usize = 16 << 10;

/// Parses one document after another into the same memory, so that small documents allocate nothing.
///
/// It accepts exactly what [`Value::parse`](crate::Value::parse) accepts.
///
/// ```
/// use cog_json::{Limits, Reader};
///
/// let mut reader = Reader::new(Limits::default());
/// for text in [r#"{"n": 1}"#, r#"{"n": 2}"#] {
///     assert!(reader.read(text)?.get("n").is_some());
/// }
/// # Ok::<(), cog_json::SyntaxError>(())
/// ```
pub struct Reader {
    parser: Parser,
    limits: Limits,
}

impl Reader {
    /// Creates a reader for documents within `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = limits.addressable();
        Self { parser: Parser::strict(limits), limits }
    }

    /// Parses a complete document and drops the previous one.
    ///
    /// # Errors
    /// When the text is not JSON, or exceeds a limit.
    pub fn read(&mut self, text: &str) -> Result<Node<'_>, SyntaxError> {
        let parser = &mut self.parser;
        // A large document must not occupy its memory for as long as the reader lives.
        parser.machine.clear(RETAINED);
        parser.input = Input::new(self.limits);
        parser.failed = None;
        parser.machine.reserve(text.as_bytes());
        parser.feed(text.as_bytes(), &mut Silent)?;
        parser.end(&mut Silent)?;
        Ok(Node { tape: &self.parser.machine.tape, index: 0 })
    }
}

// Decoding bytes in any split to text.

/// Checks UTF-8 and the length, and buffers an incomplete character.
struct Input {
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
    /// The number of bytes that may still arrive.
    room: u64,
}

impl Input {
    fn new(limits: Limits) -> Self {
        Input { held: Vec::new(), room: limits.bytes }
    }

    /// Appends the valid bytes to `text` before it reports an error.
    fn take(&mut self, bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        // The bytes up to the limit are parsed, so that the draft is the same in any split.
        let fitting = bytes.get(..room).unwrap_or(bytes);
        self.room -= fitting.len() as u64;
        self.append(fitting, text)?;
        match fitting.len() == bytes.len() {
            true => Ok(()),
            false => Err((SyntaxErrorKind::TooLarge, text.len())),
        }
    }

    /// Whether no character is incomplete.
    fn is_complete(&self) -> bool {
        self.held.is_empty()
    }

    fn append(&mut self, mut bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        // A character needs at most three more bytes. The bytes after it are not copied into `held`.
        while !self.held.is_empty() {
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.held.push(byte);
            bytes = rest;
            let held = std::mem::take(&mut self.held);
            self.append_checked(&held, text)?;
        }
        self.append_checked(bytes, text)
    }

    fn append_checked(&mut self, bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        match str::from_utf8(bytes) {
            Ok(sound) => text.push_str(sound),
            Err(error) => {
                let (sound, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
                text.push_str(str::from_utf8(sound).unwrap_or_default());
                // Without a length the text only ends inside a character, whose other bytes may come in the next chunk.
                if error.error_len().is_some() {
                    return Err((SyntaxErrorKind::Utf8, text.len()));
                }
                self.held.extend_from_slice(rest);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod reader_tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn reads_each_document_as_value_parse_does() {
        let long = format!(r#"{{"long": "{}", "after": [1, {{}}]}}"#, "x".repeat(RETAINED * 3));
        let keys: String = (0..40).map(|key| format!(r#""k{key}": {key}, "#)).collect();
        let wide = format!(r#"{{{keys}"k1": "twice"}}"#);
        let texts = [
            r#"{"a": "\u00e9\n", "b": [1, 2.5e3, null], "a": "again"}"#,
            "",
            "[1, 2",
            "7",
            r#"{"a": }"#,
            &long,
            r#""\ud800""#,
            &wide,
            "[]",
            r#"{"e": "\"", "f": {"g": true}}"#,
            "[1,]",
        ];
        let mut reader = Reader::new(Limits::default());
        for text in texts.iter().chain(texts.iter().rev()) {
            match (reader.read(text), Value::parse(text)) {
                (Ok(node), Ok(value)) => {
                    assert_eq!(node.to_value(), value);
                    assert_eq!(node.to_string(), value.to_string());
                }
                (Err(found), Err(expected)) => assert_eq!(found, expected, "{text}"),
                (found, expected) => panic!("{text}: {:?}, {:?}", found.err(), expected.err()),
            }
        }
    }

    #[test]
    fn retains_little_after_a_large_document() {
        let mut reader = Reader::new(Limits::default());
        let large = format!("[{}0]", "0,".repeat(1 << 20));
        reader.read(&large).unwrap();
        reader.read("[]").unwrap();
        let tape = &reader.parser.machine.tape;
        assert!(tape.text.capacity() <= RETAINED && tape.entries.capacity() <= RETAINED);
    }
}
