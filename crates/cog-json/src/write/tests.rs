use std::collections::BTreeMap;

use super::*;
use crate::typed::to_value;
use crate::value::Value;

#[test]
fn indents_by_two_spaces_except_in_empty_containers() {
    let value = Value::parse(r#"{"a":[1,{"b":[]}],"c":{},"d":"x"}"#).unwrap();
    let expected =
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {},\n  \"d\": \"x\"\n}";
    assert_eq!(value.to_json_pretty(), expected);
    assert_eq!(Value::parse(expected).unwrap().to_json(), r#"{"a":[1,{"b":[]}],"c":{},"d":"x"}"#);
}

#[test]
fn escapes_only_what_must_be_escaped() {
    let text: String = (0..0x80_u8).map(char::from).chain("é\u{2028}😀".chars()).collect();
    let json = text.to_json();
    assert_eq!(json, serde_json::to_string(&text).unwrap());
    assert_eq!(Value::parse(&json).unwrap().as_str(), Some(text.as_str()));
}

#[test]
fn numbers_keep_their_literals() {
    let json = r#"[1.0,-0,1E+2,12345678901234567890123,0.10]"#;
    let value = Value::parse(json).unwrap();
    assert_eq!(value.to_json(), json);
    assert_eq!(to_value(&[&value]).unwrap().to_json(), format!("[{json}]"));
    assert_eq!(serde_json::to_string(&value).unwrap(), "[1.0,-0.0,100.0,1.2345678901234568e+22,0.1]");
}

#[derive(Serialize)]
enum Everything<'a> {
    Unit,
    Newtype(Option<u8>),
    Tuple(i128, char),
    Struct { bytes: &'a [u8], float: f32, map: BTreeMap<i8, ()>, flags: (bool, Unit) },
}

#[derive(Serialize)]
struct Unit;

#[test]
fn serializes_as_serde_json_does() {
    let map = BTreeMap::from([(-1, ()), (2, ())]);
    let values = [
        Everything::Unit,
        Everything::Newtype(Some(7)),
        Everything::Newtype(None),
        Everything::Tuple(i128::MAX, 'é'),
        Everything::Struct { bytes: b"ab", float: 1.1, map, flags: (true, Unit) },
    ];
    assert_eq!(values.as_slice().to_json(), serde_json::to_string(&values).unwrap());
    assert_eq!(values.as_slice().to_json_pretty(), serde_json::to_string_pretty(&values).unwrap());
}

#[test]
fn value_that_cannot_be_serialized_becomes_null() {
    let mut out = String::new();
    Writer::compact(&mut out).object(|w| {
        w.field("a", &BTreeMap::from([("k", BTreeMap::from([((1, 2), 3)]))])).field("b", &1);
    });
    assert_eq!(out, r#"{"a":null,"b":1}"#);
}

#[test]
fn floats_that_are_not_finite_become_null() {
    assert_eq!([0.5, f64::NAN, f64::INFINITY, 3.0].as_slice().to_json(), "[0.5,null,null,3.0]");
}

#[test]
fn absent_members_are_left_out() {
    let mut out = String::new();
    Writer::pretty(&mut out).object(|w| {
        w.optional("a", &None::<u32>).optional("b", &Some(1)).field("c", &None::<u32>);
    });
    assert_eq!(out, "{\n  \"b\": 1,\n  \"c\": null\n}");
}

#[test]
fn writes_only_the_last_of_duplicate_keys() {
    let value = Value::parse(r#"{"a":{"x":1},"b":2,"a":[3]}"#).unwrap();
    assert_eq!(value.to_json(), r#"{"b":2,"a":[3]}"#);
}

#[test]
fn serializes_bytes_and_addresses_as_serde_json_does() {
    let bytes = c"ab";
    let address = std::net::Ipv4Addr::LOCALHOST;
    assert_eq!(bytes.to_json(), serde_json::to_string(bytes).unwrap());
    assert_eq!(address.to_json(), serde_json::to_string(&address).unwrap());
}

#[test]
fn parts_of_a_string_are_one_string() {
    let mut out = String::new();
    Writer::compact(&mut out).array(|w| {
        w.string_of(&["a\"", "", "é\n"]);
        w.string_of(&[]);
    });
    assert_eq!(out, r#"["a\"é\n",""]"#);
}

struct Code(u8);

impl ToJson for Code {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(&format!("E{}", self.0));
    }
}

#[test]
fn array_writes_each_value_in_its_own_form() {
    assert_eq!(Array(&[Code(1), Code(2)]).to_json(), r#"["E1","E2"]"#);
}
