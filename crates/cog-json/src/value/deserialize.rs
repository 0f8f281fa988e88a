//! Deserializing a value from any serde format.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::event::Limits;
use crate::typed::VALUE_TOKEN;
use crate::value::Value;
use crate::write::{ToJson, Writer};

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
