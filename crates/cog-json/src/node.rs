//! A view of one value on a tape.

mod iter;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::number::Number;
use crate::tape::{Entry, Tag, Tape, fingerprint};
use crate::value::Value;
use crate::write::Writer;

pub use self::iter::{Elements, Members};

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
        iter::resolve(self, pointer)
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
        iter::equal(*self, *other)
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
