//! Conditions: `$.meta.confidence >= 0.8 && !exists($.data.error)` (docs/spec/composition.md).
//!
//! A condition is parsed once, when the manifest is checked. It compares single values with each other and with literals;
//! nothing else can be written, so that evaluating it is linear in its length.

mod parser;
mod values;

use std::{
    cmp::Ordering,
    fmt,
    ops::{Bound, Range},
};

use cog_json::{Kind, Node};

use self::values::Interval;
pub use self::values::{Cases, Decimal, KnownValues, Values};
use crate::{cursor::TextError, path::ValuePath};

/// A parsed condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    root: Expression,
}

impl Condition {
    /// Parses a condition of at most 4,096 bytes.
    ///
    /// # Errors
    /// The first error, at its range.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        Ok(Self { root: parser::parse(text)?, text: text.to_owned() })
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the condition is true for a document, which its `$` is. No document is an error: values of other
    /// types than expected compare as unequal.
    pub fn is_true(&self, document: Node<'_>) -> bool {
        evaluate(&self.root, document)
    }

    /// Returns the parts.
    pub fn root(&self) -> &Expression {
        &self.root
    }
}

// Describes sets of values in messages.

/// The maximum number of strings that a message lists.
const MAX_LISTED: usize = 12;
/// The maximum number of characters of each.
const MAX_CHARS: usize = 40;

impl fmt::Display for Values {
    /// `'low' or 'high'`, `a number from 0 to 1 or null`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.strings();
        words.extend(self.numbers.intervals().iter().map(numbers));
        words.extend(self.names().map(str::to_owned));
        f.write_str(&words.join(" or "))
    }
}

impl Values {
    fn strings(&self) -> Vec<String> {
        let intervals = self.strings.intervals().iter();
        let listed: Option<Vec<String>> = intervals.map(quoted_point).collect();
        match listed.filter(|listed| listed.len() <= MAX_LISTED) {
            Some(listed) => listed,
            None => vec!["a string".to_owned()],
        }
    }
}

/// Returns the only string of an interval as a message shows it; none if it has others.
fn quoted_point(interval: &Interval<String>) -> Option<String> {
    match interval {
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(quoted(lower)),
        _ => None,
    }
}

/// Returns a string of a schema as a message shows it.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    format!("'{shown}'")
}

/// Returns the numbers of an interval: `1`, `a number from 0 to 1`.
fn numbers(interval: &Interval<Decimal>) -> String {
    match (end(&interval.0), end(&interval.1)) {
        (None, None) => "a number".to_owned(),
        (Some(lower), None) => format!("a number from {lower}"),
        (None, Some(upper)) => format!("a number up to {upper}"),
        (Some(lower), Some(upper)) if lower == upper => lower,
        (Some(lower), Some(upper)) => format!("a number from {lower} to {upper}"),
    }
}

fn end(bound: &Bound<Decimal>) -> Option<String> {
    match bound {
        Bound::Included(value) => Some(value.to_string()),
        Bound::Excluded(value) => Some(format!("{value} (excluded)")),
        Bound::Unbounded => None,
    }
}

// The parts of a condition.

/// A part of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// `a || b || c`
    Any(Vec<Expression>),
    /// `a && b && c`
    All(Vec<Expression>),
    /// `!a`
    Not(Box<Expression>),
    /// `exists($.x)`
    Exists(Operand),
    /// `$.x` alone: whether it is `true`.
    Truth(Operand),
    /// `a == b`
    Compare(Operand, Comparison, Operand),
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// The byte range in the condition.
    pub range: Range<usize>,
    /// The content.
    pub content: Content,
}

/// The content of an operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A string, a number, true, false or null.
    Literal(cog_json::Value),
    /// `$.x`: the value; an absent one compares as null.
    Path(ValuePath),
    /// `$.x.length`: the number of elements or characters.
    Length(ValuePath),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the comparison with its sides exchanged.
    pub const fn mirrored(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Equal | Comparison::NotEqual => self,
        }
    }

    /// Returns whether it compares the order.
    pub const fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

// Evaluates a condition for a document.

/// Returns whether a condition is true for a document.
fn evaluate(expression: &Expression, root: Node<'_>) -> bool {
    match expression {
        Expression::Any(parts) => parts.iter().any(|part| evaluate(part, root)),
        Expression::All(parts) => parts.iter().all(|part| evaluate(part, root)),
        Expression::Not(inner) => !evaluate(inner, root),
        Expression::Exists(operand) => !matches!(value(operand, root), Value::Absent),
        Expression::Truth(operand) => {
            matches!(value(operand, root), Value::Node(node) if node.as_bool() == Some(true))
        }
        Expression::Compare(left, comparison, right) => {
            compare(value(left, root), *comparison, value(right, root))
        }
    }
}

/// The value of an operand.
#[derive(Clone, Copy)]
enum Value<'n> {
    Node(Node<'n>),
    Length(usize),
    Absent,
}

fn value<'n>(operand: &'n Operand, root: Node<'n>) -> Value<'n> {
    match &operand.content {
        Content::Literal(value) => Value::Node(value.node()),
        Content::Path(path) => path.find(root).map_or(Value::Absent, Value::Node),
        Content::Length(path) => path.find(root).map_or(Value::Absent, length),
    }
}

/// Returns the number of elements or characters; of an object, its member `length`.
fn length(node: Node<'_>) -> Value<'_> {
    match node.kind() {
        Kind::Array => Value::Length(node.len()),
        Kind::String => Value::Length(node.as_str().unwrap_or_default().chars().count()),
        _ => node.get("length").map_or(Value::Absent, Value::Node),
    }
}

/// Compares two values. An absent value equals null. Only two numbers or two strings have an order.
fn compare_nodes(left: Node<'_>, comparison: Comparison, right: Node<'_>) -> bool {
    compare(Value::Node(left), comparison, Value::Node(right))
}

fn compare(left: Value<'_>, comparison: Comparison, right: Value<'_>) -> bool {
    match comparison {
        Comparison::Equal => is_equal(left, right),
        Comparison::NotEqual => !is_equal(left, right),
        _ => order(left, right).is_some_and(|order| match comparison {
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            _ => order.is_ge(),
        }),
    }
}

fn is_equal(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Node(left), Value::Node(right)) => left == right,
        (Value::Length(left), Value::Length(right)) => left == right,
        (Value::Node(node), Value::Length(length)) | (Value::Length(length), Value::Node(node)) => {
            node.as_u64().is_some_and(|number| number == length as u64)
        }
        (Value::Absent, Value::Absent) => true,
        // An optional part that failed has the result null, so conditions need not tell it from an absent member.
        (Value::Node(node), Value::Absent) | (Value::Absent, Value::Node(node)) => node.is_null(),
        (Value::Length(_), Value::Absent) | (Value::Absent, Value::Length(_)) => false,
    }
}

fn order(left: Value<'_>, right: Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Node(left), Value::Node(right)) => match (left.as_number(), right.as_number()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => Some(left.as_str()?.cmp(right.as_str()?)),
        },
        (Value::Length(left), Value::Length(right)) => Some(left.cmp(&right)),
        (Value::Length(length), Value::Node(node)) => order_of_length(length, node),
        (Value::Node(node), Value::Length(length)) => order_of_length(length, node).map(Ordering::reverse),
        (Value::Absent, _) | (_, Value::Absent) => None,
    }
}

fn order_of_length(length: usize, node: Node<'_>) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "lengths are below 2^52")]
    let order = (length as f64).partial_cmp(&node.as_f64()?)?;
    if order.is_ne() {
        return Some(order);
    }
    // The float is equal, but the number can be `2.9999999999999999999`.
    let exact = cog_json::Value::from(serde_json::Value::from(length));
    exact.node().as_number().partial_cmp(&node.as_number())
}

#[cfg(test)]
mod tests;
