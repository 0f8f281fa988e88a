use super::*;
use crate::event::Limits;
use crate::parser::Parser;

fn value(text: &str) -> Value {
    text.parse().unwrap()
}

#[test]
fn each_value_is_of_exactly_one_kind() {
    for (text, kind) in [
        ("null", Kind::Null),
        ("true", Kind::Bool),
        ("false", Kind::Bool),
        ("-1", Kind::Number),
        (r#""x""#, Kind::String),
        ("[0]", Kind::Array),
        (r#"{"a":0}"#, Kind::Object),
    ] {
        let value = value(text);
        let node = value.node();
        assert_eq!(node.kind(), kind, "{text}");
        let of_node = [node.is_null(), node.is_string(), node.is_array(), node.is_object()];
        let of_value = [value.is_null(), value.is_string(), value.is_array(), value.is_object()];
        let expected = [Kind::Null, Kind::String, Kind::Array, Kind::Object].map(|it| it == kind);
        assert_eq!((of_node, of_value), (expected, expected), "{text}");
        assert_eq!(value.as_bool(), (kind == Kind::Bool).then_some(text == "true"), "{text}");
        assert_eq!(value.as_i64(), (kind == Kind::Number).then_some(-1), "{text}");
        assert_eq!(value.as_f64(), (kind == Kind::Number).then_some(-1.0), "{text}");
        assert_eq!((format!("{node:?}"), format!("{value:?}")), (text.to_owned(), text.to_owned()));
    }
    assert_eq!((value("7").as_u64(), value("7").as_i64(), value("-7").as_u64()), (Some(7), Some(7), None));
    assert!("{".parse::<Value>().is_err());
}

#[test]
fn only_containers_with_contents_are_not_empty() {
    for (text, len) in [("[]", 0), ("{}", 0), (r#""x""#, 0), ("7", 0), ("[0,0]", 2), (r#"{"a":1,"a":2}"#, 1)]
    {
        let value = value(text);
        assert_eq!((value.node().len(), value.node().is_empty()), (len, len == 0), "{text}");
    }
}

#[test]
fn iterators_know_how_many_are_left() {
    let value = value(r#"{"a":[1,2],"b":0,"c":0,"b":1}"#);
    let mut members = value.members();
    assert_eq!((members.len(), members.next().map(|(key, _)| key), members.len()), (3, Some("a"), 2));
    let mut elements = value.get("a").unwrap().elements();
    assert_eq!((elements.len(), elements.next().is_some(), elements.len()), (2, true, 1));
}

#[test]
fn prepared_key_finds_what_the_key_finds() {
    let key = Key::new("b");
    assert_eq!(key.as_str(), "b");
    for text in [r#"{"a":1,"b":2}"#, r#"{"a":1}"#, "[1]"] {
        let value = value(text);
        assert_eq!(value.node().get_key(&key), value.get("b"), "{text}");
    }
    assert_eq!(value(r#"{"b":2}"#).node().get_key(&key).and_then(Node::as_u64), Some(2));
}

#[test]
fn only_a_complete_string_without_escapes_is_in_the_source() {
    let mut parser = Parser::strict(Limits::default());
    parser.push(r#"{"k":"ab","e":"a\n","n":12,"open":"ab"#.as_bytes(), &mut |_| {}).unwrap();
    let root = parser.root().unwrap();
    let range = |key: &str| root.get(key).unwrap().literal_range();
    assert_eq!(range("k"), Some(6..8));
    assert_eq!((range("e"), range("n"), range("open"), root.literal_range()), (None, None, None, None));
    assert_eq!((root.offset(), root.get("k").unwrap().offset(), root.get("n").unwrap().offset()), (0, 6, 24));
}

#[test]
fn member_of_a_draft_is_absent_until_its_value_begins() {
    let mut parser = Parser::strict(Limits::default());
    parser.push(br#"{"a":1,"b":"#, &mut |_| {}).unwrap();
    let root = parser.root().unwrap();
    assert_eq!((root.get("a").and_then(Node::as_u64), root.get("b")), (Some(1), None));
}

#[test]
fn tapes_have_different_identifiers() {
    let one = value("[1]");
    let other = value("[1]");
    assert_ne!(one.node().tape_id(), other.node().tape_id());
    assert_eq!(one.node().tape_id(), one.at(0).unwrap().tape_id());
    let pair = value("[1,2]");
    assert_eq!((pair.node().id().as_u32(), pair.at(1).unwrap().id().as_u32()), (0, 2));
}

#[test]
fn null_is_complete() {
    let null = Value::null();
    assert!(null.is_null() && null.node().is_complete());
    assert_eq!((null.to_string(), Value::default()), ("null".to_owned(), null.clone()));
}
