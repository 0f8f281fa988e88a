//! The members of an object that a type does not name: read into one value, and written back.

use cog_json::{Node, Value, Writer};
use serde::{Serialize, ser::SerializeMap};

/// An object inside another one, with the members of it that a type names.
pub(crate) struct Inner<'a, 'k> {
    pub(crate) key: &'k str,
    pub(crate) object: Option<Node<'a>>,
    pub(crate) known: &'k [&'k str],
}

impl Inner<'_, '_> {
    fn has_unknown(&self) -> bool {
        self.object.is_some_and(|object| has_unknown(object, self.known))
    }
}

/// Returns the members of an object that are not `known`, as an object; also the unknown members of the objects inside it.
pub(crate) fn other(node: Node<'_>, known: &[&str], inner: &[Inner<'_, '_>]) -> Option<Value> {
    if !has_unknown(node, known) && !inner.iter().any(Inner::has_unknown) {
        return None;
    }
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        write_unknown(w, node, known);
        for Inner { key, object, known } in inner.iter().filter(|inner| inner.has_unknown()) {
            w.key(key).object(|w| object.iter().for_each(|object| write_unknown(w, *object, known)));
        }
    });
    Value::parse(&text).ok()
}

fn has_unknown(node: Node<'_>, known: &[&str]) -> bool {
    node.members().any(|(key, _)| !known.contains(&key))
}

fn write_unknown(w: &mut Writer<'_>, node: Node<'_>, known: &[&str]) {
    for (key, value) in node.members().filter(|(key, _)| !known.contains(key)) {
        w.key(key).node(value);
    }
}

/// Whether a value says nothing: null, or empty.
pub(crate) fn is_nothing(value: Node<'_>) -> bool {
    let is_container = value.is_array() || value.is_object();
    value.is_null() || value.as_str() == Some("") || is_container && value.is_empty()
}

/// Returns a member of such an object.
pub(crate) fn member<'a>(other: &'a Option<Value>, key: &str) -> Option<Node<'a>> {
    other.as_ref()?.get(key)
}

/// Writes the members of such an object, except those that are written elsewhere.
pub(crate) fn write_other<M: SerializeMap>(
    map: &mut M,
    other: &Option<Value>,
    written: &[&str],
) -> Result<(), M::Error> {
    write_members(map, other.as_ref().map(Value::node), written)
}

/// Writes the members of an object, except those that are written elsewhere.
pub(crate) fn write_members<M: SerializeMap>(
    map: &mut M,
    object: Option<Node<'_>>,
    written: &[&str],
) -> Result<(), M::Error> {
    let members = object.into_iter().flat_map(Node::members);
    members
        .filter(|(key, _)| !written.contains(key))
        .try_for_each(|(key, value)| map.serialize_entry(key, &value))
}

/// Writes a member, unless it is `None`.
pub(crate) fn write_optional<M: SerializeMap>(
    map: &mut M,
    key: &str,
    value: &Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.iter().try_for_each(|value| map.serialize_entry(key, value))
}

/// The largest integer below which every integer is a float.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a number, without a fraction if it has none.
pub(crate) fn write_number<M: SerializeMap>(map: &mut M, key: &str, number: f64) -> Result<(), M::Error> {
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is an integer below 2^53")]
        return map.serialize_entry(key, &(number as i64));
    }
    map.serialize_entry(key, &number)
}
