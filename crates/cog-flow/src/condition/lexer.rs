//! Splits a condition into tokens.

use std::ops::Range;

use cog_json::Value;

use super::expression::{Comparison, Content};
use crate::{
    cursor::{Cursor, TextError},
    value_path::ValuePath,
};

/// A token and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Operand(Content),
    Comparison(Comparison),
    And,
    Or,
    Not,
    Exists,
    Open,
    Close,
}

/// The operators; longer ones are before their beginnings.
const SIGNS: [(&str, Kind); 11] = [
    ("&&", Kind::And),
    ("||", Kind::Or),
    ("==", Kind::Comparison(Comparison::Equal)),
    ("!=", Kind::Comparison(Comparison::NotEqual)),
    ("<=", Kind::Comparison(Comparison::LessOrEqual)),
    (">=", Kind::Comparison(Comparison::GreaterOrEqual)),
    ("<", Kind::Comparison(Comparison::Less)),
    (">", Kind::Comparison(Comparison::Greater)),
    ("!", Kind::Not),
    ("(", Kind::Open),
    (")", Kind::Close),
];

/// What authors write for an operator.
const SYNONYMS: [(&str, &str); 8] = [
    ("===", "=="),
    ("!==", "!="),
    ("=", "=="),
    ("&", "&&"),
    ("|", "||"),
    ("and", "&&"),
    ("or", "||"),
    ("not", "!"),
];

/// Returns the tokens of a condition.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, TextError> {
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    loop {
        cursor.skip_space();
        if cursor.is_at_end() {
            return Ok(tokens);
        }
        let start = cursor.at();
        let kind = kind(&mut cursor)?;
        tokens.push(Token { range: cursor.since(start), kind });
    }
}

fn kind(cursor: &mut Cursor<'_>) -> Result<Kind, TextError> {
    if let Some(path) = ValuePath::read(cursor) {
        let mut path = path?;
        let is_length = path.strip_last("length");
        let content = if is_length { Content::Length(path) } else { Content::Path(path) };
        return Ok(Kind::Operand(content));
    }
    if let Some(string) = cursor.string() {
        return Ok(literal(Value::from(serde_json::Value::from(string?))));
    }
    if let Some(error) = synonym(cursor) {
        return Err(error);
    }
    if let Some((sign, kind)) = SIGNS.iter().find(|(sign, _)| cursor.rest().starts_with(sign)) {
        cursor.skip(sign.len());
        return Ok(kind.clone());
    }
    word(cursor)
}

fn literal(value: Value) -> Kind {
    Kind::Operand(Content::Literal(value))
}

/// Returns the error for an operator of another language.
fn synonym(cursor: &Cursor<'_>) -> Option<TextError> {
    let word = cursor.clone().take_while(|c| c.is_alphanumeric() || c == '_');
    let signs = cursor.clone().take_while(|c| matches!(c, '=' | '!' | '&' | '|'));
    let found = if word.is_empty() { signs } else { word };
    let (found, right) = SYNONYMS.iter().find(|(synonym, _)| found.eq_ignore_ascii_case(synonym))?;
    let range = cursor.at()..cursor.at() + found.len();
    Some(TextError::new(range, format!("unknown operator `{found}`")).suggest(format!("Write `{right}`.")))
}

/// Reads a number, a keyword or `exists`.
fn word(cursor: &mut Cursor<'_>) -> Result<Kind, TextError> {
    let start = cursor.at();
    let text = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
    let range = cursor.since(start);
    match text {
        "exists" => return Ok(Kind::Exists),
        "" => return Err(unexpected(cursor)),
        _ => {}
    }
    match Value::parse(text) {
        Ok(value) => Ok(literal(value)),
        Err(_) if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            let error = TextError::new(range, "not a valid number");
            Err(error.suggest("Write a number as in JSON: `0.8`, `-1`, `2e3`."))
        }
        Err(_) => Err(bare_word(text, range)),
    }
}

fn bare_word(text: &str, range: Range<usize>) -> TextError {
    let shown: String = text.chars().take(40).collect();
    let error = TextError::new(range, format!("unknown word `{shown}`"));
    match shown.to_ascii_lowercase().as_str() {
        lower @ ("true" | "false" | "null") => error.suggest(format!("Write `{lower}`.")),
        "none" | "nil" | "undefined" => error.suggest("Write `null`, or `!exists($.x)`."),
        "length" | "len" | "size" | "count" => error.suggest("Write `$.x.length`."),
        _ if text.contains('.') => error.suggest(format!("Write `$.{shown}` for a value.")),
        _ => error.suggest(format!("Write `'{shown}'` for a string, or `$.{shown}` for a value.")),
    }
}

fn unexpected(cursor: &Cursor<'_>) -> TextError {
    let shown = cursor.peek().unwrap_or_default().escape_debug();
    TextError::new(cursor.next_range(), format!("unexpected character `{shown}`"))
}
