//! Reading JSON as it arrives.

mod around;
mod build;
mod fragment;
mod input;
mod lenient;
mod machine;
mod number;
mod opening;
mod reader;
mod reply;
mod seek;
mod sink;
mod string;
mod tolerance;

use crate::error::{SyntaxError, SyntaxErrorKind};
use crate::event::Event;
use crate::limits::Limits;
use crate::node::Node;
use crate::value::Value;

use self::input::Input;
use self::machine::Machine;
use self::reply::Reply;
use self::sink::{Live, Silent, Sink};

pub use self::reader::Reader;
pub use self::tolerance::{Tolerance, Tolerated};

/// A push parser: feed it bytes in any split, take events, look at the draft whenever you like.
///
/// Time is linear in the input, memory is bounded by the [`Limits`], and there is no recursion. After an error the
/// parser stays as it is: the draft can be read, more bytes give the same error.
pub struct Parser {
    machine: Machine,
    input: Input,
    /// Only in tolerant mode.
    reply: Option<Reply>,
    failed: Option<SyntaxError>,
}

/// How a document ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The value is whole.
    Complete,
    /// The text was cut inside the value; the draft holds what arrived.
    Truncated,
}

/// What is wrong, and where in the text.
type Fault = (SyntaxErrorKind, usize);

impl Parser {
    /// A parser that takes exactly what RFC 8259 allows, within the limits.
    #[must_use]
    pub fn strict(limits: Limits) -> Parser {
        let limits = limits.addressable();
        Parser { machine: Machine::new(limits, false), input: Input::new(limits), reply: None, failed: None }
    }

    /// A parser for what language models send (ruling R24), each thing let pass being recorded
    /// ([`Parser::tolerated`]): text, reasoning and code fences around the document, trailing commas, single
    /// quotes, comments, line breaks and other control characters in strings, Python's `None`, `True`, `False`.
    ///
    /// The document is the first object with a member, or array of such, that the reply shows: nothing is told
    /// before its first key and colon, and what looks different at that point is prose. An array that the reply
    /// begins with may hold other things before that object. An empty object, an array without objects or a scalar
    /// is the document only if there is nothing else in the reply but a fence; it is told by [`Parser::finish`].
    #[must_use]
    pub fn tolerant(limits: Limits) -> Parser {
        let limits = limits.addressable();
        let (machine, reply) = (Machine::new(limits, true), Some(Reply::new(limits)));
        Parser { machine, input: Input::new(limits), reply, failed: None }
    }

    /// MediaCapabilities the next bytes and tells `sink` what they bring.
    ///
    /// # Errors
    /// When the text so far cannot be the start of a document, or crosses a limit. What came before the fault was
    /// told.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), SyntaxError> {
        self.feed(bytes, &mut Live(sink))
    }

    /// Says that no more bytes will come. In tolerant mode a document that was cut is [`End::Truncated`], and its
    /// draft stays as it is: nothing is completed (ruling R25).
    ///
    /// # Errors
    /// When there is no document; in strict mode also when it is not whole.
    pub fn finish(&mut self, sink: &mut impl FnMut(Event<'_>)) -> Result<End, SyntaxError> {
        self.end(&mut Live(sink))
    }

    /// The document as far as it has arrived.
    #[must_use]
    pub fn root(&self) -> Option<Node<'_>> {
        self.machine.root()
    }

    /// What was let pass so far; what stands after the document is told by [`Parser::finish`].
    #[must_use]
    pub fn tolerated(&self) -> &[Tolerated] {
        self.machine.ledger.entries()
    }

    /// Whether the reply holds another object after the document: who reads it must not choose (ruling R25).
    #[must_use]
    pub fn several(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::several)
    }

    /// Whether all that was told so far may still be withdrawn ([`EventKind::Withdrawn`](crate::EventKind::Withdrawn)).
    ///
    /// The templates of some reasoning models write `<think>` themselves, so that a reply begins with reasoning and
    /// shows only `</think>`. A document with text before it may be a draft in that reasoning until the reply is over;
    /// so long no fault is reported either, and no second object counts. A document that the reply begins with is
    /// withdrawn by a closing tag too, but its faults are final (ruling R76).
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::is_in_doubt)
    }

    /// The document as far as it has arrived, as a value of its own.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.machine.root()?;
        Some(Value::of_tape(self.machine.tape))
    }

    /// Reads a whole document with nobody listening.
    pub(crate) fn one_shot(bytes: &[u8], limits: Limits) -> Result<Value, SyntaxError> {
        let mut parser = Parser::strict(limits);
        parser.machine.reserve(bytes.len());
        parser.feed(bytes, &mut Silent)?;
        parser.end(&mut Silent)?;
        Ok(parser.into_value().unwrap_or_default())
    }

    fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // What stands before a fault in the encoding is read first, so that the split does not matter.
        let taken = self.input.take(bytes, &mut self.machine.tape.text);
        let read = match &mut self.reply {
            Some(reply) => reply.run(&mut self.machine, sink),
            None => self.machine.run(sink),
        };
        read.and(taken).map_err(|fault| self.fail(fault))
    }

    fn end<S: Sink>(&mut self, sink: &mut S) -> Result<End, SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let ended = match &mut self.reply {
            Some(reply) => reply.finish(&mut self.machine, sink),
            None => match self.machine.finish(sink) {
                Ok(true) if self.input.is_whole() => Ok(End::Complete),
                Ok(_) => Err((SyntaxErrorKind::UnexpectedEnd, self.machine.tape.text.len())),
                Err(fault) => Err(fault),
            },
        };
        ended.map_err(|fault| self.fail(fault))
    }

    fn fail(&mut self, (kind, offset): Fault) -> SyntaxError {
        let error = SyntaxError::new(kind, offset, &self.machine.tape.text);
        *self.failed.insert(error)
    }
}

#[cfg(test)]
mod tests;
