//! What the value of a name can be beside a secret.

/// The text in place of a secret.
pub(super) const MASK: &str = "***";

/// Words after the name of a secret that are none: those of a sentence, and types.
const PLAIN: [&str; 42] = [
    "a", "an", "and", "any", "are", "at", "bool", "boolean", "bytes", "can", "choose", "enter", "false",
    "for", "has", "i32", "i64", "in", "int", "is", "may", "minimum", "missing", "must", "no", "none", "not",
    "null", "number", "optional", "please", "required", "should", "str", "string", "text", "the", "true",
    "u32", "u64", "use", "your",
];

/// The beginnings of references to a secret that is elsewhere.
const REFERENCES: [&str; 4] = ["${", "$(", "{{", "%("];

/// The minimum digits of a number that is a secret.
const MIN_DIGITS: usize = 6;

pub(super) const SPACE: [char; 2] = [' ', '\t'];
pub(super) const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Whether a value is empty, masked already, or a reference to a secret that is elsewhere.
pub(super) fn is_elsewhere(value: &str) -> bool {
    value.is_empty() || value.starts_with(MASK) || REFERENCES.iter().any(|start| value.starts_with(start))
}

/// Whether a word in lower case is one of a sentence, or a type.
pub(super) fn is_plain(word: &str) -> bool {
    PLAIN.contains(&word)
}

/// Removes a quotation mark at the beginning, which may be escaped.
pub(super) fn unquoted(text: &str) -> &str {
    text.trim_start_matches('\\').strip_prefix(QUOTES).unwrap_or(text)
}

/// Whether a word has characters that the words of a sentence do not have, except for short numbers.
pub(super) fn has_signs(word: &str) -> bool {
    let is_number = word.len() < MIN_DIGITS && word.chars().all(|c| c.is_ascii_digit());
    let has_sign = word.chars().any(|c| !c.is_alphabetic() && !matches!(c, '-' | '\'' | '.' | '/' | '_'));
    has_sign && !is_number
}
