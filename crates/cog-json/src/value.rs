//! A JSON value that owns its tree.

use std::{
    borrow::Cow,
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock},
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor},
    ser::{SerializeMap, SerializeSeq},
};

use crate::{
    error::SyntaxError,
    event::Limits,
    node::{Elements, Kind, Members, Node},
    number::Number,
    parser::Parser,
    tape::{Entry, Tag, Tape},
    typed::VALUE_TOKEN,
    write::{ToJson, Writer},
};

/// An immutable JSON value. Clones, and values taken out of it with [`Value::child`], share one tree.
#[derive(Clone)]
pub struct Value {
    tape: Arc<Tape>,
    index: u32,
}

impl Value {
    /// Parses exactly RFC 8259, within [`Limits::default`]. The last of duplicate keys counts.
    ///
    /// # Errors
    /// When the text is not JSON, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Value, SyntaxError> {
        Parser::one_shot(text.as_bytes(), Limits::default())
    }

    /// Parses bytes, which must be UTF-8.
    ///
    /// # Errors
    /// When the bytes are not UTF-8, start with a byte order mark, are not JSON, or exceed a limit.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Value, SyntaxError> {
        Self::parse_within(bytes, Limits::default())
    }

    /// Parses bytes within the given limits.
    ///
    /// # Errors
    /// As [`Value::parse_bytes`].
    pub fn parse_within(bytes: &[u8], limits: Limits) -> Result<Value, SyntaxError> {
        Parser::one_shot(bytes, limits)
    }

    /// Returns the value `null`.
    #[must_use]
    pub fn null() -> Value {
        static NULL: LazyLock<Arc<Tape>> = LazyLock::new(|| {
            Arc::new(Tape { entries: vec![Entry::scalar(Tag::Null, 0, 0)], ..Tape::default() })
        });
        Value { tape: Arc::clone(&NULL), index: 0 }
    }

    /// Returns a view of the root, through which the value is read.
    #[inline]
    #[must_use]
    pub fn node(&self) -> Node<'_> {
        Node { tape: &self.tape, index: self.index }
    }

    /// Returns a node as a value that shares the memory of this one. A node of another value is copied.
    #[must_use]
    pub fn child(&self, node: Node<'_>) -> Value {
        match std::ptr::eq(node.tape, self.tape.as_ref()) {
            true => Value { tape: Arc::clone(&self.tape), index: node.index },
            false => Value::copy_from(node),
        }
    }

    /// See [`Node::get`].
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Node<'_>> {
        self.node().get(key)
    }

    /// See [`Node::get_str`].
    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.node().get_str(key)
    }

    /// See [`Node::at`].
    #[must_use]
    pub fn at(&self, index: usize) -> Option<Node<'_>> {
        self.node().at(index)
    }

    /// See [`Node::pointer`].
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<Node<'_>> {
        self.node().pointer(pointer)
    }

    /// See [`Node::members`].
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        self.node().members()
    }

    /// See [`Node::elements`].
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        self.node().elements()
    }

    /// See [`Node::as_str`].
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.node().as_str()
    }

    /// See [`Node::as_bool`].
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        self.node().as_bool()
    }

    /// See [`Node::as_f64`].
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.node().as_f64()
    }

    /// See [`Node::as_i64`].
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.node().as_i64()
    }

    /// See [`Node::as_u64`].
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.node().as_u64()
    }

    /// See [`Node::is_null`].
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.node().is_null()
    }

    /// See [`Node::is_object`].
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.node().is_object()
    }

    /// See [`Node::is_array`].
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.node().is_array()
    }

    /// See [`Node::is_string`].
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.node().is_string()
    }

    /// See [`Node::to_serde`].
    #[must_use]
    pub fn to_serde(&self) -> serde_json::Value {
        self.node().to_serde()
    }

    pub(crate) fn from_tape(tape: Tape) -> Value {
        Self::from_tape_at(tape, 0)
    }

    pub(crate) fn from_tape_at(tape: Tape, index: u32) -> Value {
        Value { tape: Arc::new(tape), index }
    }

    pub(crate) fn copy_from(node: Node<'_>) -> Value {
        let mut text = String::new();
        node.write(&mut text);
        Value::from_written_text(text)
    }

    /// Parses text that this crate or `serde_json` wrote.
    #[expect(clippy::expect_used, reason = "a writer whose text does not parse is a defect, not a condition")]
    pub(crate) fn from_written_text(text: String) -> Value {
        Parser::one_shot(text.as_bytes(), Limits::unbounded()).expect("written JSON is JSON")
    }
}

impl Default for Value {
    /// `null`
    fn default() -> Self {
        Value::null()
    }
}

impl PartialEq for Value {
    /// JSON equality: the order of members does not matter, numbers are compared mathematically.
    fn eq(&self, other: &Self) -> bool {
        self.node() == other.node()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node().fmt(f)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.node(), f)
    }
}

impl FromStr for Value {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Value::parse(text)
    }
}

// Conversions from and to `serde_json`, and serialization.

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        Value::from_written_text(value.to_string())
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        Value::from(&value)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.node().serialize(serializer)
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.kind() {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool => serializer.serialize_bool(self.as_bool().unwrap_or_default()),
            Kind::String => serializer.serialize_str(self.as_str().unwrap_or_default()),
            Kind::Number => match self.as_number() {
                Some(number) => number.serialize(serializer),
                None => serializer.serialize_unit(),
            },
            Kind::Array => {
                let mut array = serializer.serialize_seq(Some(self.len()))?;
                self.elements().try_for_each(|element| array.serialize_element(&element))?;
                array.end()
            }
            Kind::Object => {
                let mut object = serializer.serialize_map(Some(self.len()))?;
                self.members().try_for_each(|(key, value)| object.serialize_entry(key, &value))?;
                object.end()
            }
        }
    }
}

pub(crate) fn to_serde(node: Node<'_>) -> serde_json::Value {
    match node.kind() {
        Kind::Null => serde_json::Value::Null,
        Kind::Bool => node.as_bool().into(),
        Kind::String => node.as_str().into(),
        Kind::Number => {
            serde_json::Value::Number(node.as_number().map_or_else(|| 0.into(), Number::to_serde))
        }
        Kind::Array => node.elements().map(to_serde).collect(),
        Kind::Object => node.members().map(|(key, value)| (key, to_serde(value))).collect(),
    }
}

// Deserializing a value from any serde format.

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::new();
        deserializer.deserialize_newtype_struct(VALUE_TOKEN, Copy(&mut Writer::compact(&mut text)))?;
        Ok(Value::from_written_text(text))
    }
}

/// Writes the input of a deserializer as JSON.
struct Copy<'w, 'o>(&'w mut Writer<'o>);

impl<'de> DeserializeSeed<'de> for Copy<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Copy<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can represent")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match value.is_finite() {
            true => self.scalar(&value),
            false => Err(E::custom(format_args!("JSON has no number {value}"))),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    /// Reads the JSON text that the deserializer of this crate provides, so that numbers keep their literals.
    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<(), E> {
        let json = bytes.strip_prefix(VALUE_TOKEN.as_bytes());
        let value = json.and_then(|json| Value::parse_within(json, Limits::unbounded()).ok());
        let value = value.ok_or_else(|| E::invalid_type(Unexpected::Bytes(&bytes), &self))?;
        self.0.node(value.node());
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.null();
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut next = Ok(Some(()));
        self.0.array(|w| {
            while let Ok(Some(())) = next {
                next = items.next_element_seed(Copy(w));
            }
        });
        next.map(|_| ())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut next = Ok(Some(()));
        self.0.object(|w| {
            while let Ok(Some(())) = next {
                next = member(&mut members, w);
            }
        });
        next.map(|_| ())
    }
}

fn member<'de, A: MapAccess<'de>>(members: &mut A, w: &mut Writer<'_>) -> Result<Option<()>, A::Error> {
    let Some(key) = members.next_key::<Cow<'de, str>>()? else { return Ok(None) };
    members.next_value_seed(Copy(w.key(&key))).map(Some)
}

impl Copy<'_, '_> {
    fn scalar<E>(self, value: &(impl ToJson + ?Sized)) -> Result<(), E> {
        value.write_json(self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
