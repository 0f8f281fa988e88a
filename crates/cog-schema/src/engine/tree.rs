//! Implements the traits of the engine for the tree of `cog_json`.

use std::{
    borrow::Cow,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::OnceLock,
};

use cog_json::{Elements, Key, Kind, Members, Node, Number, Value};
use jsonschema::{
    json::{self, Json, JsonNumber, NodeIdentity, cmp},
    types::JsonType,
};
use jsonschema_value::LazyInstance;

/// The representation: nodes of `cog_json`.
#[derive(Debug)]
pub(crate) struct Tree;

/// A number of the tree.
pub(crate) struct Num<'a>(Number<'a>);

impl Json for Tree {
    type Node<'a> = Node<'a>;
    type PreparedKey = Key;
    type StringBuffer = Value;

    /// A walk over all keys is faster than lookups of half as many.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> Key {
        Key::new(key)
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Node<'_>) -> T) -> T {
        *buffer = Value::from(serde_json::Value::from(string));
        f(buffer.node())
    }
}

impl<'a> json::Node<'a, Tree> for Node<'a> {
    type Object = Node<'a>;
    type Array = Node<'a>;
    type Number = Num<'a>;

    fn as_object(&self) -> Option<Node<'a>> {
        Node::is_object(*self).then_some(*self)
    }

    fn as_array(&self) -> Option<Node<'a>> {
        Node::is_array(*self).then_some(*self)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        Node::as_str(*self).map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Num<'a>> {
        Node::as_number(*self).map(Num)
    }

    fn as_boolean(&self) -> Option<bool> {
        Node::as_bool(*self)
    }

    fn is_null(&self) -> bool {
        Node::is_null(*self)
    }

    fn is_number(&self) -> bool {
        self.kind() == Kind::Number
    }

    fn is_string(&self) -> bool {
        Node::is_string(*self)
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            Kind::Null => JsonType::Null,
            Kind::Bool => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = Node::as_str(*self)?;
        // Most text is ASCII, and checking that is faster than counting characters.
        Some(if text.is_ascii() { text.len() } else { text.chars().count() } as u64)
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        equals(*self, expected)
    }

    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(self.to_serde())
    }

    /// Returns an empty instance. Errors contain their instance, which is never read here; for an error at the root, it
    /// would cost as much as the complete check.
    fn lazy_value(&self) -> LazyInstance<'a> {
        LazyInstance::Deferred {
            bytes: &[],
            tag: 0,
            make: |_, _| serde_json::Value::Null,
            cell: OnceLock::new(),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::tagged(self.tape_id(), self.id().as_u32()))
    }
}

impl<'a> json::Object<'a, Tree> for Node<'a> {
    type Node = Node<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        Node::len(*self)
    }

    fn get(&self, key: &Key) -> Option<Node<'a>> {
        self.get_key(key)
    }

    fn members(&self) -> Members<'a> {
        Node::members(*self)
    }
}

impl<'a> json::Array<'a, Tree> for Node<'a> {
    type Node = Node<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        Node::len(*self)
    }

    fn elements(&self) -> Elements<'a> {
        Node::elements(*self)
    }

    fn is_unique(&self) -> bool {
        is_unique(*self)
    }
}

impl JsonNumber for Num<'_> {
    #[inline]
    fn as_u64(&self) -> Option<u64> {
        if !self.0.is_plain_integer() {
            return None;
        }
        short_integer(self.0.literal()).or_else(|| self.0.as_u64())
    }

    #[inline]
    fn as_i64(&self) -> Option<i64> {
        self.0.is_plain_integer().then(|| self.0.as_i64()).flatten()
    }

    #[inline]
    fn as_f64(&self) -> Option<f64> {
        short_decimal(self.0.literal()).or_else(|| Some(self.0.as_f64()))
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.literal())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(self.0.literal().parse().unwrap_or_else(|_| nearest(self.0)))
    }

    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    fn is_written_as_integer(&self) -> bool {
        self.0.is_plain_integer()
    }
}

/// Returns the nearest float of a number that no float can represent.
fn nearest(number: Number<'_>) -> serde_json::Number {
    serde_json::Number::from_f64(number.as_f64()).unwrap_or_else(|| 0.into())
}

/// The maximum number of digits that a float and a `u64` represent exactly.
const MAX_SHORT: usize = 15;

/// Returns the value of an integer of few digits.
fn short_integer(literal: &str) -> Option<u64> {
    let bytes = literal.as_bytes();
    if bytes.len() > MAX_SHORT {
        return None;
    }
    bytes.iter().try_fold(0_u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

/// Returns the value of a decimal of few digits. The division of two exact floats is correctly rounded, and several times
/// faster than the general algorithm. Answers contain many such numbers.
pub(crate) fn short_decimal(literal: &str) -> Option<f64> {
    const TENS: [f64; MAX_SHORT] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];
    let unsigned = literal.strip_prefix('-');
    let bytes = unsigned.unwrap_or(literal).as_bytes();
    if bytes.len() > MAX_SHORT {
        return None;
    }
    let mut digits = 0_u64;
    let mut places = 0;
    let mut step = 0;
    for byte in bytes {
        match byte {
            b'0'..=b'9' => {
                digits = digits * 10 + u64::from(byte - b'0');
                places += step;
            }
            b'.' => step = 1,
            _ => return None,
        }
    }
    let size = digits as f64 / TENS.get(places)?;
    Some(if unsigned.is_some() { -size } else { size })
}

/// Returns whether a value equals a `const` or a value of an `enum`; numbers are compared mathematically.
fn equals(node: Node<'_>, expected: &serde_json::Value) -> bool {
    match expected {
        serde_json::Value::Null => node.is_null(),
        serde_json::Value::Bool(bool) => node.as_bool() == Some(*bool),
        serde_json::Value::String(text) => node.as_str() == Some(text),
        serde_json::Value::Number(number) => {
            node.as_number().is_some_and(|found| cmp::equal_numbers(&Num(found), number))
        }
        serde_json::Value::Array(items) => {
            node.is_array()
                && node.len() == items.len()
                && node.elements().zip(items).all(|(element, item)| equals(element, item))
        }
        serde_json::Value::Object(members) => {
            node.is_object()
                && node.len() == members.len()
                && members.iter().all(|(key, value)| node.get(key).is_some_and(|found| equals(found, value)))
        }
    }
}

// `uniqueItems` without building a second tree.

/// Up to this number of elements, all pairs are compared.
const MAX_PAIRWISE: usize = 12;

/// Returns whether all elements of an array are different (JSON equality).
pub(super) fn is_unique(array: Node<'_>) -> bool {
    if array.len() <= MAX_PAIRWISE { all_pairs_differ(array.elements()) } else { all_digests_differ(array) }
}

/// Returns the indices of the elements of an array that equal an earlier one (JSON equality).
pub(crate) fn repeated(array: Node<'_>) -> Vec<usize> {
    let mut repeated: Vec<usize> = Vec::new();
    let elements = by_digest(array);
    for alike in elements.chunk_by(|left, right| left.digest == right.digest) {
        for (at, element) in alike.iter().enumerate() {
            if alike.iter().take(at).any(|other| other.node == element.node) {
                repeated.push(element.index);
            }
        }
    }
    repeated.sort_unstable();
    repeated
}

/// An element of an array with the digest of its value.
struct Element<'a> {
    digest: u64,
    index: usize,
    node: Node<'a>,
}

/// Returns the elements of an array by their digests, equal ones in the order of the array. The digest has a random key, so
/// that no input can force collisions. The only memory that it needs is one list.
fn by_digest(array: Node<'_>) -> Vec<Element<'_>> {
    let state = RandomState::new();
    let elements = array.elements().enumerate();
    let elements = elements.map(|(index, node)| Element { digest: digest(&state, node), index, node });
    let mut elements: Vec<_> = elements.collect();
    elements.sort_unstable_by_key(|element| (element.digest, element.index));
    elements
}

fn all_pairs_differ<'a>(mut rest: impl Iterator<Item = Node<'a>> + Clone) -> bool {
    while let Some(element) = rest.next() {
        if rest.clone().any(|other| other == element) {
            return false;
        }
    }
    true
}

/// Compares elements with equal digests only.
fn all_digests_differ(array: Node<'_>) -> bool {
    let elements = by_digest(array);
    let mut alike = elements.chunk_by(|left, right| left.digest == right.digest);
    alike.all(|alike| all_pairs_differ(alike.iter().map(|element| element.node)))
}

/// Returns a digest that is equal for equal values; the order of members does not matter.
fn digest(state: &RandomState, node: Node<'_>) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write_u8(node.kind() as u8);
    match node.kind() {
        Kind::Null => {}
        Kind::Bool => hasher.write_u8(u8::from(node.as_bool() == Some(true))),
        Kind::Number => node.as_number().hash(&mut hasher),
        Kind::String => hasher.write(node.as_str().unwrap_or_default().as_bytes()),
        Kind::Array => node.elements().for_each(|element| hasher.write_u64(digest(state, element))),
        Kind::Object => hasher.write_u64(members(state, node)),
    }
    hasher.finish()
}

fn members(state: &RandomState, object: Node<'_>) -> u64 {
    let pairs = object.members().map(|(key, value)| state.hash_one((key, digest(state, value))));
    pairs.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use jsonschema::json::Node as _;

    use super::*;

    #[test]
    fn node_has_the_value_of_its_kind_only() {
        for (text, boolean, is_number) in [
            ("true", Some(true), false),
            ("false", Some(false), false),
            ("1", None, true),
            ("\"1\"", None, false),
        ] {
            let tree = Value::parse(text).unwrap();
            let node = tree.node();
            assert_eq!((node.as_boolean(), json::Node::is_number(&node)), (boolean, is_number), "{text}");
            assert_eq!(
                *json::Node::to_value(&node),
                serde_json::from_str::<serde_json::Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn number_is_an_integer_if_it_is_written_as_one() {
        for (text, unsigned, signed) in [
            ("7", Some(7), Some(7)),
            ("-7", None, Some(-7)),
            ("7.0", None, None),
            ("7e0", None, None),
            ("999999999999999", Some(999_999_999_999_999), Some(999_999_999_999_999)),
            ("18446744073709551615", Some(u64::MAX), None),
            ("18446744073709551616", None, None),
        ] {
            let tree = Value::parse(text).unwrap();
            let number = json::Node::as_number(&tree.node()).unwrap();
            assert_eq!((number.as_u64(), number.as_i64()), (unsigned, signed), "{text}");
            assert_eq!(number.as_str(), text);
            assert_eq!(number.is_written_as_integer(), !text.contains(['.', 'e']), "{text}");
        }
    }

    #[test]
    fn short_literals_have_at_most_15_digits() {
        for (text, integer, decimal) in [
            ("42", Some(42), Some(42.0)),
            ("999999999999999", Some(999_999_999_999_999), Some(999_999_999_999_999.0)),
            ("9999999999999999", None, None),
            ("1.25", None, Some(1.25)),
            ("-0.5", None, Some(-0.5)),
            ("0.1234567890123", None, Some(0.123_456_789_012_3)),
            ("1e2", None, None),
        ] {
            assert_eq!((short_integer(text), short_decimal(text)), (integer, decimal), "{text}");
        }
    }
}

#[cfg(test)]
mod unique_tests {
    use cog_json::Value;

    use super::*;

    fn are_alike(left: &str, right: &str) -> bool {
        let state = RandomState::new();
        let digest = |text| digest(&state, Value::parse(text).unwrap().node());
        digest(left) == digest(right)
    }

    #[test]
    fn equal_values_have_equal_digests() {
        for (left, right) in [
            ("1", "1.0"),
            ("[1, -0]", "[1e0, 0.0]"),
            (r#"{"a": 1, "b": "é"}"#, r#"{"b": "\u00e9", "a": 10e-1}"#),
        ] {
            assert!(are_alike(left, right), "{left} {right}");
        }
    }

    #[test]
    fn numbers_that_are_one_float_have_different_digests() {
        assert!(!are_alike("9007199254740993", "9007199254740992"));
        assert!(!are_alike("10000000000000000000000001", "10000000000000000000000002"));
    }

    #[test]
    fn members_with_exchanged_values_have_different_digests() {
        assert!(!are_alike(r#"{"a": 1, "b": 2}"#, r#"{"a": 2, "b": 1}"#));
    }
}
