//! JSON equality.

use crate::node::{Kind, Node};

/// Compares without recursion, so that no depth can exhaust the stack.
pub(super) fn equal<'a, 'b>(left: Node<'a>, right: Node<'b>) -> bool {
    let mut pairs = vec![(left, right)];
    while let Some((left, right)) = pairs.pop() {
        let same = match (left.kind(), right.kind()) {
            (Kind::Array, Kind::Array) => left.len() == right.len() && push_elements(left, right, &mut pairs),
            (Kind::Object, Kind::Object) => {
                left.len() == right.len() && push_members(left, right, &mut pairs)
            }
            (Kind::Number, Kind::Number) => left.as_number() == right.as_number(),
            (Kind::String, Kind::String) => left.as_str() == right.as_str(),
            (Kind::Bool, Kind::Bool) => left.as_bool() == right.as_bool(),
            (one, other) => one == other,
        };
        if !same {
            return false;
        }
    }
    true
}

fn push_elements<'a, 'b>(left: Node<'a>, right: Node<'b>, pairs: &mut Vec<(Node<'a>, Node<'b>)>) -> bool {
    pairs.extend(left.elements().zip(right.elements()));
    true
}

fn push_members<'a, 'b>(left: Node<'a>, right: Node<'b>, pairs: &mut Vec<(Node<'a>, Node<'b>)>) -> bool {
    for (key, value) in left.members() {
        match right.get(key) {
            Some(other) => pairs.push((value, other)),
            None => return false,
        }
    }
    true
}
