use serde::de::value::{BytesDeserializer, Error};
use serde::de::{IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::json;

use super::*;
use crate::node::Kind;

fn value(text: &str) -> Value {
    Value::parse(text).unwrap()
}

#[test]
fn reads_through_pointers() {
    let value = value(r#"{"a":{"b":[10,{"c~/d":true}]},"":1}"#);
    assert_eq!(value.pointer("/a/b/0").unwrap().as_i64(), Some(10));
    assert_eq!(value.pointer("/a/b/1/c~0~1d").unwrap().as_bool(), Some(true));
    assert_eq!(value.pointer("/").unwrap().as_u64(), Some(1));
    assert_eq!(value.pointer("").unwrap().kind(), Kind::Object);
    for absent in ["a", "/a/b/2", "/a/b/00", "/a/b/-", "/a/b/0/x", "/x"] {
        assert!(value.pointer(absent).is_none(), "{absent}");
    }
}

#[test]
fn last_of_duplicate_keys_counts() {
    let value = value(r#"{"a":1,"b":2,"\u0061":{"x":3}}"#);
    assert_eq!(value.node().len(), 2);
    assert_eq!(value.members().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(value.pointer("/a/x").unwrap().as_u64(), Some(3));
    assert_eq!(value.to_serde(), json!({"b": 2, "a": {"x": 3}}));
}

#[test]
fn large_objects_find_the_last_of_each_key() {
    let members = (0..2000).map(|at| format!("\"key{}\":{at}", at % 1500)).collect::<Vec<_>>();
    let value = value(&format!("{{{}}}", members.join(",")));
    assert_eq!(value.node().len(), 1500);
    assert_eq!(value.members().count(), 1500);
    for at in 0..1500 {
        let expected = if at < 500 { at + 1500 } else { at };
        assert_eq!(value.get(&format!("key{at}")).unwrap().as_u64(), Some(expected));
    }
    assert!(value.get("key1500").is_none());
}

#[test]
fn children_share_the_tree() {
    let value = value(r#"{"a":{"b":[1,2]}}"#);
    let child = value.child(value.get("a").unwrap());
    assert_eq!(child.to_string(), r#"{"b":[1,2]}"#);
    assert_eq!(child.node().tape_id(), value.node().tape_id());
    let copy = child.get("b").unwrap().to_value();
    assert_eq!(copy.to_string(), "[1,2]");
    assert_eq!(Value::null().child(child.node()), child);
}

#[test]
fn equality_ignores_order_and_spelling() {
    assert_eq!(value(r#"{"a":1,"b":[1.0,"\u0041"]}"#), value(r#"{"b":[1,"A"],"a":1e0}"#));
    assert_ne!(value(r#"{"a":1}"#), value(r#"{"a":1,"b":1}"#));
    assert_ne!(value(r#"{"a":1,"a":2}"#), value(r#"{"a":1}"#));
    assert_ne!(value("[1,2]"), value("[2,1]"));
    assert_ne!(value("0"), value("false"));
    assert_eq!(Value::null(), value(" null "));
}

#[test]
fn converts_from_and_to_serde_json() {
    let theirs = json!({"a": [null, true, -1, 2.5, "x\n\"", u64::MAX], "b": {"": {}}});
    assert_eq!(Value::from(&theirs).to_serde(), theirs);
    assert_eq!(value("12345678901234567890123").to_serde(), json!(1.2345678901234568e22));
}

#[test]
fn serializes_and_deserializes() {
    #[derive(Serialize, Deserialize)]
    struct Holder {
        data: Value,
    }
    let text = r#"{"data":{"a":[1,2.5,-3,null,true,"é"],"b":{}}}"#;
    let holder: Holder = serde_json::from_str(text).unwrap();
    assert_eq!(holder.data.pointer("/a/5").unwrap().as_str(), Some("é"));
    assert_eq!(serde_json::to_string(&holder).unwrap(), text);
    assert!(serde_json::from_str::<Holder>(r#"{"data":{"a":[1,"#).is_err());
}

#[test]
fn refuses_invalid_bytes() {
    assert_eq!(Value::parse_bytes("\"é\"".as_bytes()).unwrap().as_str(), Some("é"));
    assert!(Value::parse_bytes(b"\"\xff\"").is_err());
    assert!(Value::parse_bytes(b"\xef\xbb\xbf1").is_err());
}

/// A deserializer that announces whether there is a value, which the one of JSON does not.
struct Announced(Option<u8>);

impl<'de> Deserializer<'de> for Announced {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(content) => visitor.visit_some(content.into_deserializer()),
            None => visitor.visit_none(),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[test]
fn deserializes_from_formats_with_other_forms_than_json() {
    let integer = IntoDeserializer::<Error>::into_deserializer;
    assert_eq!(Value::deserialize(integer(i128::MIN)).unwrap().to_string(), i128::MIN.to_string());
    let integer = IntoDeserializer::<Error>::into_deserializer;
    assert_eq!(Value::deserialize(integer(u128::MAX)).unwrap().to_string(), u128::MAX.to_string());
    assert_eq!(Value::deserialize(Announced(Some(7))).unwrap().to_string(), "7");
    assert_eq!(Value::deserialize(Announced(None)).unwrap(), Value::null());
    let error = Value::deserialize(BytesDeserializer::<Error>::new(b"x")).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: byte array, expected a value that JSON can represent");
}
