//! Finds conditions that are the same for every document.

use super::{
    evaluate::compare_nodes,
    expression::{Content, Expression, Operand},
};

/// Returns the value of an expression, if no document changes it.
pub(super) fn constant(expression: &Expression) -> Option<bool> {
    match expression {
        Expression::Any(parts) => joined(parts, true),
        Expression::All(parts) => joined(parts, false),
        Expression::Not(inner) => constant(inner).map(|value| !value),
        Expression::Exists(_) => None,
        Expression::Truth(operand) => literal(operand).and_then(|value| value.as_bool()),
        Expression::Compare(left, comparison, right) => {
            let (left, right) = (literal(left)?, literal(right)?);
            Some(compare_nodes(left.node(), *comparison, right.node()))
        }
    }
}

/// Returns the value of parts of which one with the value `decisive` decides.
fn joined(parts: &[Expression], decisive: bool) -> Option<bool> {
    let mut is_constant = true;
    for part in parts {
        match constant(part) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => is_constant = false,
        }
    }
    is_constant.then_some(!decisive)
}

fn literal(operand: &Operand) -> Option<&cog_json::Value> {
    match &operand.content {
        Content::Literal(value) => Some(value),
        Content::Path(_) | Content::Length(_) => None,
    }
}
