//! Parsing one document after another.

use crate::error::SyntaxError;
use crate::limits::Limits;
use crate::node::Node;
use crate::parser::Parser;
use crate::parser::input::Input;
use crate::parser::sink::Silent;

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
        parser.machine.clear(RETAINED);
        parser.input = Input::new(self.limits);
        parser.failed = None;
        parser.machine.reserve(text.as_bytes());
        parser.feed(text.as_bytes(), &mut Silent)?;
        parser.end(&mut Silent)?;
        Ok(Node { tape: &self.parser.machine.tape, index: 0 })
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
