//! Errors in JSON text.

use std::fmt;

/// An error in JSON text: its kind and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    kind: SyntaxErrorKind,
    offset: usize,
    found: Option<char>,
}

/// The kinds of syntax error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// The text starts with a byte order mark.
    #[error("expected JSON without a byte order mark")]
    ByteOrderMark,
    /// A comment, which JSON does not have.
    #[error("comments are not JSON")]
    Comment,
    /// A string contains a control character that must be escaped.
    #[error("control characters in a string must be escaped")]
    ControlCharacter,
    /// A backslash that starts no escape.
    #[error("expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")]
    Escape,
    /// A key without its colon.
    #[error("expected `:` after the key")]
    ExpectedColon,
    /// An array that neither goes on nor ends.
    #[error("expected `,` or `]`")]
    ExpectedCommaOrBracket,
    /// An object that neither goes on nor ends.
    #[error("expected `,` or `}}`")]
    ExpectedCommaOrBrace,
    /// A member without a key in double quotes.
    #[error("expected a key in double quotes")]
    ExpectedKey,
    /// A value is missing.
    #[error("expected a value")]
    ExpectedValue,
    /// In tolerant mode: an object that is a part of text that is not JSON.
    #[error("the object is a part of something that is not JSON")]
    Fragment,
    /// A number in a form that JSON does not have.
    #[error("not a JSON number")]
    Number,
    /// A typographic quote that opens again before it closes.
    #[error("a quote inside quotes of the same kind")]
    NestedQuote,
    /// No JSON value in a reply read in tolerant mode.
    #[error("found no JSON object")]
    Nothing,
    /// Half of a surrogate pair.
    #[error("half of a surrogate pair in an escape")]
    Surrogate,
    /// In tolerant mode: a reply whose only objects are drafts in reasoning, or in another tag, channel or marker.
    #[error("found no JSON object outside of reasoning")]
    OnlyReasoning,
    /// In tolerant mode: a reply whose only objects are the arguments of a tool call.
    #[error("found no JSON object outside of a tool call")]
    OnlyToolCall,
    /// More containers open than [`crate::Limits::depth`].
    #[error("too many containers inside each other")]
    TooDeep,
    /// More text than [`crate::Limits::bytes`].
    #[error("text too long")]
    TooLarge,
    /// More values than [`crate::Limits::nodes`].
    #[error("too many values")]
    TooMany,
    /// A comma with nothing after it.
    #[error("a comma before the end of an array or object")]
    TrailingComma,
    /// Text after the value.
    #[error("expected the end of the text")]
    TrailingText,
    /// The text ends inside the value, or before it.
    #[error("the text ends before the value does")]
    UnexpectedEnd,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8")]
    Utf8,
}

/// A line and column, counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Lines end with `\n`.
    pub line: usize,
    /// Unicode scalar values from the start of the line.
    pub column: usize,
}

impl SyntaxError {
    pub(crate) fn new(kind: SyntaxErrorKind, offset: usize, text: &str) -> Self {
        SyntaxError { kind, offset, found: text.get(offset..).and_then(|rest| rest.chars().next()) }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> SyntaxErrorKind {
        self.kind
    }

    /// Returns the byte offset from the start of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the line and column in the text that was parsed.
    #[must_use]
    pub fn position(&self, text: &str) -> Position {
        Position::from_offset(text, self.offset)
    }
}

impl Position {
    /// Returns the position of a byte offset; an offset past the end is the end.
    #[must_use]
    pub fn from_offset(text: &str, offset: usize) -> Self {
        let end = text.floor_char_boundary(offset);
        let before = text.get(..end).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before.get(line_start..).unwrap_or_default().chars().count();
        Position { line, column }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)?;
        match self.found {
            Some(found) => write!(f, ", found `{}`", found.escape_debug()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SyntaxError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "aé\n\nb";
        for (offset, line, column) in
            [(0, 1, 1), (1, 1, 2), (2, 1, 2), (3, 1, 3), (4, 2, 1), (5, 3, 1), (6, 3, 2), (99, 3, 2)]
        {
            assert_eq!(Position::from_offset(text, offset), Position { line, column }, "{offset}");
        }
    }
}
