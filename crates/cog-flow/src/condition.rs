//! Conditions: `$.meta.confidence >= 0.8 && !exists($.data.error)` (docs/spec/composition.md).
//!
//! A condition is parsed once, when the manifest is checked. It compares single values with each other and with literals;
//! nothing else can be written, so that evaluating it is linear in its length.

mod constant;
mod evaluate;
mod lexer;
mod parser;

use std::ops::Range;

use cog_json::{Node, Value};

use crate::{cursor::TextError, value_path::ValuePath};

/// A parsed condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    root: Expression,
}

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
        evaluate::evaluate(&self.root, document)
    }

    /// Returns the value of a condition that is the same for every document.
    pub(crate) fn constant(&self) -> Option<bool> {
        constant::constant(&self.root)
    }

    pub(crate) fn root(&self) -> &Expression {
        &self.root
    }
}

impl Comparison {
    /// Returns whether it compares the order.
    pub(crate) const fn is_ordered(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

#[cfg(test)]
mod tests;
