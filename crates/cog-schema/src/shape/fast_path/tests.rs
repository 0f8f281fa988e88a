use std::sync::LazyLock;

use cog_json::Value as Tree;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Contract;
use crate::engine::differential::{schemas, value};
use crate::search::tests::contract;

/// Whether a value fits at a fast_path, and whether the engine alone says that it fits.
fn judged(contract: &Contract, value: &Value) -> (bool, bool) {
    let tree = Tree::from(value);
    let part = contract.data.as_ref().unwrap();
    let engine = |id, node| contract.check_of(id).is_some_and(|check| check.accepts(node));
    (contract.accepts_unshared(part.shape, tree.node()), engine(part.shape, tree.node()))
}

/// Schemas that say only what can be seen at a fast_path.
fn plain() -> Vec<Value> {
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
fn what_is_plainly_right_is_seen() {
    let contract = contract(plain().pop().unwrap());
    for right in [r#"{"a": 1, "key": "b", "é": [1], "c": null}"#, r#"{"key": "a", "c": -1.5, "a": 3}"#] {
        assert_eq!(judged(&contract, &serde_json::from_str(right).unwrap()), (true, true), "{right}");
    }
    for wrong in [
        r#"{"a": 1}"#,
        r#"{"a": 4, "key": "b"}"#,
        r#"{"a": 1.5, "key": "b"}"#,
        r#"{"a": 1, "key": "b", "c": "x"}"#,
    ] {
        assert_eq!(judged(&contract, &serde_json::from_str(wrong).unwrap()), (false, false), "{wrong}");
    }
}

#[test]
fn the_engine_is_asked_where_a_schema_says_more() {
    let contract = contract(
        json!({ "properties": { "a": { "pattern": "^x" }, "b": { "oneOf": [{ "type": "null" }] } } }),
    );
    assert_eq!(judged(&contract, &json!({ "a": "xy", "b": null })), (true, true));
    assert_eq!(judged(&contract, &json!({ "a": "y", "b": null })), (false, false));
}

/// Compiled once: a property has many cases.
static CONTRACTS: LazyLock<Vec<Contract>> =
    LazyLock::new(|| schemas().into_iter().chain(plain()).map(contract).collect());

proptest! {
    #[test]
    fn it_fits_what_the_engine_accepts(value in value()) {
        for contract in CONTRACTS.iter() {
            let (fits, accepts) = judged(contract, &value);
            prop_assert_eq!(fits, accepts, "{} {}", contract.document(), value);
        }
    }
}

#[test]
fn lengths_count_characters_and_not_bytes() {
    let contract = contract(json!({ "type": "string", "minLength": 2, "maxLength": 3 }));
    for (text, fits) in [("é", false), ("🦀", false), ("éé", true), ("🦀🦀🦀", true), ("🦀🦀🦀🦀", false)]
    {
        assert_eq!(judged(&contract, &json!(text)), (fits, fits), "{text}");
    }
}
