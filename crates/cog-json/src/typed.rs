//! Values as Rust types: a [`Node`] is a serde deserializer, and any serializable type becomes a value.

use std::fmt;

use serde::{
    Deserialize, Serialize,
    de::{
        self, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor, value::BorrowedStrDeserializer,
    },
    forward_to_deserialize_any, ser,
};

use crate::{
    event::Limits,
    node::{self, Kind, Node},
    number::Number,
    parser::Parser,
    path::{Path, Segment},
    value::Value,
    write::Writer,
};

/// Converts a value into `T`, without a copy of its strings where `T` borrows them.
///
/// A number without a fraction, such as `2.0`, is also an integer, as in JSON Schema.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Review<'a> {
///     verdict: &'a str,
///     score: u8,
/// }
///
/// let value = cog_json::Value::parse(r#"{"verdict": "approve", "score": 7}"#)?;
/// let review: Review = cog_json::from_value(&value)?;
/// assert_eq!((review.verdict, review.score), ("approve", 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the value does not match `T`; the error has the path of the first mismatch.
pub fn from_value<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, DeserializeError> {
    T::deserialize(value.node())
}

/// Converts a type that serde can serialize into a value.
///
/// A float that is not finite becomes `null`, as in `serde_json`.
///
/// # Errors
/// When the serialization of `T` fails, for example for a map whose keys are not strings.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, SerializeError> {
    let mut text = String::new();
    value.serialize(&mut Writer::compact(&mut text))?;
    Parser::one_shot(text.as_bytes(), Limits::unbounded()).map_err(ser::Error::custom)
}

/// The name of the type by which [`Value`] requests JSON text, so that numbers keep their literals. The text is passed
/// as bytes after this name.
pub(crate) const VALUE_TOKEN: &str = "$cog_json::Value";

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
            match self.as_number() {
                Some(number) => visit_integer(number, visitor),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool => visitor.visit_bool(self.as_bool().unwrap_or_default()),
            Kind::Number => match self.as_number() {
                Some(number) => visit_number(number, visitor),
                None => visitor.visit_unit(),
            },
            Kind::String => visitor.visit_borrowed_str(self.as_str().unwrap_or_default()),
            Kind::Array => Elements::visit(self, visitor),
            Kind::Object => Members::visit(self, visitor),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.as_str() {
            Some(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match name == VALUE_TOKEN {
            true => visitor.visit_byte_buf(format!("{VALUE_TOKEN}{self}").into_bytes()),
            false => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_enum(Variant::new(self)?)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool f32 f64 char str string unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// Visits an integer of 64 bits, otherwise the nearest float, as `serde_json` does.
fn visit_number<'de, V: Visitor<'de>>(number: Number<'_>, visitor: V) -> Result<V::Value, DeserializeError> {
    if !number.is_plain_integer() || number.literal() == "-0" {
        return visitor.visit_f64(number.as_f64());
    }
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => visitor.visit_u64(value),
        (None, Some(value)) => visitor.visit_i64(value),
        (None, None) => visitor.visit_f64(number.as_f64()),
    }
}

/// Visits a number for an integer type.
fn visit_integer<'de, V: Visitor<'de>>(number: Number<'_>, visitor: V) -> Result<V::Value, DeserializeError> {
    if let Some(value) = number.as_u64() {
        return visitor.visit_u64(value);
    }
    if let Some(value) = number.as_i64() {
        return visitor.visit_i64(value);
    }
    match (number.as_i128(), number.literal().parse()) {
        (Some(value), _) => visitor.visit_i128(value),
        (None, Ok(value)) => visitor.visit_u128(value),
        (None, Err(_)) => visitor.visit_f64(number.as_f64()),
    }
}

// The errors of conversions between values and types.

/// A value does not match the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeserializeError {
    path: Path,
    message: String,
}

impl DeserializeError {
    /// Returns the path of the value that does not match.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the message without the path.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Adds the step from the container of the value to the path.
    fn inside(self, segment: Segment<'_>) -> Self {
        let path = std::iter::once(segment).chain(self.path.segments()).collect();
        Self { path, message: self.message }
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_root() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

impl std::error::Error for DeserializeError {}

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: Path::root(), message: message.to_string() }
    }
}

/// A type cannot be written as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SerializeError {
    message: String,
}

impl ser::Error for SerializeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string() }
    }
}

// Keys of objects: text, which may be the text of a number or boolean.

/// The key of a member.
struct Key<'de>(&'de str);

macro_rules! parsed {
    ($($method:ident $visit:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = DeserializeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i8
        deserialize_i16 visit_i16
        deserialize_i32 visit_i32
        deserialize_i64 visit_i64
        deserialize_i128 visit_i128
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
        deserialize_u128 visit_u128
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

// Arrays, objects and enum variants, as serde visits them.

/// The elements of an array that are still to visit.
struct Elements<'de> {
    rest: node::Elements<'de>,
    index: usize,
}

impl<'de> Elements<'de> {
    fn visit<V: Visitor<'de>>(array: Node<'de>, visitor: V) -> Result<V::Value, DeserializeError> {
        let mut elements = Elements { rest: array.elements(), index: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        // A tuple reads only as many elements as it has fields; the others must not be lost.
        match elements.rest.len() {
            0 => Ok(value),
            _ => Err(DeserializeError::invalid_length(array.len(), &"fewer elements in the array")),
        }
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'de> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DeserializeError> {
        let Some(element) = self.rest.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(element).map(Some).map_err(|error| error.inside(Segment::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The members of an object that are still to visit.
struct Members<'de> {
    rest: node::Members<'de>,
    /// The member whose key was visited.
    member: Option<(&'de str, Node<'de>)>,
}

impl<'de> Members<'de> {
    fn visit<V: Visitor<'de>>(object: Node<'de>, visitor: V) -> Result<V::Value, DeserializeError> {
        let mut members = Members { rest: object.members(), member: None };
        let value = visitor.visit_map(&mut members)?;
        match members.rest.len() {
            0 => Ok(value),
            _ => Err(DeserializeError::invalid_length(object.len(), &"fewer members in the object")),
        }
    }
}

impl<'de> MapAccess<'de> for &mut Members<'de> {
    type Error = DeserializeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DeserializeError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.member = Some((key, value));
        seed.deserialize(Key(key)).map(Some).map_err(|error| error.inside(Segment::Key(key)))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DeserializeError> {
        let Some((key, value)) = self.member.take() else {
            return Err(DeserializeError::custom("a value was requested before its key"));
        };
        seed.deserialize(value).map_err(|error| error.inside(Segment::Key(key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A variant of an enum: a string, or an object with one member.
struct Variant<'de> {
    name: &'de str,
    content: Option<Node<'de>>,
}

impl<'de> Variant<'de> {
    fn new(node: Node<'de>) -> Result<Self, DeserializeError> {
        if let Some(name) = node.as_str() {
            return Ok(Variant { name, content: None });
        }
        let mut members = node.members();
        match (members.next(), members.next()) {
            (Some((name, content)), None) => Ok(Variant { name, content: Some(content) }),
            _ => Err(DeserializeError::custom(format_args!(
                "invalid type: {}, expected a string or an object with one member",
                node.kind()
            ))),
        }
    }

    /// Visits the content as `visit` does; a variant without content is an error.
    fn visit<T>(
        self,
        expected: &str,
        visit: impl FnOnce(Node<'de>) -> Result<T, DeserializeError>,
    ) -> Result<T, DeserializeError> {
        let Some(content) = self.content else {
            return Err(DeserializeError::invalid_type(Unexpected::UnitVariant, &expected));
        };
        visit(content).map_err(|error| error.inside(Segment::Key(self.name)))
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = DeserializeError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), DeserializeError> {
        Ok((seed.deserialize(Key(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<(), DeserializeError> {
        match self.content {
            None => Ok(()),
            Some(_) => self.visit("a variant without content", <() as serde::Deserialize>::deserialize),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeserializeError> {
        self.visit("a variant with a value", |content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, DeserializeError> {
        self.visit("a variant with an array", |content| content.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        self.visit("a variant with an object", |content| content.deserialize_struct("", fields, visitor))
    }
}

#[cfg(test)]
mod tests;
