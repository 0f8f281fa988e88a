use std::sync::LazyLock;

use cog_json::Value as Tree;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Contract;
use crate::engine::differential::{schemas, value};
use crate::search::tests::contract;

/// Returns the verdicts of the fast path and of the engine.
fn verdicts(contract: &Contract, value: &Value) -> (bool, bool) {
    let tree = Tree::from(value);
    let part = contract.data.as_ref().unwrap();
    let engine = |id, node| contract.check_of(id).is_some_and(|check| check.accepts(node));
    (contract.accepts_unshared(part.id, tree.node()), engine(part.id, tree.node()))
}

/// Returns schemas with only simple keywords.
fn simple() -> Vec<Value> {
    let item = json!({
        "type": "object",
        "required": ["a", "key"],
        "properties": { "a": { "type": "integer", "minimum": -1, "maximum": 3 }, "key": { "enum": ["a", "b"] }, "é": {} },
        "additionalProperties": { "type": ["number", "null", "boolean"] },
    });
    vec![
        json!({ "type": "number", "minimum": -0.5 }),
        json!({ "type": "string", "minLength": 1, "maxLength": 2 }),
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 3 }),
        json!({ "properties": { "a": { "type": "array", "items": {} } }, "additionalProperties": false }),
        json!({ "items": item.clone() }),
        json!({ "type": "integer" }),
        json!({ "enum": ["a", "b", 1, 2.5, -0.0, 9_007_199_254_740_993_i64, null, true], "maximum": 2 }),
        json!({ "type": ["string", "integer"], "enum": ["a", "", 1.0, false, 0.5], "minLength": 1 }),
        json!({ "enum": ["a", "b"], "const": "b" }),
        json!({ "enum": ["a", 1, [1]], "const": 1 }),
        json!({ "items": { "enum": (0..20).map(|n| json!(["a", "aé", "b", "é"].get(n).map_or(format!("{n}"), |it| (*it).to_owned()))).collect::<Vec<_>>() } }),
        item,
    ]
}

#[test]
fn checks_simple_schemas_without_the_engine() {
    let contract = contract(simple().pop().unwrap());
    for valid in [r#"{"a": 1, "key": "b", "é": [1], "c": null}"#, r#"{"key": "a", "c": -1.5, "a": 3}"#] {
        assert_eq!(verdicts(&contract, &serde_json::from_str(valid).unwrap()), (true, true), "{valid}");
    }
    for invalid in [
        r#"{"a": 1}"#,
        r#"{"a": 4, "key": "b"}"#,
        r#"{"a": 1.5, "key": "b"}"#,
        r#"{"a": 1, "key": "b", "c": "x"}"#,
    ] {
        assert_eq!(verdicts(&contract, &serde_json::from_str(invalid).unwrap()), (false, false), "{invalid}");
    }
}

#[test]
fn engine_checks_other_keywords() {
    let contract = contract(
        json!({ "properties": { "a": { "pattern": "^x" }, "b": { "oneOf": [{ "type": "null" }] } } }),
    );
    assert_eq!(verdicts(&contract, &json!({ "a": "xy", "b": null })), (true, true));
    assert_eq!(verdicts(&contract, &json!({ "a": "y", "b": null })), (false, false));
}

/// Compiled once: a property has many cases.
static CONTRACTS: LazyLock<Vec<Contract>> =
    LazyLock::new(|| schemas().into_iter().chain(simple()).map(contract).collect());

proptest! {
    #[test]
    fn fast_path_agrees_with_the_engine(value in value()) {
        for contract in CONTRACTS.iter() {
            let (ours, engine) = verdicts(contract, &value);
            prop_assert_eq!(ours, engine, "{} {}", contract.document(), value);
        }
    }
}

#[test]
fn lengths_count_characters_and_not_bytes() {
    let contract = contract(json!({ "type": "string", "minLength": 2, "maxLength": 3 }));
    for (text, fits) in [("é", false), ("🦀", false), ("éé", true), ("🦀🦀🦀", true), ("🦀🦀🦀🦀", false)]
    {
        assert_eq!(verdicts(&contract, &json!(text)), (fits, fits), "{text}");
    }
}
