//! Writing any type that serde can serialize, in the form that `serde_json` writes.

use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::number::NUMBER_TOKEN;
use crate::typed::SerializeError;
use crate::write::Writer;

macro_rules! literals {
    ($($method:ident $integer:ty)*) => {
        $(fn $method(self, value: $integer) -> Result<(), SerializeError> {
            self.literal(&value.to_string());
            Ok(())
        })*
    };
}

impl Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    literals! {
        serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_i64 i64 serialize_i128 i128
        serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 serialize_u64 u64 serialize_u128 u128
    }

    /// A writer that expects a literal differs in this from the serializer that announced the number.
    fn is_human_readable(&self) -> bool {
        !self.expects_literal
    }

    fn serialize_bool(self, value: bool) -> Result<(), SerializeError> {
        self.bool(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), SerializeError> {
        self.literal(&serde_json::to_string(&value).map_err(Error::custom)?);
        Ok(())
    }

    /// Writes a float with as few digits as identify it; `null` if it is not finite.
    fn serialize_f64(self, value: f64) -> Result<(), SerializeError> {
        self.literal(&serde_json::to_string(&value).map_err(Error::custom)?);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), SerializeError> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<(), SerializeError> {
        match std::mem::take(&mut self.expects_literal) {
            true => self.literal(text),
            false => self.string(text),
        }
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), SerializeError> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<(), SerializeError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), SerializeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), SerializeError> {
        self.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), SerializeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), SerializeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        self.expects_literal = name == NUMBER_TOKEN;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), SerializeError> {
        self.open('{');
        value.serialize(self.key(variant))?;
        self.close('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, SerializeError> {
        self.open('[');
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, SerializeError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, SerializeError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, SerializeError> {
        self.open('{');
        self.key(variant).serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, SerializeError> {
        self.open('{');
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, SerializeError> {
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, SerializeError> {
        self.open('{');
        self.key(variant).serialize_map(None)
    }
}

impl SerializeMap for &mut Writer<'_> {
    type Ok = ();
    type Error = SerializeError;

    /// Writes the key as a value, and adds the quotes if it is a number or a boolean.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerializeError> {
        self.separate();
        let start = self.out.len();
        // As after a key, so that the value is written without a comma and a line break.
        self.after_key = true;
        key.serialize(&mut **self)?;
        match self.out.as_bytes().get(start) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(start, '"');
                self.out.push('"');
            }
            _ => return Err(SerializeError::custom("key must be a string")),
        }
        self.end_key();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerializeError> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), SerializeError> {
        self.close('}');
        Ok(())
    }
}

/// Implements the traits of the other compound values: those with keys, and those without.
macro_rules! compounds {
    ($($compound:ident $method:ident ($($key:ident)?) $($bracket:literal)+;)*) => {
        $(impl $compound for &mut Writer<'_> {
            type Ok = ();
            type Error = SerializeError;

            fn $method<T: Serialize + ?Sized>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), SerializeError> {
                $(self.key($key);)?
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), SerializeError> {
                $(self.close($bracket);)+
                Ok(())
            }
        })*
    };
}

compounds! {
    SerializeSeq serialize_element () ']';
    SerializeTuple serialize_element () ']';
    SerializeTupleStruct serialize_field () ']';
    SerializeTupleVariant serialize_field () ']' '}';
    SerializeStruct serialize_field (key) '}';
    SerializeStructVariant serialize_field (key) '}' '}';
}
