//! Parses a condition by the binding powers of its operators.

use std::{ops::Range, vec::IntoIter};

use cog_json::Value;

use super::{Comparison, Content, Expression, Operand};
use crate::{
    cursor::{Cursor, TextError},
    path::ValuePath,
};

/// The maximum length of a condition, in bytes.
pub(super) const MAX_LENGTH: usize = 4096;
/// The maximum nesting of parentheses and negations.
const MAX_DEPTH: usize = 32;

/// How strongly the operators bind their operands.
const OR: u8 = 1;
const AND: u8 = 2;

/// Parses a complete condition.
pub(super) fn parse(text: &str) -> Result<Expression, TextError> {
    if text.len() > MAX_LENGTH {
        let message = format!("the condition has {} bytes; the maximum is {MAX_LENGTH}", text.len());
        return Err(TextError::new(0..0, message).suggest("Split it into several steps or rules."));
    }
    let end = text.trim_end().len();
    let mut parser = Parser { tokens: tokens(text)?.into_iter(), end: end..end };
    let expression = parser.expression(0, 0)?;
    match parser.tokens.next() {
        None => Ok(expression),
        Some(Token { range, kind: Kind::Close }) => Err(TextError::new(range, "this `)` closes nothing")),
        Some(token) => Err(TextError::new(token.range, "expected `&&`, `||` or a comparison")),
    }
}

struct Parser {
    tokens: IntoIter<Token>,
    /// The range for an error at the end.
    end: Range<usize>,
}

impl Parser {
    /// Parses operators that bind more strongly than `min`.
    fn expression(&mut self, min: u8, depth: usize) -> Result<Expression, TextError> {
        let mut left = self.prefix(depth)?;
        loop {
            let power = match self.peek() {
                Some(Kind::Or) => OR,
                Some(Kind::And) => AND,
                _ => return Ok(left),
            };
            if power <= min {
                return Ok(left);
            }
            self.tokens.next();
            let right = self.expression(power, depth)?;
            left = if power == OR { any(left, right) } else { all(left, right) };
        }
    }

    /// Parses a negation, a group, `exists`, or an operand with its comparison.
    fn prefix(&mut self, depth: usize) -> Result<Expression, TextError> {
        let Some(Token { range, kind }) = self.tokens.next() else {
            return Err(TextError::new(self.end.clone(), "the condition ends here; expected a value"));
        };
        if depth >= MAX_DEPTH && matches!(kind, Kind::Not | Kind::Open) {
            return Err(TextError::new(range, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        match kind {
            Kind::Not => self.negation(depth),
            Kind::Open => {
                let inner = self.expression(0, depth + 1)?;
                self.close(range)?;
                self.refuse_comparison().map(|()| inner)
            }
            Kind::Exists => self.exists(range),
            Kind::Operand(content) => self.comparison(Operand { range, content }),
            Kind::Close => Err(TextError::new(range, "expected a value before `)`")),
            Kind::And | Kind::Or | Kind::Comparison(_) => {
                Err(TextError::new(range, "expected a value before this operator"))
            }
        }
    }

    /// Parses what `!` negates: a group, `exists`, a negation or a value, but no comparison.
    fn negation(&mut self, depth: usize) -> Result<Expression, TextError> {
        let is_value = matches!(self.peek(), Some(Kind::Operand(_)));
        let inner = self.prefix(depth + 1)?;
        match inner {
            Expression::Compare(left, ..) if is_value => {
                Err(TextError::new(left.range, "`!` negates a value, not a comparison")
                    .suggest("Write `!(…)` around the comparison."))
            }
            inner => Ok(Expression::Not(Box::new(inner))),
        }
    }

    fn exists(&mut self, name: Range<usize>) -> Result<Expression, TextError> {
        let form =
            |range| TextError::new(range, "expected a path in parentheses").suggest("Write `exists($.x)`.");
        let Some(Token { range: open, kind: Kind::Open }) = self.tokens.next() else {
            return Err(form(name));
        };
        match self.tokens.next() {
            Some(Token { range, kind: Kind::Operand(content) })
                if !matches!(content, Content::Literal(_)) =>
            {
                self.close(open)?;
                Ok(Expression::Exists(Operand { range, content }))
            }
            Some(token) => Err(form(token.range)),
            None => Err(form(open)),
        }
    }

    fn comparison(&mut self, left: Operand) -> Result<Expression, TextError> {
        let Some(Kind::Comparison(comparison)) = self.peek() else { return truth(left) };
        let comparison = *comparison;
        self.tokens.next();
        let right = match self.tokens.next() {
            Some(Token { range, kind: Kind::Operand(content) }) => Operand { range, content },
            Some(token) => return Err(TextError::new(token.range, "expected a value after the comparison")),
            None => return Err(TextError::new(self.end.clone(), "expected a value after the comparison")),
        };
        self.refuse_comparison()?;
        Ok(Expression::Compare(left, comparison, right))
    }

    fn refuse_comparison(&self) -> Result<(), TextError> {
        match self.tokens.as_slice().first() {
            Some(Token { range, kind: Kind::Comparison(_) }) => {
                Err(TextError::new(range.clone(), "comparisons cannot follow each other")
                    .suggest("Join them with `&&`: `$.x > 1 && $.x < 5`."))
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, open: Range<usize>) -> Result<(), TextError> {
        match self.tokens.next() {
            Some(Token { kind: Kind::Close, .. }) => Ok(()),
            Some(token) => Err(TextError::new(token.range, "expected `)`, `&&`, `||` or a comparison")),
            None => Err(TextError::new(open, "this `(` is not closed")),
        }
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.as_slice().first().map(|token| &token.kind)
    }
}

/// Returns a value that is a condition by itself.
fn truth(operand: Operand) -> Result<Expression, TextError> {
    match &operand.content {
        Content::Literal(value) if value.as_bool().is_none() => {
            Err(TextError::new(operand.range, "this value is neither true nor false")
                .suggest("Compare it: `$.x == 'text'`."))
        }
        Content::Length(_) => Err(TextError::new(operand.range, "a length is neither true nor false")
            .suggest("Write `$.x.length > 0`.")),
        _ => Ok(Expression::Truth(operand)),
    }
}

fn any(left: Expression, right: Expression) -> Expression {
    match left {
        Expression::Any(mut all) => {
            all.push(right);
            Expression::Any(all)
        }
        left => Expression::Any(vec![left, right]),
    }
}

fn all(left: Expression, right: Expression) -> Expression {
    match left {
        Expression::All(mut all) => {
            all.push(right);
            Expression::All(all)
        }
        left => Expression::All(vec![left, right]),
    }
}

// Splits a condition into tokens.

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
