//! The parts of a condition.

use std::ops::Range;

use cog_json::Value;

use crate::value_path::ValuePath;

/// A part of a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
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
pub(crate) struct Operand {
    /// The byte range in the condition.
    pub(crate) range: Range<usize>,
    pub(crate) content: Content,
}

/// The content of an operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// A string, a number, true, false or null.
    Literal(Value),
    /// `$.x`: the value; an absent one compares as null.
    Path(ValuePath),
    /// `$.x.length`: the number of elements or characters.
    Length(ValuePath),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the comparison with its sides exchanged.
    pub(crate) const fn mirrored(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Equal | Comparison::NotEqual => self,
        }
    }

    /// Returns whether it compares the order.
    pub(crate) const fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}
