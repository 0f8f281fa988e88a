//! The quotes around strings.

use crate::scan::{self, string_run};

/// The kind of quotes around a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    /// Typographic quotes that begin with this character.
    Smart(char),
}

impl Quote {
    /// Returns the typographic quote that `char` opens.
    pub(super) fn smart(char: char) -> Option<Self> {
        matches!(char, '“' | '”' | '„' | '‘' | '’' | '‚').then_some(Quote::Smart(char))
    }

    /// Returns the length of the opening quote.
    pub(super) fn len(self) -> usize {
        match self {
            Quote::Double | Quote::Single => 1,
            Quote::Smart(open) => open.len_utf8(),
        }
    }

    /// Returns the first offset from `from` on that is not plain text.
    pub(super) fn run(self, bytes: &[u8], from: usize) -> usize {
        match self {
            Quote::Double => string_run::<b'"'>(bytes, from),
            Quote::Single => string_run::<b'\''>(bytes, from),
            // The first byte of each typographic quote.
            Quote::Smart(_) => {
                scan::position(bytes, from, |&byte| byte == 0xe2 || byte == b'\\' || byte.is_ascii_control())
            }
        }
    }

    /// Returns what `rest` of a text begins with. The reader has handled an escape.
    pub(super) fn mark(self, rest: &str) -> Mark {
        match (self, rest.as_bytes().first().copied().unwrap_or_default()) {
            (Quote::Double, b'"') | (Quote::Single, b'\'') => Mark::Closing,
            (_, 0..b' ') => Mark::Control,
            (Quote::Smart(open), _) => smart_mark(open, rest.chars().next().unwrap_or_default()),
            _ => Mark::Text(1),
        }
    }
}

/// Returns what `char` is in a string that the typographic quote `open` opens.
fn smart_mark(open: char, char: char) -> Mark {
    match (open, char) {
        ('„', '“' | '”') | ('“' | '”', '”') => Mark::Closing,
        ('‚', '‘' | '’') | ('‘' | '’', '’') => Mark::Closing,
        _ if char == open => Mark::Nested,
        _ => Mark::Text(char.len_utf8()),
    }
}

/// What interrupts plain text, except an escape.
pub(super) enum Mark {
    Closing,
    /// The opening quote again: it is unclear which quote closes the string.
    Nested,
    Control,
    /// A character of the text, of this length.
    Text(usize),
}
