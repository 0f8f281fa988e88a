//! The values of conditions: how they are calculated with, and compared.

use std::{cmp::Ordering, fmt, ops::Range};

use cog_json::{Kind, Node, Number};

use super::{
    Comparison, EvaluationError,
    real::{Real, Short},
    time::{ShownDate, ShownDuration},
};

/// A value.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Node(Node<'a>),
    Real(Real),
    /// In nanoseconds since 1970.
    Date(i128),
    /// In nanoseconds.
    Duration(i128),
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ValueKey<'a> {
    Text(&'a str),
    Number(i128, i32),
    Truth(bool),
    Null,
}

impl<'a> ValueKey<'a> {
    /// Returns the key of a value that is not an array or object.
    pub(super) fn new(value: Value<'a>) -> Option<Self> {
        let node = match value {
            Value::Node(node) => node,
            Value::Real(number) => {
                let (digits, exponent) = number.key();
                return Some(ValueKey::Number(digits, exponent));
            }
            Value::Absent => return Some(ValueKey::Null),
            Value::Date(_) | Value::Duration(_) => return None,
        };
        Some(match node.kind() {
            Kind::Null => ValueKey::Null,
            Kind::Bool => ValueKey::Truth(node.as_bool()?),
            Kind::String => ValueKey::Text(node.as_str()?),
            Kind::Number => return Self::new(Value::Real(Real::read(node.as_number()?))),
            Kind::Array | Kind::Object => return None,
        })
    }
}

pub(super) fn text(value: Value<'_>) -> Option<&str> {
    match value {
        Value::Node(node) => node.as_str(),
        _ => None,
    }
}

pub(super) fn real(value: Value<'_>) -> Option<Real> {
    match value {
        Value::Node(node) => node.as_number().map(Real::read),
        Value::Real(number) => Some(number),
        _ => None,
    }
}

/// Returns the number of elements or characters; of an object, its member `length`.
pub(super) fn length_or_member(node: Node<'_>) -> Value<'_> {
    match node.kind() {
        Kind::Array | Kind::String => length(node),
        _ => node.get("length").map_or(Value::Absent, Value::Node),
    }
}

/// Returns the number of elements, members or characters.
pub(super) fn length(node: Node<'_>) -> Value<'_> {
    match node.kind() {
        Kind::Array | Kind::Object => Value::Real(Real::count(node.len())),
        Kind::String => Value::Real(Real::count(node.as_str().unwrap_or_default().chars().count())),
        _ => Value::Absent,
    }
}

// Calculates.

/// Returns the value of a calculation with one operand, which is a number, a date or a duration.
pub(super) fn calculated(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Date(_) | Value::Duration(_) => value,
        value => real(value).map_or(Value::Absent, Value::Real),
    }
}

pub(super) fn negated(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Duration(length) => Value::Duration(-length),
        // A date that is subtracted from another one; see `plus`.
        Value::Date(at) => Value::Date(-at),
        value => real(value).map_or(Value::Absent, |number| Value::Real(number.negated())),
    }
}

pub(super) fn plus<'a>(left: Value<'a>, right: Value<'a>) -> Value<'a> {
    match (left, right) {
        // Two dates are only ever subtracted: the parser's types exclude their sum.
        (Value::Date(a), Value::Date(b)) => Value::Duration(a.saturating_add(b)),
        (Value::Date(at), Value::Duration(length)) | (Value::Duration(length), Value::Date(at)) => {
            Value::Date(at.saturating_add(length))
        }
        (Value::Duration(a), Value::Duration(b)) => Value::Duration(a.saturating_add(b)),
        (left, right) => {
            real(left).zip(real(right)).map_or(Value::Absent, |(left, right)| Value::Real(left.plus(right)))
        }
    }
}

/// Returns how far two values are apart.
pub(super) fn difference<'a>(left: Value<'a>, right: Value<'a>) -> Option<Value<'a>> {
    match plus(left, negated(right)) {
        Value::Duration(length) => Some(Value::Duration(length.abs())),
        Value::Real(number) => Some(Value::Real(number.abs())),
        _ => None,
    }
}

pub(super) fn times<'a>(left: Value<'a>, right: Value<'a>) -> Value<'a> {
    match (left, right) {
        (Value::Duration(length), number) | (number, Value::Duration(length)) => {
            real(number).map_or(Value::Absent, |number| of_duration(nanoseconds(length).times(number)))
        }
        (left, right) => {
            real(left).zip(real(right)).map_or(Value::Absent, |(left, right)| Value::Real(left.times(right)))
        }
    }
}

pub(super) fn over<'a>(
    left: Value<'a>,
    right: Value<'a>,
    range: &Range<usize>,
) -> Result<Value<'a>, EvaluationError> {
    let (dividend, divisor) = match (left, right) {
        (Value::Duration(left), Value::Duration(right)) => (nanoseconds(left), nanoseconds(right)),
        (Value::Duration(length), number) => match real(number) {
            Some(number) => (nanoseconds(length), number),
            None => return Ok(Value::Absent),
        },
        (left, right) => match real(left).zip(real(right)) {
            Some(both) => both,
            None => return Ok(Value::Absent),
        },
    };
    let quotient = dividend.over(divisor).ok_or_else(|| EvaluationError::DivisionByZero(range.clone()))?;
    Ok(match (left, right) {
        (Value::Duration(_), Value::Duration(_)) => Value::Real(quotient),
        (Value::Duration(_), _) => of_duration(quotient),
        _ => Value::Real(quotient),
    })
}

fn nanoseconds(length: i128) -> Real {
    Real::Exact { digits: length, exponent: 0 }
}

fn of_duration(nanoseconds: Real) -> Value<'static> {
    let whole = nanoseconds.as_f64();
    match nanoseconds {
        Real::Exact { digits, exponent: 0 } => Value::Duration(digits),
        // A fraction of a nanosecond is left out.
        #[expect(clippy::cast_possible_truncation, reason = "a cast to an integer saturates")]
        _ => Value::Duration(whole as i128),
    }
}

// Compares two values. An absent value equals null. Only two numbers, strings, dates or durations have an order.

/// Compares two literals.
pub(super) fn compare_nodes(left: Node<'_>, comparison: Comparison, right: Node<'_>) -> bool {
    compare(Value::Node(left), comparison, Value::Node(right))
}

pub(super) fn compare(left: Value<'_>, comparison: Comparison, right: Value<'_>) -> bool {
    match comparison {
        Comparison::Equal => is_equal(left, right),
        Comparison::NotEqual => !is_equal(left, right),
        _ => order(left, right).is_some_and(|order| comparison.holds(order)),
    }
}

pub(super) fn is_equal(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Node(left), Value::Node(right)) => left == right,
        (Value::Absent, Value::Absent) => true,
        // An optional part that failed has the result null, so conditions need not tell it from an absent member.
        (Value::Node(node), Value::Absent) | (Value::Absent, Value::Node(node)) => node.is_null(),
        (left, right) => order(left, right).is_some_and(Ordering::is_eq),
    }
}

fn order(left: Value<'_>, right: Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Node(left), Value::Node(right)) => match (left.as_number(), right.as_number()) {
            (Some(left), Some(right)) => order_of_numbers(left, right),
            _ => Some(left.as_str()?.cmp(right.as_str()?)),
        },
        (Value::Date(left), Value::Date(right)) | (Value::Duration(left), Value::Duration(right)) => {
            Some(left.cmp(&right))
        }
        (left, right) => real(left)?.compare(real(right)?),
    }
}

/// A value of a list that is compared with several others: a short number is read once.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    pub(super) node: Node<'a>,
    number: Option<Short>,
}

impl<'a> Compared<'a> {
    pub(super) fn new(node: Node<'a>) -> Self {
        Self { node, number: Short::read(node) }
    }

    /// Returns its order; none if the values are not two numbers or two strings.
    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        match (self.number, other.number) {
            (Some(number), Some(other)) => Some(number.compare(other)),
            _ => order(Value::Node(self.node), Value::Node(other.node)),
        }
    }
}

/// Compares two numbers exactly. Calculating with short ones is several times as fast as comparing their digits.
fn order_of_numbers(left: Number<'_>, right: Number<'_>) -> Option<Ordering> {
    Real::read(left).compare_exactly(Real::read(right)).or_else(|| left.partial_cmp(&right))
}

/// Returns the smaller or larger of two values; none if they have no order.
pub(super) fn better<'a>(is_max: bool, best: Option<Value<'a>>, value: Value<'a>) -> Option<Value<'a>> {
    let Some(best) = best else { return order(value, value).map(|_| value) };
    let is_better = order(value, best)? == if is_max { Ordering::Greater } else { Ordering::Less };
    Some(if is_better { value } else { best })
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Node(node) => node.fmt(f),
            Value::Real(number) => number.fmt(f),
            Value::Date(at) => ShownDate(*at).fmt(f),
            Value::Duration(length) => ShownDuration(*length).fmt(f),
            Value::Absent => f.write_str("absent"),
        }
    }
}
