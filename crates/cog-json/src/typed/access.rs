//! Arrays, objects and enum variants, as serde visits them.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

use crate::node::{self, Node};
use crate::path::Segment;
use crate::typed::DeserializeError;
use crate::typed::Key;

/// The elements of an array that are still to visit.
pub(super) struct Elements<'de> {
    rest: node::Elements<'de>,
    index: usize,
}

impl<'de> Elements<'de> {
    pub(super) fn visit<V: Visitor<'de>>(array: Node<'de>, visitor: V) -> Result<V::Value, DeserializeError> {
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
pub(super) struct Members<'de> {
    rest: node::Members<'de>,
    /// The member whose key was visited.
    member: Option<(&'de str, Node<'de>)>,
}

impl<'de> Members<'de> {
    pub(super) fn visit<V: Visitor<'de>>(
        object: Node<'de>,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
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
pub(super) struct Variant<'de> {
    name: &'de str,
    content: Option<Node<'de>>,
}

impl<'de> Variant<'de> {
    pub(super) fn new(node: Node<'de>) -> Result<Self, DeserializeError> {
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
