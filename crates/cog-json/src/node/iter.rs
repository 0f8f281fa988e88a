//! Iterators over members and elements.

use std::iter::FusedIterator;

use crate::node::Node;

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
