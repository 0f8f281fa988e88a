use super::*;

fn at(path: &str, value: Value) -> Vec<String> {
    let document = json!({
        "data": { "allOf": [{ "$ref": "#/$defs/base" }], "properties": { "list": { "items": { "$ref": "#/$defs/item" } } } },
        "$defs": {
            "base": { "properties": { "title": { "maxLength": 3 } }, "additionalProperties": { "type": "array" } },
            "item": { "properties": { "kind": { "enum": ["a"] } }, "oneOf": [{ "required": ["kind"] }, { "required": ["x"] }] },
        },
    });
    let contract = contract(document, &rules(Tier::Decision));
    lines(&contract.check_at(&path.parse().unwrap(), Tree::from(value).node()))
}

#[test]
fn completed_value_is_checked_by_its_path() {
    assert_eq!(at("data.title", json!("abcd")), ["data.title maxLength E3001"]);
    assert_eq!(at("data.list[3].kind", json!("b")), ["data.list[3].kind enum E3005"]);
    assert_eq!(at("data.list[0]", json!({})), ["data.list[0].kind required E3001"]);
    assert_eq!(at("data.other", json!(1)), ["data.other type E3001"]);
}

#[test]
fn values_without_a_schema_are_valid() {
    for path in ["data.title", "data.list[0].more", "meta.risk", "elsewhere", ""] {
        assert_eq!(at(path, json!("abc")), [""; 0], "{path}");
    }
}
