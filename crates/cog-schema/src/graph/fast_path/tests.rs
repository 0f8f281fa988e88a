use std::cell::Cell;
use std::sync::LazyLock;

use cog_json::{Node, Value as Tree};
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

/// Returns the verdict of the fast path; none if it calls the engine.
fn alone(schema: &Value, text: &str) -> Option<bool> {
    let contract = contract(schema.clone());
    let tree = Tree::parse(text).unwrap();
    let is_called = Cell::new(false);
    let engine = |_, _: Node<'_>| {
        is_called.set(true);
        false
    };
    let verdict = contract.graph.fits(contract.data.as_ref().unwrap().id, tree.node(), &engine);
    (!is_called.get()).then_some(verdict)
}

#[test]
fn simple_keywords_are_checked_without_the_engine() {
    let few = json!({ "enum": ["a", "b", 1, 2.5, -0.0, null, true] });
    let many: Vec<String> = (0..20).map(|n| format!("v{n}")).collect();
    for (schema, valid, invalid) in [
        (json!({ "type": "null" }), vec!["null"], vec!["0", "false"]),
        (json!({ "type": "boolean" }), vec!["true", "false"], vec!["null", "1"]),
        (json!({ "type": "integer" }), vec!["1", "-7", "12345678901234567890"], vec!["null", "\"1\""]),
        (json!({ "type": "number" }), vec!["1", "1.5", "1e400"], vec!["true", "\"1\""]),
        (json!({ "type": "string" }), vec!["\"\""], vec!["1", "[]"]),
        (json!({ "type": "array" }), vec!["[]", "[1]"], vec!["{}", "\"\""]),
        (json!({ "type": "object" }), vec!["{}", "{\"a\": 1}"], vec!["[]", "null"]),
        (json!({ "type": ["null", "string"] }), vec!["null", "\"a\""], vec!["1", "[]"]),
        (few, vec!["\"a\"", "\"b\"", "1", "2.5", "0", "-0", "null", "true"], vec!["\"c\"", "false", "[]"]),
        (json!({ "enum": many }), vec!["\"v0\"", "\"v19\""], vec!["\"v\"", "\"v20\""]),
        (json!({ "const": true }), vec!["true"], vec!["false", "null"]),
        (json!({ "const": false }), vec!["false"], vec!["true", "null"]),
        (json!({ "minimum": -2, "maximum": 3.5 }), vec!["-2", "3.5", "\"a\""], vec![]),
        (json!({ "minLength": 2 }), vec!["\"ab\"", "\"éé\"", "1"], vec!["\"a\"", "\"é\""]),
        (json!({ "maxLength": 2 }), vec!["\"ab\"", "\"éé\"", "1"], vec!["\"abc\"", "\"ééé\""]),
        (json!({ "minItems": 1, "maxItems": 2 }), vec!["[1]", "[1, 2]", "{}"], vec!["[]", "[1, 2, 3]"]),
        (json!({ "items": { "type": "null" } }), vec!["[]", "[null]"], vec!["[null, 1]"]),
        (json!({ "items": true }), vec!["[1, \"a\"]"], vec![]),
        (json!({ "items": false }), vec!["[]"], vec!["[1]", "[null]"]),
        (
            json!({ "properties": { "a": { "const": "x" } } }),
            vec!["{\"a\": \"x\", \"b\": 1}"],
            vec!["{\"a\": 1}"],
        ),
        (json!({ "additionalProperties": { "type": "null" } }), vec!["{\"a\": null}"], vec!["{\"a\": 1}"]),
        (
            json!({ "properties": { "a": {}, "b": {} }, "required": ["b", "a"] }),
            vec!["{\"a\": 1, \"b\": 1}", "{\"b\": 1, \"c\": 1, \"a\": 1}"],
            vec!["{\"a\": 1}", "{\"b\": 1, \"c\": 1}"],
        ),
    ] {
        for text in valid {
            assert_eq!(alone(&schema, text), Some(true), "{schema} {text}");
        }
        for text in invalid {
            assert_eq!(alone(&schema, text), Some(false), "{schema} {text}");
        }
    }
}

#[test]
fn engine_decides_what_the_fast_path_cannot() {
    let tuple = json!({ "items": [{ "type": "string" }] });
    let far = json!({ "maximum": 9_007_199_254_740_993_i64 });
    for (schema, text) in [
        (&tuple, "[1]"),
        (&far, "1"),
        (&json!({ "type": "integer" }), "1.0"),
        (&json!({ "type": "number", "minimum": 0 }), "1e300"),
        (&json!({ "enum": [1] }), "2"),
        (&json!({ "minimum": -2 }), "-3"),
        (&json!({ "maximum": 2 }), "3"),
        (&json!({ "required": ["a"] }), "{}"),
        (&json!({ "enum": ["a"], "const": "a" }), "\"a\""),
        (&json!({ "enum": [["a"]] }), "\"a\""),
        (&json!({ "pattern": "a" }), "\"a\""),
    ] {
        assert_eq!(alone(schema, text), None, "{schema} {text}");
    }
}

#[test]
fn up_to_64_properties_are_checked_without_the_engine() {
    let names = |count: usize| (0..count).map(|n| format!("p{n}")).collect::<Vec<_>>();
    let object = |count: usize, required: usize| {
        let properties: serde_json::Map<_, _> =
            names(count).into_iter().map(|name| (name, json!({}))).collect();
        json!({ "properties": properties, "required": names(required) })
    };
    let answer = |count: usize| {
        let members: Vec<String> = names(count).iter().map(|name| format!("\"{name}\": 1")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert_eq!(alone(&object(64, 64), &answer(64)), Some(true));
    assert_eq!(alone(&object(64, 64), &answer(63)), Some(false));
    assert_eq!(alone(&object(65, 1), &answer(65)), None);
}
