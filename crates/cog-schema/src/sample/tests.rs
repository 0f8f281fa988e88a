use cog_spec::{Format, Manifest, Tier};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Contract, Rules};

fn contract(document: Value) -> Contract {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Exec)));
    Contract::compile(&document, &rules).unwrap()
}

fn rich() -> Value {
    json!({
        "input": { "$ref": "#/$defs/node" },
        "data": {
            "type": "object",
            "required": ["code", "list", "when", "tree", "choice", "kind", "n"],
            "properties": {
                "code": { "type": "string", "pattern": "^[A-Z]{2}-(\\d+|x)[a-c]?$" },
                "list": { "type": "array", "items": { "enum": [1, 2, 3, 4] }, "uniqueItems": true, "minItems": 3 },
                "when": { "type": "string", "format": "date-time" },
                "short": { "type": "string", "minLength": 2, "maxLength": 4 },
                "long": { "type": "string", "minLength": 50 },
                "n": { "type": "integer", "exclusiveMinimum": 3, "maximum": 12, "multipleOf": 3 },
                "x": { "type": "number", "minimum": 0, "maximum": 1 },
                "tree": { "$ref": "#/$defs/node" },
                "choice": { "oneOf": [{ "type": "string", "maxLength": 3 }, { "type": "object", "required": ["a"], "properties": { "a": { "const": 1 } } }] },
                "kind": { "allOf": [{ "type": "string" }, { "enum": ["a", "b"] }] },
                "pair": { "type": "array", "items": [{ "type": "integer" }, { "type": "boolean" }], "minItems": 2, "maxItems": 2 },
                "maybe": { "type": ["null", "integer"] },
            },
            "additionalProperties": false,
        },
        "$defs": { "node": {
            "type": "object",
            "required": ["name"],
            "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } },
        } },
    })
}

#[test]
fn equal_seeds_return_equal_samples() {
    let mut document = rich();
    document["data"]["properties"]["rationale"] = json!({ "type": "string" });
    let contract = contract(document);
    assert_eq!(contract.sample(7), contract.sample(7));
    assert_ne!(contract.sample(7), contract.sample(8));
}

#[test]
fn text_shows_that_it_is_a_sample() {
    let contract = contract(
        json!({ "data": { "properties": { "title": { "type": "string" } }, "required": ["title"] } }),
    );
    let sample = contract.sample(0).unwrap();
    assert_eq!(sample.get("title").unwrap().as_str(), Some("sample title"));
    assert!(sample.get("rationale").unwrap().as_str().unwrap().contains("no model was called"));
}

#[test]
fn unsatisfiable_schema_has_no_sample() {
    let contract = contract(json!({ "data": { "properties": { "a": false }, "required": ["a"] } }));
    assert_eq!(contract.sample(1), None);
}

#[test]
fn input_satisfies_its_schema() {
    let contract = contract(rich());
    let input = contract.sample_input(7).unwrap();
    assert_eq!(contract.check_input(input.node()), vec![]);
    assert_eq!(input.get("name").unwrap().as_str(), Some("sample name"));
}

#[test]
fn conditions_are_satisfied_by_retrying() {
    let data = json!({
        "properties": { "kind": { "enum": ["a", "b"] }, "extra": { "type": "string" } },
        "required": ["kind"],
        "if": { "properties": { "kind": { "const": "a" } } },
        "then": { "required": ["extra"] },
    });
    let contract = contract(json!({ "data": data }));
    for seed in 0..20 {
        assert!(contract.sample(seed).is_some(), "seed {seed}");
    }
}

#[test]
fn infinite_schema_has_no_sample() {
    let endless = json!({ "properties": { "next": { "$ref": "#/data" } }, "required": ["next"] });
    assert_eq!(contract(json!({ "data": endless })).sample(1), None);
}

#[test]
fn media_field_gets_a_file_of_an_allowed_type() {
    let sampled_type = |media_type: Value| {
        let output = json!({
            "type": "object",
            "required": ["type", "media_type"],
            "properties": { "type": { "enum": ["base64"] }, "media_type": media_type, "data": { "type": "string" } },
            "additionalProperties": false,
        });
        let contract =
            contract(json!({ "data": { "required": ["file"], "properties": { "file": output } } }));
        let sample = contract.sample(1).unwrap();
        sample.pointer("/file/media_type").unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(sampled_type(json!({ "pattern": "^(image|audio)/" })), "image/png");
    assert_eq!(sampled_type(json!({ "pattern": "^audio/" })), "audio/wav");
    assert_eq!(sampled_type(json!({ "const": "audio/wav" })), "audio/wav");
    assert_eq!(sampled_type(json!({ "enum": ["audio/wav", "audio/mpeg"] })), "audio/wav");
}

proptest! {
    #[test]
    fn samples_satisfy_the_contract(seed: u64) {
        let mut document = rich();
        document["data"]["properties"]["rationale"] = json!({ "type": "string" });
        let contract = contract(document);
        let data = contract.sample(seed).expect("data");
        prop_assert_eq!(contract.check_data(data.node()).violations, vec![]);
        let input = contract.sample_input(seed).expect("input");
        prop_assert_eq!(contract.check_input(input.node()), vec![]);
    }
}
