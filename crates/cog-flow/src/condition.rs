//! Conditions: `$.meta.confidence >= 0.8 && !exists($.data.error)` (docs/spec/composition.md).
//!
//! A condition is parsed once, when the manifest is checked. It compares single values with each other and with literals;
//! nothing else can be written, so that evaluating it is linear in its length.

mod cases;
mod describe;
mod evaluate;
mod expression;
mod lexer;
mod parser;
mod ranges;
mod values;

use cog_json::Node;

use crate::cursor::TextError;

pub(crate) use self::{
    cases::Cases,
    expression::{Comparison, Content, Expression, Operand},
    values::{Decimal, Values},
};

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
        evaluate::evaluate(&self.root, document)
    }

    pub(crate) fn root(&self) -> &Expression {
        &self.root
    }
}

#[cfg(test)]
mod tests;
