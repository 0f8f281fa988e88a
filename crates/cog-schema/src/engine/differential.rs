//! The engine returns the same errors for the tree of `cog_json` and for `serde_json`.

use cog_json::Value as Tree;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Number, Value, json};

use super::*;

/// Returns schemas with each keyword of Draft-07, alone and combined.
pub(crate) fn schemas() -> Vec<Value> {
    let shape = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": ["integer", "null"] }, "c": { "$ref": "#/s" } },
        "required": ["a", "b"],
    });
    vec![
        json!(true),
        json!(false),
        json!({ "type": "number" }),
        json!({ "type": ["integer", "string", "boolean"] }),
        json!({ "enum": [1, "a", null, [1, 2.0], { "a": 1.0 }, 0] }),
        json!({ "const": { "a": [0, -0.5], "b": "é" } }),
        json!({ "const": 1.0 }),
        json!({ "multipleOf": 0.5, "minimum": -1, "exclusiveMaximum": 9_007_199_254_740_993_i64 }),
        json!({ "exclusiveMinimum": 0, "maximum": 2.5 }),
        json!({ "minLength": 2, "maxLength": 3, "pattern": "^[aé]" }),
        json!({ "items": { "type": "integer" }, "minItems": 1, "maxItems": 3, "uniqueItems": true }),
        json!({ "items": [{ "type": "string" }, { "minimum": 1 }], "additionalItems": false }),
        json!({ "contains": { "type": "null" } }),
        json!({ "uniqueItems": true }),
        json!({ "properties": { "a": { "type": "integer" } }, "additionalProperties": { "type": "string" } }),
        json!({ "properties": { "a": {}, "b": {} }, "additionalProperties": false, "minProperties": 1, "maxProperties": 2 }),
        json!({ "patternProperties": { "^a": { "type": "integer" } }, "propertyNames": { "maxLength": 2 } }),
        json!({ "dependencies": { "a": ["b"], "b": { "required": ["c"] } } }),
        json!({ "required": ["a", "b", "c", "key"] }),
        json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }, { "required": ["a"] }] }),
        json!({ "anyOf": [{ "const": "a" }, { "items": { "enum": [1, 2] } }], "not": { "type": "null" } }),
        json!({ "allOf": [{ "required": ["a"] }, { "properties": { "a": { "type": "array" } } }] }),
        json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] }, "else": { "maxProperties": 1 } }),
        json!({ "format": "date" }),
        shape,
    ]
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        (-3_i64..4).prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(1.0),
            Just(2.5),
            Just(-0.5),
            Just(9_007_199_254_740_992.0),
            -1e300..1e300
        ]
        .prop_map(|float| Number::from_f64(float).expect("finite")),
    ]
}

/// Generates small values, some of which match the schemas.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number().prop_map(Value::Number),
        "[aébé🦀\"\\\\]{0,4}".prop_map(Value::from),
        Just(json!("2026-01-31")),
    ];
    let key = prop_oneof![Just("a"), Just("b"), Just("c"), Just("key"), Just("a/~"), Just("0"), Just("é")];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let object = btree_map(key.clone().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![
            vec(inner, 0..20).prop_map(Value::Array),
            object.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns pointer and keyword of each error, sorted.
fn sorted(errors: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut sorted: Vec<_> = errors.collect();
    sorted.sort();
    sorted
}

proptest! {
    #[test]
    fn both_trees_have_the_same_errors(value in value()) {
        let tree = Tree::parse(&value.to_string()).unwrap();
        for schema in schemas() {
            let document = json!({ "s": schema });
            let root = json!({ "$ref": "#/s", "s": schema });
            let ours = Engine::new(Arc::new(document)).unwrap().compile("/s").unwrap();
            let theirs = configure(jsonschema::options()).build(&root).unwrap();
            prop_assert_eq!(ours.accepts(tree.node()), theirs.is_valid(&value), "{}", schema);
            let our_errors = ours.errors(tree.node()).into_iter().map(|error| (error.at, error.keyword));
            let their_errors = theirs.iter_errors(&value).map(|error| {
                (error.instance_path().as_str().to_owned(), error.kind().keyword().to_owned())
            });
            prop_assert_eq!(sorted(our_errors), sorted(their_errors), "{}", schema);
        }
    }
}
