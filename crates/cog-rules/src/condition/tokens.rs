//! Splits a condition into tokens.

use std::ops::Range;

use cog_json::Value;
use cog_schema::nearest;

use super::{Comparison, Content, Function, Literal};
use crate::{
    cursor::{Cursor, TextError},
    path::{AnyPath, ListPath},
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
    /// A path to several values.
    List(ListPath),
    Comparison(Comparison),
    And,
    Or,
    Not,
    /// The name of a function, before its `(`.
    Call(Function),
    Open,
    Close,
    Comma,
    Plus,
    Minus,
    Times,
    Over,
}

impl Kind {
    /// Returns whether a value ends here, so that a sign after it is an operator.
    const fn ends_value(&self) -> bool {
        matches!(self, Kind::Operand(_) | Kind::List(_) | Kind::Close)
    }
}

/// The operators; longer ones are before their beginnings.
const SIGNS: [(&str, Kind); 14] = [
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
    (",", Kind::Comma),
    ("*", Kind::Times),
    ("/", Kind::Over),
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
        let is_after_value = tokens.last().is_some_and(|token: &Token| token.kind.ends_value());
        let kind = kind(&mut cursor, is_after_value)?;
        tokens.push(Token { range: cursor.since(start), kind });
    }
}

fn kind(cursor: &mut Cursor<'_>, is_after_value: bool) -> Result<Kind, TextError> {
    if let Some(path) = AnyPath::read(cursor) {
        return Ok(match path? {
            AnyPath::List(path) => Kind::List(path),
            AnyPath::Value(mut path) => {
                let is_length = path.strip_last("length");
                Kind::Operand(if is_length { Content::Length(path) } else { Content::Path(path) })
            }
        });
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
    let is_number = cursor.rest().get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if (is_after_value || !is_number) && cursor.take("-") {
        return Ok(Kind::Minus);
    }
    if (is_after_value || !is_number) && cursor.take("+") {
        return Ok(Kind::Plus);
    }
    word(cursor)
}

fn literal(value: Value) -> Kind {
    Kind::Operand(Content::Literal(Literal::new(value)))
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

/// Reads a number, a keyword or the name of a function.
fn word(cursor: &mut Cursor<'_>) -> Result<Kind, TextError> {
    let start = cursor.at();
    if cursor.peek().is_some_and(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return number(cursor, start);
    }
    let name = cursor.clone().take_while(|c| c.is_alphanumeric() || c == '_');
    let is_call = cursor.rest().get(name.len()..).unwrap_or_default().trim_start().starts_with('(');
    match Function::from_name(name) {
        Some(function) if is_call || function == Function::Exists => {
            cursor.skip(name.len());
            return Ok(Kind::Call(function));
        }
        None if is_call && !name.is_empty() => {
            let range = start..start + name.len();
            return Err(unknown_function(name, range));
        }
        _ => {}
    }
    let text = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
    match Value::parse(text) {
        _ if text.is_empty() => Err(unexpected(cursor)),
        Ok(value) => Ok(literal(value)),
        Err(_) => Err(bare_word(text, cursor.since(start))),
    }
}

fn number(cursor: &mut Cursor<'_>, start: usize) -> Result<Kind, TextError> {
    let _ = cursor.take("-") || cursor.take("+");
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    cursor.take_while(is_part);
    // The sign of an exponent belongs to the number.
    let is_power = cursor.text(cursor.since(start)).ends_with(['e', 'E']);
    if is_power && (cursor.take("-") || cursor.take("+")) {
        cursor.take_while(is_part);
    }
    let range = cursor.since(start);
    match Value::parse(cursor.text(range.clone())) {
        Ok(value) => Ok(literal(value)),
        Err(_) => {
            let error = TextError::new(range, "not a valid number");
            Err(error.suggest("Write a number as in JSON: `0.8`, `-1`, `2e3`."))
        }
    }
}

fn unknown_function(name: &str, range: Range<usize>) -> TextError {
    let shown: String = name.chars().take(40).collect();
    let error = TextError::new(range, format!("unknown function `{shown}`"));
    match Function::synonym(name).or_else(|| nearest(name, Function::names())) {
        Some(near) => error.suggest(format!("Write `{near}(…)`.")),
        None => {
            error.suggest(format!("The functions are {}.", Function::names().collect::<Vec<_>>().join(", ")))
        }
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
