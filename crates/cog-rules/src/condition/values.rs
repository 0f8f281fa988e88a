//! The values that a path can have, as a set: which numbers, which strings, and which others.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    ops::{Bound, RangeBounds as _},
};

use cog_json::Node;
use cog_schema::Types;
use serde_json::Value as Json;

use super::{Comparison, Content, Expression, Operand, value::compare_nodes};

/// A set of values. Arrays and objects count as one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
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
pub struct Decimal(cog_json::Value);

impl Values {
    /// No value: the path finds nothing.
    pub const ABSENT: Values = Values::from_bits(1);
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
    pub fn all() -> Self {
        Self { others: Others(OTHERS), numbers: Ranges::all(), is_integer: false, strings: Ranges::all() }
    }

    /// Returns all values of these types.
    pub fn from_types(types: Types) -> Self {
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
    pub fn between(lower: Bound<Decimal>, upper: Bound<Decimal>) -> Self {
        Self { numbers: Ranges::between(lower, upper), ..Self::all() }
    }

    /// Returns the values of a list, such as an enum; all values for one that is too long to be compared.
    pub fn listed(list: &[Json]) -> Self {
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

    /// Returns the numbers of a count: those of a length, and 0 for a value that is absent or no list.
    pub(crate) fn counted(self) -> Self {
        let zero = Self::listed(&[Json::from(0)]);
        let counts = Self { others: Others(0), ..self.clone() };
        if self.others.0 == 0 { counts } else { counts.or(zero) }
    }

    /// Returns the value `true`.
    pub fn truth() -> Self {
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
    pub fn is_empty(&self) -> bool {
        self.others.0 == 0 && self.numbers.is_empty() && self.strings.is_empty()
    }

    /// Returns the values that are in both sets, and possibly others of this set.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
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
    pub fn or(self, other: Self) -> Self {
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
    pub fn read(value: &Json) -> Option<Self> {
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

// Sets of ordered values as intervals.

/// The maximum number of intervals of a result; one with more is replaced by a larger set.
const MAX_INTERVALS: usize = 128;

/// A set of values: disjoint intervals in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranges<T>(Vec<Interval<T>>);

/// The lower and the upper end of an interval.
pub(crate) type Interval<T> = (Bound<T>, Bound<T>);

impl<T: Ord + Clone> Ranges<T> {
    /// Returns the set without values.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the set of all values.
    pub(crate) fn all() -> Self {
        Self(vec![(Bound::Unbounded, Bound::Unbounded)])
    }

    /// Returns the set of all values between two ends.
    pub(crate) fn between(lower: Bound<T>, upper: Bound<T>) -> Self {
        Self(Vec::from_iter(Some((lower, upper)).filter(is_possible)))
    }

    /// Returns the set of these values.
    pub(crate) fn points(mut values: Vec<T>) -> Self {
        values.sort();
        values.dedup();
        let values = values.into_iter();
        Self(values.map(|value| (Bound::Included(value.clone()), Bound::Included(value))).collect())
    }

    pub(crate) fn intervals(&self) -> &[Interval<T>] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the intervals for which this is true.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Interval<T>) -> bool) {
        self.0.retain(keep);
    }

    /// Returns the values that are in both sets, and possibly others of this set.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut left = self.0.iter().peekable();
        let mut right = other.0.iter().peekable();
        let mut common = Vec::new();
        while let (Some((left_lower, left_upper)), Some((right_lower, right_upper))) =
            (left.peek(), right.peek())
        {
            // A larger set is safe: a condition is reported only if no value is left for it.
            if common.len() == MAX_INTERVALS {
                return self.clone();
            }
            let lower = if lower_order(left_lower, right_lower).is_lt() { right_lower } else { left_lower };
            let is_left_first = upper_order(left_upper, right_upper).is_lt();
            let upper = if is_left_first { left_upper } else { right_upper };
            common.extend(Some((lower.clone(), upper.clone())).filter(is_possible));
            if is_left_first {
                left.next()
            } else {
                right.next()
            };
        }
        Self(common)
    }

    /// Returns the values that are in one of the sets, and possibly others.
    pub(crate) fn or(self, other: Self) -> Self {
        let mut intervals = self.0;
        intervals.extend(other.0);
        // Of two sorted lists, the time is linear.
        intervals.sort_by(|left, right| lower_order(&left.0, &right.0));
        let mut joined: Vec<Interval<T>> = Vec::new();
        for (lower, upper) in intervals {
            match joined.last_mut() {
                Some((_, last)) if is_adjacent(last, &lower) => {
                    if upper_order(last, &upper).is_lt() {
                        *last = upper;
                    }
                }
                _ => joined.push((lower, upper)),
            }
        }
        if joined.len() > MAX_INTERVALS { Self::all() } else { Self(joined) }
    }

    /// Returns the values that are not in the set.
    pub(crate) fn complement(&self) -> Self {
        let mut gaps = Vec::new();
        let mut start = Some(Bound::Unbounded);
        for (lower, upper) in &self.0 {
            gaps.extend(start.take().zip(opposite(lower)).filter(is_possible));
            start = opposite(upper);
        }
        gaps.extend(start.map(|start| (start, Bound::Unbounded)));
        Self(gaps)
    }
}

/// Returns whether no value is between the upper end of an interval and the lower end of the next one.
fn is_adjacent<T: Ord>(upper: &Bound<T>, lower: &Bound<T>) -> bool {
    match (upper, lower) {
        (Bound::Excluded(upper), Bound::Excluded(lower)) => lower < upper,
        (
            Bound::Included(upper) | Bound::Excluded(upper),
            Bound::Included(lower) | Bound::Excluded(lower),
        ) => lower <= upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// Returns the end of the neighbouring interval; none where there is no neighbour.
fn opposite<T: Clone>(end: &Bound<T>) -> Option<Bound<T>> {
    match end {
        Bound::Included(value) => Some(Bound::Excluded(value.clone())),
        Bound::Excluded(value) => Some(Bound::Included(value.clone())),
        Bound::Unbounded => None,
    }
}

/// Returns whether an interval can contain values. An open interval between two different values counts as one that can.
fn is_possible<T: Ord>((lower, upper): &Interval<T>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower <= upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower < upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// Compares two lower ends.
fn lower_order<T: Ord>(left: &Bound<T>, right: &Bound<T>) -> Ordering {
    order(left, right, Ordering::Less, Ordering::Less)
}

/// Compares two upper ends.
fn upper_order<T: Ord>(left: &Bound<T>, right: &Bound<T>) -> Ordering {
    order(left, right, Ordering::Greater, Ordering::Greater)
}

/// Compares two ends, where an unbounded end, and an included one next to an excluded one, have these orders.
fn order<T: Ord>(left: &Bound<T>, right: &Bound<T>, unbounded: Ordering, included: Ordering) -> Ordering {
    match (left, right) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => unbounded,
        (_, Bound::Unbounded) => unbounded.reverse(),
        (Bound::Included(left), Bound::Excluded(right)) => left.cmp(right).then(included),
        (Bound::Excluded(left), Bound::Included(right)) => left.cmp(right).then(included.reverse()),
        (Bound::Included(left), Bound::Included(right)) | (Bound::Excluded(left), Bound::Excluded(right)) => {
            left.cmp(right)
        }
    }
}

/// Returns whether an interval contains a value.
pub(crate) fn contains<T: Ord>(interval: &Interval<T>, value: &T) -> bool {
    (interval.0.as_ref(), interval.1.as_ref()).contains(value)
}

// The cases in which conditions are true, to find those that are never true.

/// The cases in which a condition is true, at least: each is a set of values for each path. Without cases, it is never true.
///
/// Paths are independent of each other, and what sets of values cannot express is left out. There can be more cases than really
/// exist, but never fewer.
#[derive(Debug, Clone)]
pub struct Cases(Vec<Case>);

/// The values of the paths in one case; a path that it does not have can have all of its values.
type Case = BTreeMap<String, Values>;

/// What is known about the operand of a condition: its name, and the values that it can have.
pub type KnownValues<'k> = dyn Fn(&Operand) -> (String, Values) + 'k;

/// The maximum number of cases of a condition, and of pairs of cases that are compared.
const MAX_CASES: usize = 16;
const MAX_PAIRS: usize = 64;
/// The maximum number of paths of a case; further paths count as having all of their values.
const MAX_PATHS: usize = 32;

impl Cases {
    /// Returns what is true in every case.
    pub fn every() -> Self {
        Self(vec![Case::new()])
    }

    /// Returns what is never true.
    pub fn never() -> Self {
        Self(Vec::new())
    }

    /// Returns the cases in which an expression has a value.
    pub fn from_expression(expression: &Expression, value: bool, known: &KnownValues<'_>) -> Self {
        match expression {
            Expression::All(parts) if value => Self::from_all(parts, value, known),
            Expression::Any(parts) if !value => Self::from_all(parts, value, known),
            Expression::All(parts) | Expression::Any(parts) => parts
                .iter()
                .fold(Self::never(), |sum, part| sum.or(Self::from_expression(part, value, known))),
            Expression::Not(inner) => Self::from_expression(inner, !value, known),
            Expression::Exists(operand) => Self::within(operand, &Values::ABSENT.complement(), value, known),
            Expression::Truth(operand) => match &operand.content {
                Content::Literal(literal) => Self::constant((literal.as_bool() == Some(true)) == value),
                _ => Self::within(operand, &Values::truth(), value, known),
            },
            Expression::Compare(left, comparison, right) => {
                Self::compared(left, *comparison, right, value, known)
            }
            // A function can be true and false.
            Expression::Test(_) => Self::every(),
        }
    }

    fn from_all(parts: &[Expression], value: bool, known: &KnownValues<'_>) -> Self {
        parts.iter().fold(Self::every(), |sum, part| sum.and(&Self::from_expression(part, value, known)))
    }

    fn compared(
        left: &Operand,
        comparison: Comparison,
        right: &Operand,
        value: bool,
        known: &KnownValues<'_>,
    ) -> Self {
        match (&left.content, &right.content) {
            (Content::Literal(left), Content::Literal(right)) => {
                Self::constant(compare_nodes(left.node(), comparison, right.node()) == value)
            }
            (_, Content::Literal(literal)) => {
                Self::within(left, &Values::compared(comparison, literal.node()), value, known)
            }
            (Content::Literal(literal), _) => {
                Self::within(right, &Values::compared(comparison.mirrored(), literal.node()), value, known)
            }
            // Two paths can have any values.
            _ => Self::every(),
        }
    }

    fn constant(is_true: bool) -> Self {
        if is_true { Self::every() } else { Self::never() }
    }

    /// Returns the case in which the value of an operand is in a set, or in which it is not.
    fn within(operand: &Operand, set: &Values, is_inside: bool, known: &KnownValues<'_>) -> Self {
        let (name, possible) = known(operand);
        let values = if is_inside { possible.and(set) } else { possible.and(&set.complement()) };
        if values.is_empty() { Self::never() } else { Self(vec![Case::from([(name, values)])]) }
    }

    /// Returns the cases of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        if self.0.len() * other.0.len() > MAX_PAIRS {
            return self.clone();
        }
        let pairs = self.0.iter().flat_map(|left| other.0.iter().map(move |right| both(left, right)));
        let joined = pairs.flatten().fold(Self::never(), Self::with);
        // There are only more cases without the condition of the other.
        if joined.0.len() > MAX_CASES { self.clone() } else { joined }
    }

    /// Returns the cases of one of them.
    fn or(self, other: Self) -> Self {
        let joined = other.0.into_iter().fold(self, Self::with);
        if joined.0.len() > MAX_CASES { Self::every() } else { joined }
    }

    /// Adds a case, which is joined with one that differs from it in one path.
    fn with(mut self, case: Case) -> Self {
        if !self.0.iter_mut().any(|known| join(known, &case)) {
            self.0.push(case);
        }
        self
    }

    /// Returns whether there are none: the condition is never true.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the case of both; none if no value of a path is in both.
fn both(left: &Case, right: &Case) -> Option<Case> {
    let mut case = left.clone();
    for (name, values) in right {
        if let Some(known) = case.get_mut(name) {
            *known = known.and(values);
            if known.is_empty() {
                return None;
            }
        } else if case.len() < MAX_PATHS {
            // Without a further path the case contains more, so that less is reported.
            case.insert(name.clone(), values.clone());
        }
    }
    Some(case)
}

/// Adds the values of another case to a case, if they have the same paths and differ in one of them at most.
fn join(case: &mut Case, other: &Case) -> bool {
    if !case.keys().eq(other.keys()) {
        return false;
    }
    let mut different =
        case.iter_mut().zip(other.values()).filter(|((_, known), values)| **known != **values);
    match (different.next(), different.next()) {
        (Some(((_, known), values)), None) => {
            *known = std::mem::replace(known, Values::ABSENT).or(values.clone());
        }
        (Some(_), Some(_)) => return false,
        (None, _) => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns sets with ends from 0 to 9; only the odd numbers are values.
    fn sets() -> impl Strategy<Value = Ranges<u8>> {
        let end = || {
            prop_oneof![
                Just(Bound::Unbounded),
                (0_u8..10).prop_map(Bound::Included),
                (0_u8..10).prop_map(Bound::Excluded)
            ]
        };
        let interval = (end(), end()).prop_map(|(lower, upper)| Ranges::between(lower, upper));
        let points = prop::collection::vec(0_u8..10, 0..4).prop_map(Ranges::points);
        prop::collection::vec(prop_oneof![interval, points], 0..4)
            .prop_map(|sets| sets.into_iter().fold(Ranges::none(), Ranges::or))
    }

    fn has(set: &Ranges<u8>, value: u8) -> bool {
        set.intervals().iter().any(|interval| contains(interval, &value))
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(left in sets(), right in sets()) {
            for value in 0..12 {
                let in_left = has(&left, value);
                let in_right = has(&right, value);
                prop_assert_eq!(has(&left.and(&right), value), in_left && in_right);
                prop_assert_eq!(has(&left.clone().or(right.clone()), value), in_left || in_right);
                prop_assert_eq!(has(&left.complement(), value), !in_left);
            }
            prop_assert_eq!(left.complement().complement(), left.clone());
            prop_assert!(left.and(&left.complement()).is_empty());
        }
    }

    #[test]
    fn set_of_too_many_intervals_becomes_larger() {
        let points = Ranges::points((0..1_000).collect::<Vec<u32>>());
        assert_eq!(points.and(&Ranges::points((0..1_000).step_by(2).collect())), points);
        assert_eq!(points.clone().or(Ranges::points(vec![1_001])), Ranges::all());
        assert_eq!(points.and(&Ranges::points(vec![7, 8])), Ranges::points(vec![7, 8]));
    }
}
