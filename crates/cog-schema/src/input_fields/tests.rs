use cog_spec::{Format, Manifest};
use serde_json::{Value, json};

use crate::{Contract, Rules};

fn args(input: Value) -> Result<String, Vec<String>> {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, None));
    let contract =
        Contract::compile(&json!({ "input": input, "$defs": { "text": { "type": "string" } } }), &rules);
    contract.unwrap().args_target().map(str::to_owned)
}

#[test]
fn finds_the_field_for_text_in_order_of_precedence() {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let named = json!({ "properties": { "code": text, "query": text, "$ARGUMENTS": text } });
    assert_eq!(args(named).as_deref(), Ok("$ARGUMENTS"));
    assert_eq!(args(json!({ "properties": { "code": text, "query": text } })).as_deref(), Ok("query"));
    let required =
        json!({ "properties": { "a": text, "code": text, "n": number }, "required": ["n", "code"] });
    assert_eq!(args(required).as_deref(), Ok("code"));
    let only =
        json!({ "properties": { "n": number, "code": { "$ref": "#/$defs/text" } }, "required": ["n"] });
    assert_eq!(args(only).as_deref(), Ok("code"));
}

#[test]
fn ambiguous_or_missing_field_returns_the_candidates() {
    let text = json!({ "type": ["string", "null"] });
    assert_eq!(args(json!({ "properties": { "a": text, "b": text } })), Err(vec!["a".into(), "b".into()]));
    let several = json!({ "properties": { "a": text, "b": text, "c": text }, "required": ["c", "b"] });
    assert_eq!(args(several), Err(vec!["b".into(), "c".into()]));
    assert_eq!(args(json!({ "properties": { "n": { "type": "number" } } })), Err(vec![]));
}

#[test]
fn field_for_text_accepts_a_string() {
    assert_eq!(args(json!({ "properties": { "n": { "type": ["number", "null"] } } })), Err(vec![]));
}

fn media(input: Value) -> (Vec<(String, bool)>, bool) {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, None));
    let contract = Contract::compile(&json!({ "input": input }), &rules).unwrap();
    let fields = contract.media_fields().into_iter();
    (fields.map(|field| (field.name.to_owned(), field.is_list)).collect(), contract.takes_media())
}

#[test]
fn fields_for_media_are_single_or_lists() {
    let one = json!({ "$ref": "#/$defs/MediaInput" });
    let properties = json!({
        "text": { "type": "string" },
        "photo": one,
        "texts": { "type": "array", "items": { "type": "string" } },
        "photos": { "type": "array", "items": one },
        "optional": { "anyOf": [one, { "type": "null" }] },
    });
    let expected = [("photo", false), ("photos", true), ("optional", false)];
    let expected: Vec<(String, bool)> = expected.map(|(name, is_list)| (name.to_owned(), is_list)).into();
    assert_eq!(media(json!({ "properties": properties })), (expected, true));
    let twice = json!({ "properties": { "a": one }, "allOf": [{ "properties": { "a": one } }] });
    assert_eq!(media(twice), (vec![("a".to_owned(), false)], true));
    assert_eq!(media(json!({ "properties": { "a": { "type": "string" } } })), (vec![], false));
    let inner = json!({ "properties": { "a": { "properties": { "b": one } } } });
    assert_eq!(media(inner), (vec![], true));
}
