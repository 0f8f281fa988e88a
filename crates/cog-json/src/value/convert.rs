//! Conversions from and to `serde_json`, and serialization.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::node::{Kind, Node};
use crate::number::Number;
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
