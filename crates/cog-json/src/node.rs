//! A view of one value on a tape.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, iter::FusedIterator};

use crate::{
    number::Number,
    tape::{Entry, Tag, Tape, fingerprint},
    value::Value,
    write::Writer,
};

/// A view of a value, cheap to copy. It works on a complete value and on a draft that is still arriving; see
/// [`Node::is_complete`].
///
/// A draft contains the decoded part of an incomplete string. It contains a number or literal once that is complete, and
/// a member once its value is there.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    pub(crate) tape: &'a Tape,
    pub(crate) index: u32,
}

/// The six kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// Returns the name of the kind in JSON Schema, such as `"object"`, `"null"` or `"boolean"`.
    #[inline]
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "boolean",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Identifies a node on its tape; see [`Node::tape_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Returns the index on the tape; the root is 0.
    #[must_use]
    pub const fn as_u32(self) -> u32 {
        self.0
    }
}

/// A key prepared for lookups in many objects: [`Node::get_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    text: Box<str>,
    print: u32,
}

impl Key {
    /// Prepares `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Key { text: text.into(), print: fingerprint(text.as_bytes()) }
    }

    /// Returns the key.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<'a> Node<'a> {
    /// Returns the value as JSON with the members of every object in the order of their names, so that the order in which they were
    /// written makes no difference.
    #[must_use]
    pub fn to_sorted_json(self) -> String {
        let mut text = String::new();
        self.write_sorted(&mut Writer::compact(&mut text));
        text
    }

    fn write_sorted(self, w: &mut Writer<'_>) {
        match self.kind() {
            Kind::Object => w.object(|w| {
                let mut members: Vec<_> = self.members().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                members.into_iter().for_each(|(name, member)| member.write_sorted(w.key(name)));
            }),
            Kind::Array => w.array(|w| self.elements().for_each(|element| element.write_sorted(w))),
            _ => w.node(self),
        }
    }

    /// Returns the kind of the value.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.entry().tag() {
            Tag::Null => Kind::Null,
            Tag::False | Tag::True => Kind::Bool,
            Tag::Number => Kind::Number,
            Tag::String | Tag::Key => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// Returns whether the value is complete. Always true in a [`Value`] that was parsed without error.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.entry().is_complete()
    }

    /// Returns the range in the source, between the quotes, of a complete string without escapes. None for every other
    /// value.
    #[must_use]
    pub fn literal_range(self) -> Option<std::ops::Range<usize>> {
        let entry = self.entry();
        let is_literal = entry.tag() == Tag::String && entry.is_complete() && !entry.is_decoded();
        is_literal.then(|| entry.string_range())
    }

    /// Returns whether this is `null`.
    #[inline]
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Returns whether this is an object.
    #[inline]
    #[must_use]
    pub fn is_object(self) -> bool {
        self.entry().tag() == Tag::Object
    }

    /// Returns whether this is an array.
    #[inline]
    #[must_use]
    pub fn is_array(self) -> bool {
        self.entry().tag() == Tag::Array
    }

    /// Returns whether this is a string.
    #[inline]
    #[must_use]
    pub fn is_string(self) -> bool {
        self.entry().tag() == Tag::String
    }

    /// Returns the boolean, if it is one.
    #[inline]
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.entry().tag() {
            Tag::True => Some(true),
            Tag::False => Some(false),
            _ => None,
        }
    }

    /// Returns the decoded string, if it is one; of an incomplete string, the part that has arrived.
    #[inline]
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        let entry = self.entry();
        (entry.tag() == Tag::String).then(|| self.tape.string(entry))
    }

    /// Returns the number, if it is one.
    #[inline]
    #[must_use]
    pub fn as_number(self) -> Option<Number<'a>> {
        let entry = self.entry();
        (entry.tag() == Tag::Number).then(|| Number::new(self.tape.literal(entry), entry.is_integer()))
    }

    /// Returns the number as the nearest float, if it is one.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        self.as_number().map(Number::as_f64)
    }

    /// Returns the number, if it is mathematically an integer within range: `2.0` is 2.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// Returns the number, if it is mathematically an integer within range: `2.0` is 2.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// Returns the value of a key; the last one of duplicate keys. Returns nothing if this is not an object.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Node<'a>> {
        self.find(key, fingerprint(key.as_bytes()))
    }

    /// Returns the value of a key, if it is a string: `node.get(key)?.as_str()`.
    #[must_use]
    pub fn get_str(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    /// Returns the value of a prepared key.
    #[inline]
    #[must_use]
    pub fn get_key(self, key: &Key) -> Option<Node<'a>> {
        self.find(&key.text, key.print)
    }

    /// Returns an element by its index from 0, in linear time. Returns nothing if this is not an array.
    #[must_use]
    pub fn at(self, index: usize) -> Option<Node<'a>> {
        self.elements().nth(index)
    }

    /// Returns the members of an object in the order of the source; only the last of duplicate keys. Empty for any
    /// other kind.
    #[inline]
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members::new(self)
    }

    /// Returns the elements of an array; empty for any other kind.
    #[inline]
    #[must_use]
    pub fn elements(self) -> Elements<'a> {
        Elements::new(self)
    }

    /// Returns the number of members or elements; 0 for any other kind.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        let entry = self.entry();
        if entry.is_container() { entry.count() } else { 0 }
    }

    /// Returns whether there is no member or element; true for scalars.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the value at a JSON pointer (RFC 6901) relative to this value; `""` is this value.
    #[must_use]
    pub fn pointer(self, pointer: &str) -> Option<Node<'a>> {
        resolve(self, pointer)
    }

    /// Copies the subtree into an owned value. Incomplete containers and strings are closed. [`Value::child`] returns a
    /// subtree that shares the memory of its value.
    #[must_use]
    pub fn to_value(self) -> Value {
        Value::copy_from(self)
    }

    /// Converts the subtree into a `serde_json` value.
    #[must_use]
    pub fn to_serde(self) -> serde_json::Value {
        crate::value::to_serde(self)
    }

    /// Appends the value as compact JSON, numbers as they were written. Incomplete containers and strings are closed.
    pub fn write(self, out: &mut String) {
        Writer::compact(out).node(self);
    }

    /// Appends the value as JSON with line breaks, indented by two spaces.
    pub fn write_pretty(self, out: &mut String) {
        Writer::pretty(out).node(self);
    }

    /// Returns the byte offset of the value in the parsed text: its first character; for a string the one after the
    /// quote.
    #[must_use]
    pub fn offset(self) -> usize {
        self.entry().start()
    }

    /// Returns an identifier of this node, unique on its tape.
    #[inline]
    #[must_use]
    pub const fn id(self) -> NodeId {
        NodeId(self.index)
    }

    /// Returns an identifier of the tape, unique among all tapes in memory.
    #[inline]
    #[must_use]
    pub fn tape_id(self) -> usize {
        std::ptr::from_ref(self.tape).addr()
    }

    #[inline]
    pub(crate) fn entry(self) -> Entry {
        self.tape.entry(self.index)
    }

    #[inline]
    pub(crate) fn sibling(self, index: u32) -> Node<'a> {
        Node { tape: self.tape, index }
    }

    #[inline]
    fn find(self, key: &str, print: u32) -> Option<Node<'a>> {
        if !self.is_object() {
            return None;
        }
        // In a draft, the last key may still have no value.
        let value = self.tape.find(self.index, key, print)? + 1;
        (value < self.tape.len()).then(|| self.sibling(value))
    }
}

impl PartialEq for Node<'_> {
    /// JSON equality: the order of members does not matter, numbers are compared mathematically.
    fn eq(&self, other: &Self) -> bool {
        equal(*self, *other)
    }
}

impl fmt::Display for Node<'_> {
    /// Compact JSON; indented with `{:#}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(256);
        match f.alternate() {
            true => self.write_pretty(&mut text),
            false => self.write(&mut text),
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}

// Iterators over members and elements.

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
    fn new(node: Node<'a>) -> Self {
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
    fn new(node: Node<'a>) -> Self {
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

fn resolve<'a>(from: Node<'a>, pointer: &str) -> Option<Node<'a>> {
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
fn equal<'a, 'b>(left: Node<'a>, right: Node<'b>) -> bool {
    // Two scalars, the usual case, are compared without an allocation.
    let mut pairs = Vec::new();
    let mut next = Some((left, right));
    while let Some((left, right)) = next {
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
        next = pairs.pop();
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
