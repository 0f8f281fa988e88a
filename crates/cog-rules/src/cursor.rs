//! Reads the tokens that conditions and paths have in common.

use std::ops::Range;

/// A position in text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// An error at a range of a condition or a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TextError {
    /// The byte range in the text.
    pub range: Range<usize>,
    /// What was found.
    pub message: String,
    /// What to write.
    pub suggestion: Option<String>,
}

impl TextError {
    /// Creates an error.
    pub fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { range, message: message.into(), suggestion: None }
    }

    /// Adds what to write.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the beginning of the text.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the byte offset.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Returns the text that is left.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns a part of the text.
    pub fn text(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the next character.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Moves over a number of bytes, at most to the end.
    pub fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    /// Moves over this text, if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.skip(text.len());
        }
        is_next
    }

    /// Moves over the characters of a kind, and returns them.
    pub fn take_while(&mut self, is_kind: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_kind(c)).unwrap_or(rest.len());
        self.skip(length);
        rest.get(..length).unwrap_or_default()
    }

    /// Moves over white space.
    pub fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Returns the range from `start` to here.
    pub const fn since(&self, start: usize) -> Range<usize> {
        start..self.at
    }

    /// Returns the range of the next character; empty at the end.
    pub fn next_range(&self) -> Range<usize> {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    /// Reads a string in single or double quotes, if one is next.
    ///
    /// # Errors
    /// When it is not closed, or has an unknown escape.
    pub fn string(&mut self) -> Option<Result<String, TextError>> {
        let quote = self.peek().filter(|c| matches!(c, '"' | '\''))?;
        let start = self.at;
        self.skip(1);
        let mut string = String::new();
        loop {
            let before = self.at;
            match self.next_char() {
                None => {
                    return Some(Err(TextError::new(start..start + 1, "the string is not closed")
                        .suggest(format!("Add `{quote}` at its end."))));
                }
                Some(c) if c == quote => return Some(Ok(string)),
                Some('\\') => match self.escape() {
                    Some(c) => string.push(c),
                    None => {
                        let error = TextError::new(self.since(before), "unknown escape in a string");
                        return Some(Err(error.suggest("Write `\\\\` for a backslash.")));
                    }
                },
                Some(c) => string.push(c),
            }
        }
    }

    /// Reads an integer with an optional sign, if one is next.
    pub fn integer(&mut self) -> Option<&'a str> {
        let length = usize::from(self.rest().starts_with('-'));
        let digits = self.rest().get(length..)?.bytes().take_while(u8::is_ascii_digit).count();
        let text = self.rest().get(..length + digits)?;
        (digits > 0).then(|| self.skip(text.len())).map(|()| text)
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    /// Reads an escape of JSON after its backslash; also `\'`.
    fn escape(&mut self) -> Option<char> {
        Some(match self.next_char()? {
            c @ ('"' | '\'' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode()?,
            _ => return None,
        })
    }

    fn unicode(&mut self) -> Option<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        let low = self.take("\\u").then(|| self.hex())??;
        let offset = low.checked_sub(0xdc00).filter(|offset| *offset < 0x400)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + offset)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.skip(4);
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_have_the_escapes_of_json() {
        for (text, expected) in
            [(r#""a\n\"b\"""#, "a\n\"b\""), (r"'it\'s \u00e9 \ud83d\ude00'", "it's é 😀"), ("''", "")]
        {
            assert_eq!(Cursor::new(text).string(), Some(Ok(expected.to_owned())), "{text}");
        }
    }

    #[test]
    fn rejects_open_strings_and_unknown_escapes() {
        for text in ["\"a", "'a\\", r#""\x""#, r#""\ud800""#, r#""\u00""#] {
            assert!(Cursor::new(text).string().unwrap().is_err(), "{text}");
        }
    }
}
