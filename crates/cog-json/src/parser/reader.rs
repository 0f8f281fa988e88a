//! Parsing one document after another.

use crate::{
    error::{SyntaxError, SyntaxErrorKind},
    event::Limits,
    node::Node,
    parser::{ErrorAt, Parser, Silent},
};

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
pub(super) struct Input {
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
    /// The number of bytes that may still arrive.
    room: u64,
}

impl Input {
    pub(super) fn new(limits: Limits) -> Self {
        Input { held: Vec::new(), room: limits.bytes }
    }

    /// Appends the valid bytes to `text` before it reports an error.
    pub(super) fn take(&mut self, bytes: &[u8], text: &mut String) -> Result<(), ErrorAt> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let fitting = bytes.get(..room).unwrap_or(bytes);
        self.room -= fitting.len() as u64;
        self.append(fitting, text)?;
        match fitting.len() == bytes.len() {
            true => Ok(()),
            false => Err((SyntaxErrorKind::TooLarge, text.len())),
        }
    }

    /// Whether no character is incomplete.
    pub(super) fn is_complete(&self) -> bool {
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
mod tests {
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
