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
