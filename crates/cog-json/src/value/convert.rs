//! Conversions from and to `serde_json`, and serialization.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::node::{Kind, Node};
use crate::value::Value;

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
            Kind::Number => number(*self).serialize(serializer),
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
        Kind::Number => serde_json::Value::Number(number(node)),
        Kind::Array => node.elements().map(to_serde).collect(),
        Kind::Object => node.members().map(|(key, value)| (key, to_serde(value))).collect(),
    }
}

/// Returns an integer if the literal is one of 64 bits, otherwise the nearest float, which the parser of `serde_json`
/// sometimes misses by a bit.
fn number(node: Node<'_>) -> serde_json::Number {
    let number = node.as_number();
    let integer = number.filter(|it| it.is_plain_integer() && it.literal() != "-0");
    integer
        .and_then(|it| it.as_u64().map(Into::into).or_else(|| it.as_i64().map(Into::into)))
        .or_else(|| serde_json::Number::from_f64(number?.as_f64()))
        .unwrap_or_else(|| 0.into())
}
