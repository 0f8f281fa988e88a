//! The values that a path can have, as a set: which numbers, which strings, and which others.

use std::{cmp::Ordering, fmt, ops::Bound};

use cog_json::Node;
use cog_schema::Types;
use serde_json::Value as Json;

use super::{
    Comparison,
    ranges::{Interval, MAX_INTERVALS, Ranges, contains},
};

/// A set of values. Arrays and objects count as one value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    others: Others,
    pub(super) numbers: Ranges<Decimal>,
    /// Whether the numbers are integers.
    is_integer: bool,
    pub(super) strings: Ranges<String>,
}

/// A set of values that have no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Others(u8);

const OTHERS: u8 = 31;

/// The largest number around which the integers are found by floats.
const MAX_EXACT: f64 = 4e15;

/// A number that is compared exactly.
#[derive(Debug, Clone)]
pub(crate) struct Decimal(cog_json::Value);

impl Values {
    /// No value: the path finds nothing.
    pub(crate) const ABSENT: Values = Values::from_bits(1);
    const NULL: Values = Values::from_bits(2);
    const TRUE: Values = Values::from_bits(4);
    const FALSE: Values = Values::from_bits(8);
    const CONTAINER: Values = Values::from_bits(16);

    const fn from_bits(bits: u8) -> Self {
        Self { others: Others(bits), numbers: Ranges::none(), is_integer: false, strings: Ranges::none() }
    }

    const fn none() -> Self {
        Self::from_bits(0)
    }

    /// Returns the set of all values.
    pub(crate) fn all() -> Self {
        Self { others: Others(OTHERS), numbers: Ranges::all(), is_integer: false, strings: Ranges::all() }
    }

    /// Returns all values of these types.
    pub(crate) fn from_types(types: Types) -> Self {
        let others = [
            (Types::NULL, Self::NULL),
            (Types::BOOLEAN, Self::TRUE),
            (Types::BOOLEAN, Self::FALSE),
            (Types::ARRAY.or(Types::OBJECT), Self::CONTAINER),
        ];
        let found = others.into_iter().filter(|(others, _)| types.meet(*others));
        let mut values = found.fold(Self::none(), |sum, (_, one)| sum.or(one));
        if types.meet(Types::NUMBER) {
            values.numbers = Ranges::all();
            values.is_integer = types.and(Types::NUMBER) == Types::INTEGER;
        }
        if types.meet(Types::STRING) {
            values.strings = Ranges::all();
        }
        values
    }

    /// Returns all values, of the numbers only those between two ends.
    pub(crate) fn between(lower: Bound<Decimal>, upper: Bound<Decimal>) -> Self {
        Self { numbers: Ranges::between(lower, upper), ..Self::all() }
    }

    /// Returns the values of a list, such as an enum; all values for one that is too long to be compared.
    pub(crate) fn listed(list: &[Json]) -> Self {
        if list.len() > MAX_INTERVALS {
            return Self::all();
        }
        let others = list.iter().map(|value| match value {
            Json::Null => Self::NULL,
            Json::Bool(true) => Self::TRUE,
            Json::Bool(false) => Self::FALSE,
            Json::Array(_) | Json::Object(_) => Self::CONTAINER,
            Json::Number(_) | Json::String(_) => Self::none(),
        });
        let mut values = others.fold(Self::none(), Self::or);
        values.numbers = Ranges::points(list.iter().filter_map(Decimal::read).collect());
        values.strings = Ranges::points(list.iter().filter_map(Json::as_str).map(str::to_owned).collect());
        values
    }

    /// Returns the values for which a comparison with a literal on its right side is true. Every value of the set has it, and
    /// no other value.
    pub(super) fn compared(comparison: Comparison, literal: Node<'_>) -> Self {
        match comparison {
            Comparison::Equal => Self::equal(literal),
            Comparison::NotEqual => Self::equal(literal).complement(),
            _ => match (literal.as_number(), literal.as_str()) {
                (Some(_), _) => {
                    Self { numbers: side(comparison, Decimal(literal.to_value())), ..Self::none() }
                }
                (None, Some(text)) => Self { strings: side(comparison, text.to_owned()), ..Self::none() },
                (None, None) => Self::none(),
            },
        }
    }

    /// Returns the values that equal a literal. An absent value equals null.
    fn equal(literal: Node<'_>) -> Self {
        if literal.is_null() {
            return Self::NULL.or(Self::ABSENT);
        }
        match literal.as_bool() {
            Some(true) => Self::TRUE,
            Some(false) => Self::FALSE,
            None => Self {
                numbers: Ranges::points(
                    literal.as_number().map(|_| Decimal(literal.to_value())).into_iter().collect(),
                ),
                strings: Ranges::points(literal.as_str().map(str::to_owned).into_iter().collect()),
                ..Self::none()
            },
        }
    }

    /// Returns the value `true`.
    pub(crate) fn truth() -> Self {
        Self::TRUE
    }

    /// Returns the names of the values that have no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let others = [
            (Self::TRUE, "true"),
            (Self::FALSE, "false"),
            (Self::CONTAINER, "an array or object"),
            (Self::NULL, "null"),
            (Self::ABSENT, "absent"),
        ];
        let found = self.others.0;
        others.into_iter().filter(move |(one, _)| found & one.others.0 != 0).map(|(_, name)| name)
    }

    /// Returns whether the set has no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.others.0 == 0 && self.numbers.is_empty() && self.strings.is_empty()
    }

    /// Returns the values that are in both sets, and possibly others of this set.
    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut numbers = self.numbers.and(&other.numbers);
        let is_integer = self.is_integer || other.is_integer;
        if is_integer {
            numbers.retain(has_integer);
        }
        let others = Others(self.others.0 & other.others.0);
        Self { others, numbers, is_integer, strings: self.strings.and(&other.strings) }
    }

    /// Returns the values that are in one of the sets, and possibly others.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let is_integer = self.has_only_integers() && other.has_only_integers();
        let numbers = self.numbers.or(other.numbers);
        Self {
            others: Others(self.others.0 | other.others.0),
            is_integer: is_integer && !numbers.is_empty(),
            numbers,
            strings: self.strings.or(other.strings),
        }
    }

    fn has_only_integers(&self) -> bool {
        self.is_integer || self.numbers.is_empty()
    }

    /// Returns the values that are not in the set. Its numbers must not be restricted to integers.
    #[must_use]
    pub(super) fn complement(&self) -> Self {
        Self {
            others: Others(OTHERS & !self.others.0),
            numbers: self.numbers.complement(),
            is_integer: false,
            strings: self.strings.complement(),
        }
    }
}

/// Returns the values on one side of a value, by the comparison with it.
fn side<T: Ord + Clone>(comparison: Comparison, value: T) -> Ranges<T> {
    match comparison {
        Comparison::Less => Ranges::between(Bound::Unbounded, Bound::Excluded(value)),
        Comparison::LessOrEqual => Ranges::between(Bound::Unbounded, Bound::Included(value)),
        Comparison::Greater => Ranges::between(Bound::Excluded(value), Bound::Unbounded),
        Comparison::GreaterOrEqual => Ranges::between(Bound::Included(value), Bound::Unbounded),
        Comparison::Equal => Ranges::points(vec![value]),
        Comparison::NotEqual => Ranges::points(vec![value]).complement(),
    }
}

/// Returns whether an interval has an integer: one of those around an end of it.
fn has_integer(interval: &Interval<Decimal>) -> bool {
    let end = match interval {
        (Bound::Included(end) | Bound::Excluded(end), _)
        | (Bound::Unbounded, Bound::Included(end) | Bound::Excluded(end)) => end.nearest(),
        (Bound::Unbounded, Bound::Unbounded) => return true,
    };
    let around = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|distance| Decimal::integer(end.floor() + distance));
    end.abs() > MAX_EXACT || around.iter().flatten().any(|integer| contains(interval, integer))
}

impl Decimal {
    /// Reads a number.
    pub(crate) fn read(value: &Json) -> Option<Self> {
        value.is_number().then(|| cog_json::Value::parse(&value.to_string()).ok()).flatten().map(Self)
    }

    /// Returns the number of a float that is an integer.
    fn integer(float: f64) -> Option<Self> {
        cog_json::Value::parse(&format!("{float:.0}")).ok().map(Self)
    }

    fn nearest(&self) -> f64 {
        self.0.node().as_f64().unwrap_or_default()
    }
}

impl From<u32> for Decimal {
    fn from(number: u32) -> Self {
        Self(cog_json::Value::from(Json::from(number)))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.node().as_number().partial_cmp(&other.0.node().as_number()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}
