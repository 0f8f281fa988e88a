//! Evaluates a condition for a document.

use std::cmp::Ordering;

use cog_json::{Kind, Node};

use super::expression::{Comparison, Content, Expression, Operand};

/// Returns whether a condition is true for a document.
pub(super) fn evaluate(expression: &Expression, root: Node<'_>) -> bool {
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
pub(super) fn compare_nodes(left: Node<'_>, comparison: Comparison, right: Node<'_>) -> bool {
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
