use cog_json::Value as Tree;
use serde_json::{Value, json};

use super::*;
use crate::search::tests::contract;

fn findings_of(schema: Value, tree: &Tree) -> Vec<Finding> {
    let contract = contract(schema);
    let errors = contract.errors(contract.data.as_ref().unwrap().shape, tree.node());
    findings(&errors, &Locator::new(tree.node()), contract.document())
}

fn reported(schema: Value, value: Value) -> Vec<String> {
    findings_of(schema, &Tree::from(value))
        .into_iter()
        .map(|one| format!("{} {}: {}", one.at, one.rule, one.message))
        .collect()
}

#[test]
fn the_branch_that_was_meant_is_told() {
    let shapes = json!({ "oneOf": [
        { "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } }, "required": ["kind", "radius"] },
        { "properties": { "kind": { "const": "square" }, "side": { "type": "number" } }, "required": ["kind", "side"] },
    ] });
    let of = |value| reported(shapes.clone(), value);
    assert_eq!(of(json!({ "kind": "square" })), ["/side required: `side` is required but missing"]);
    assert_eq!(
        of(json!({ "kind": "circle", "radius": "x" })),
        ["/radius type: found `x`; allowed: a number"]
    );
    assert_eq!(of(json!({ "kind": "line" })), ["/kind const: found `line`; allowed: `circle` or `square`"]);
    assert_eq!(of(json!({ "radius": 1 })), ["/kind required: `kind` is required but missing"]);
}

#[test]
fn a_nullable_object_is_told_by_its_object() {
    let schema = json!({ "anyOf": [{ "type": "object", "properties": { "a": { "minimum": 1 } } }, { "type": "null" }] });
    assert_eq!(reported(schema.clone(), json!({ "a": 0 })), ["/a minimum: found 0; allowed: at least 1"]);
    assert_eq!(reported(schema, json!(3)), [" type: found 3; allowed: an object or null"]);
}

#[test]
fn a_value_that_fits_too_much_is_told_so() {
    let schema = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 0 }] });
    assert_eq!(
        reported(schema, json!(3)),
        [" oneOf: 3 matches several alternatives; exactly one is allowed"]
    );
}

#[test]
fn sizes_are_told_with_their_units() {
    assert_eq!(
        reported(json!({ "maxLength": 1 }), json!("a b")),
        [" maxLength: found 3 characters; allowed: at most 1"]
    );
    assert_eq!(
        reported(json!({ "minItems": 2 }), json!([1])),
        [" minItems: found 1 item; allowed: at least 2"]
    );
    assert_eq!(
        reported(json!({ "multipleOf": 0.5 }), json!(0.7)),
        [" multipleOf: found 0.7; allowed: a multiple of 0.5"]
    );
    assert_eq!(reported(json!({ "format": "date" }), json!("soon")), [" format: `soon` is not a valid date"]);
}

#[test]
fn a_misspelt_required_field_is_recognised() {
    let schema = json!({ "required": ["confidence"] });
    let findings = findings_of(schema, &Tree::parse(r#"{"confidense": 1}"#).unwrap());
    assert_eq!(findings[0].suggestion.as_deref(), Some("Rename `confidense` to `confidence`?"));
}

#[test]
fn everything_else_is_told_without_values() {
    let long = "a secret that must not be repeated";
    for schema in [json!({ "not": {} }), json!(false), json!({ "contains": { "const": 1 } })] {
        for reported in reported(schema, json!([long])) {
            assert!(!reported.contains("secret"), "{reported}");
        }
    }
}

#[test]
fn a_hostile_object_is_told_a_bounded_number_of_findings() {
    let members: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let reported = reported(json!({ "properties": {}, "additionalProperties": false }), json!(members));
    assert_eq!(reported.len(), MAX_VIOLATIONS);
}

#[test]
fn a_long_text_is_told_in_part_and_without_a_suggestion() {
    let long = "x".repeat(1_000_000);
    let schema =
        json!({ "properties": { "xx": { "const": "y".repeat(2_000) } }, "additionalProperties": false });
    let findings = findings_of(schema, &Tree::from(json!({ (&*long): 1, "xx": "x".repeat(1_999) })));
    assert_eq!(findings.len(), 2);
    for finding in findings {
        assert_eq!(finding.suggestion, None);
        assert!(finding.message.len() < 1_000, "{}", finding.message.len());
    }
}

#[test]
fn a_wrong_type_hides_other_violations_of_the_value() {
    let schema = json!({ "properties": { "a": { "minimum": 5, "type": "string", "multipleOf": 2 } }, "required": ["b"] });
    assert_eq!(
        reported(schema, json!({ "a": 3 })),
        ["/b required: `b` is required but missing", "/a type: found 3; allowed: a string"]
    );
}
