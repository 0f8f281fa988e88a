use super::*;
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
    assert_eq!(Value::parse(json).unwrap().to_json(), json);
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
