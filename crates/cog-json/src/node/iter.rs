//! Iterators over members and elements.

use std::{borrow::Cow, iter::FusedIterator};

use crate::node::{Kind, Node};

/// The members of an object; see [`Node::members`].
#[derive(Clone)]
pub struct Members<'a> {
    object: Node<'a>,
    at: u32,
    end: u32,
    left: usize,
}

impl<'a> Members<'a> {
    #[inline]
    pub(super) fn new(node: Node<'a>) -> Self {
        let (end, left) = if node.is_object() { (node.tape.after(node.index), node.len()) } else { (0, 0) };
        Members { object: node, at: node.index + 1, end, left }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let tape = self.object.tape;
        // The last key of a draft has no value yet, and an earlier duplicate is shadowed.
        while self.at + 1 < self.end {
            let (key, after) = tape.member(self.at);
            let value = self.object.sibling(self.at + 1);
            self.at = after;
            if !key.is_shadowed() {
                self.left = self.left.saturating_sub(1);
                return Some((tape.string(key), value));
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Members<'_> {}
impl FusedIterator for Members<'_> {}

/// The elements of an array; see [`Node::elements`].
#[derive(Clone)]
pub struct Elements<'a> {
    array: Node<'a>,
    at: u32,
    end: u32,
    left: usize,
}

impl<'a> Elements<'a> {
    #[inline]
    pub(super) fn new(node: Node<'a>) -> Self {
        let (end, left) = if node.is_array() { (node.tape.after(node.index), node.len()) } else { (0, 0) };
        Elements { array: node, at: node.index + 1, end, left }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let element = self.array.sibling(self.at);
        self.at = self.array.tape.after(self.at);
        self.left = self.left.saturating_sub(1);
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Elements<'_> {}
impl FusedIterator for Elements<'_> {}

// JSON pointers, RFC 6901.

pub(super) fn resolve<'a>(from: Node<'a>, pointer: &str) -> Option<Node<'a>> {
    if pointer.is_empty() {
        return Some(from);
    }
    pointer.strip_prefix('/')?.split('/').try_fold(from, |node, token| match node.kind() {
        Kind::Object => node.get(&unescape(token)),
        Kind::Array => node.at(index(token)?),
        _ => None,
    })
}

fn unescape(token: &str) -> Cow<'_, str> {
    match token.contains('~') {
        true => token.replace("~1", "/").replace("~0", "~").into(),
        false => token.into(),
    }
}

/// An array index: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    if plain { token.parse().ok() } else { None }
}

// JSON equality.

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
