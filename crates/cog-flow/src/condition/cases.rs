//! The cases in which conditions are true, to find those that are never true.

use std::collections::BTreeMap;

use super::{
    evaluate::compare_nodes,
    expression::{Comparison, Content, Expression},
    values::Values,
};

/// The cases in which a condition is true, at least: each is a set of values for each path. Without cases, it is never true.
///
/// Paths are independent of each other, and what sets of values cannot express is left out. There can be more cases than really
/// exist, but never fewer.
#[derive(Debug, Clone)]
pub(crate) struct Cases(Vec<Case>);

/// The values of the paths in one case; a path that it does not have can have all of its values.
type Case = BTreeMap<String, Values>;

/// What is known about the operand of a condition: its name, and the values that it can have.
pub(crate) type KnownValues<'k> = dyn Fn(&Content) -> (String, Values) + 'k;

/// The maximum number of cases of a condition, and of pairs of cases that are compared.
const MAX_CASES: usize = 16;
const MAX_PAIRS: usize = 64;
/// The maximum number of paths of a case; those of further paths count as all of their values.
const MAX_PATHS: usize = 32;

impl Cases {
    /// Returns what is true in every case.
    pub(crate) fn every() -> Self {
        Self(vec![Case::new()])
    }

    /// Returns what is never true.
    pub(crate) fn never() -> Self {
        Self(Vec::new())
    }

    /// Returns the cases in which an expression has a value.
    pub(crate) fn from_expression(expression: &Expression, value: bool, known: &KnownValues<'_>) -> Self {
        match expression {
            Expression::All(parts) if value => Self::from_all(parts, value, known),
            Expression::Any(parts) if !value => Self::from_all(parts, value, known),
            Expression::All(parts) | Expression::Any(parts) => parts
                .iter()
                .fold(Self::never(), |sum, part| sum.or(Self::from_expression(part, value, known))),
            Expression::Not(inner) => Self::from_expression(inner, !value, known),
            Expression::Exists(operand) => {
                Self::within(&operand.content, &Values::ABSENT.complement(), value, known)
            }
            Expression::Truth(operand) => match &operand.content {
                Content::Literal(literal) => Self::constant((literal.as_bool() == Some(true)) == value),
                content => Self::within(content, &Values::truth(), value, known),
            },
            Expression::Compare(left, comparison, right) => {
                Self::compared(&left.content, *comparison, &right.content, value, known)
            }
        }
    }

    fn from_all(parts: &[Expression], value: bool, known: &KnownValues<'_>) -> Self {
        parts.iter().fold(Self::every(), |sum, part| sum.and(&Self::from_expression(part, value, known)))
    }

    fn compared(
        left: &Content,
        comparison: Comparison,
        right: &Content,
        value: bool,
        known: &KnownValues<'_>,
    ) -> Self {
        match (left, right) {
            (Content::Literal(left), Content::Literal(right)) => {
                Self::constant(compare_nodes(left.node(), comparison, right.node()) == value)
            }
            (path, Content::Literal(literal)) => {
                Self::within(path, &Values::compared(comparison, literal.node()), value, known)
            }
            (Content::Literal(literal), path) => {
                Self::within(path, &Values::compared(comparison.mirrored(), literal.node()), value, known)
            }
            // Two paths can have any values.
            _ => Self::every(),
        }
    }

    fn constant(is_true: bool) -> Self {
        if is_true { Self::every() } else { Self::never() }
    }

    /// Returns the case in which the value of a path is in a set, or in which it is not.
    fn within(path: &Content, set: &Values, is_inside: bool, known: &KnownValues<'_>) -> Self {
        let (name, possible) = known(path);
        let values = if is_inside { possible.and(set) } else { possible.and(&set.complement()) };
        if values.is_empty() { Self::never() } else { Self(vec![Case::from([(name, values)])]) }
    }

    /// Returns the cases of both.
    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
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
    pub(crate) fn is_empty(&self) -> bool {
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
