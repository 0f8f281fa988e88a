use cog_json::Value;

use super::*;

#[test]
fn finds_members_and_elements() {
    let value = Value::parse(r#"{"a-b": [{"x y": 1}, {"é": 2}], "list": [1, 2]}"#).unwrap();
    let find = |path: &str| ValuePath::parse(path).unwrap().find(value.node()).map(|node| node.to_string());
    assert_eq!(find("$.a-b[0]['x y']").as_deref(), Some("1"));
    assert_eq!(find("$[\"a-b\"][-1].é").as_deref(), Some("2"));
    assert_eq!(find("$.list[ -2 ]").as_deref(), Some("1"));
    for absent in ["$.list[2]", "$.list[-3]", "$.list.x", "$.none", "$[0]"] {
        assert_eq!(find(absent), None, "{absent}");
    }
    assert_eq!(find("$").map(|text| text.len()), Some(value.node().to_string().len()));
}

#[test]
fn rejects_paths_to_several_values() {
    for text in ["$.*", "$..a", "$[*]", "$[0:1]", "$[0,1]", "$[?@.a]"] {
        let error = ValuePath::read(&mut Cursor::new(text)).unwrap().unwrap_err();
        assert_eq!(error.message, "the path selects several values", "{text}");
    }
}

#[test]
fn rejects_incomplete_steps() {
    for text in ["$.", "$.1", "$[", "$[a]", "$['a'", "$[99999999999999999999]", "$.-a"] {
        assert!(ValuePath::read(&mut Cursor::new(text)).unwrap().is_err(), "{text}");
    }
    assert!(ValuePath::parse(&format!("${}", ".a".repeat(33))).is_none());
}

#[test]
fn displays_as_a_json_path() {
    for text in ["$", "$.a.b_1[0]", "$['a-b'][-1]"] {
        assert_eq!(ValuePath::parse(text).unwrap().to_string(), text);
    }
}
