use cog_json::Value as Tree;
use serde_json::{Value, json};

use super::*;
use crate::search::tests::contract;

fn findings_of(schema: Value, tree: &Tree) -> Vec<Finding> {
    let contract = contract(schema);
    let errors = contract.errors(contract.data.as_ref().unwrap().id, tree.node());
    findings(&errors, &Locator::new(tree.node()), contract.document())
}

fn lines(schema: Value, value: Value) -> Vec<String> {
    findings_of(schema, &Tree::from(value))
        .into_iter()
        .map(|one| format!("{} {}: {}", one.at, one.rule, one.message))
        .collect()
}

#[test]
fn reports_the_branch_that_was_meant() {
    let schema = json!({ "oneOf": [
        { "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } }, "required": ["kind", "radius"] },
        { "properties": { "kind": { "const": "square" }, "side": { "type": "number" } }, "required": ["kind", "side"] },
    ] });
    let check = |value| lines(schema.clone(), value);
    assert_eq!(check(json!({ "kind": "square" })), ["/side required: `side` is required but missing"]);
    assert_eq!(
        check(json!({ "kind": "circle", "radius": "x" })),
        ["/radius type: found `x`; allowed: a number"]
    );
    assert_eq!(
        check(json!({ "kind": "line" })),
        ["/kind const: found `line`; allowed: `circle` or `square`"]
    );
    assert_eq!(check(json!({ "radius": 1 })), ["/kind required: `kind` is required but missing"]);
}

#[test]
fn nullable_object_reports_errors_of_the_object() {
    let schema = json!({ "anyOf": [{ "type": "object", "properties": { "a": { "minimum": 1 } } }, { "type": "null" }] });
    assert_eq!(lines(schema.clone(), json!({ "a": 0 })), ["/a minimum: found 0; allowed: at least 1"]);
    assert_eq!(lines(schema, json!(3)), [" type: found 3; allowed: an object or null"]);
}

#[test]
fn value_that_matches_several_branches_is_reported() {
    let schema = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 0 }] });
    assert_eq!(lines(schema, json!(3)), [" oneOf: 3 matches several alternatives; exactly one is allowed"]);
}

#[test]
fn sizes_have_units() {
    assert_eq!(
        lines(json!({ "maxLength": 1 }), json!("a b")),
        [" maxLength: found 3 characters; allowed: at most 1"]
    );
    assert_eq!(lines(json!({ "minItems": 2 }), json!([1])), [" minItems: found 1 item; allowed: at least 2"]);
    assert_eq!(
        lines(json!({ "multipleOf": 0.5 }), json!(0.7)),
        [" multipleOf: found 0.7; allowed: a multiple of 0.5"]
    );
    assert_eq!(lines(json!({ "format": "date" }), json!("soon")), [" format: `soon` is not a valid date"]);
}

#[test]
fn short_values_are_quoted() {
    for (text, shown) in [
        ("x", "`x`"),
        ("", "an empty string"),
        ("a b", "a string of 3 characters"),
        ("a\u{1}", "a string of 2 characters"),
        ("abcdefghijklmnopqrstuvwx", "`abcdefghijklmnopqrstuvwx`"),
        ("abcdefghijklmnopqrstuvwxy", "a string of 25 characters"),
    ] {
        assert_eq!(found(Tree::from(json!(text)).node()), shown);
    }
}

#[test]
fn pattern_is_part_of_the_message() {
    assert_eq!(
        lines(json!({ "pattern": "^a" }), json!("b")),
        [" pattern: `b` does not match the pattern `^a`"]
    );
}

#[test]
fn value_outside_a_list_is_reported_before_a_wrong_type() {
    let listed = json!({ "enum": ["a"] });
    let schema = json!({ "anyOf": [{ "type": "object" }, listed] });
    assert_eq!(lines(schema, json!("b")), [" enum: found `b`; allowed: `a`"]);
    let tagged = json!({ "properties": { "kind": { "const": "x" } } });
    let schema = json!({ "anyOf": [{ "type": "array" }, tagged] });
    assert_eq!(
        lines(schema, json!({ "kind": "y" })),
        [" anyOf: an object matches none of the 2 alternatives"]
    );
}

#[test]
fn suggests_renaming_a_misspelt_required_field() {
    let schema = json!({ "required": ["confidence"] });
    let findings = findings_of(schema, &Tree::parse(r#"{"confidense": 1}"#).unwrap());
    assert_eq!(findings[0].suggestion.as_deref(), Some("Rename `confidense` to `confidence`?"));
}

#[test]
fn other_messages_do_not_contain_values() {
    let long = "a secret that must not be repeated";
    for schema in [json!({ "not": {} }), json!(false), json!({ "contains": { "const": 1 } })] {
        for line in lines(schema, json!([long])) {
            assert!(!line.contains("secret"), "{line}");
        }
    }
}

#[test]
fn message_says_what_is_wrong_without_values() {
    let contains = " contains: no item of the array matches the schema in `contains`";
    assert_eq!(lines(json!({ "contains": { "const": 1 } }), json!([2])), [contains]);
}

#[test]
fn number_of_findings_is_bounded() {
    let members: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let found = lines(json!({ "properties": {}, "additionalProperties": false }), json!(members));
    assert_eq!(found.len(), MAX_VIOLATIONS);
}

#[test]
fn long_text_is_truncated_and_has_no_suggestion() {
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
fn wrong_type_hides_other_violations_of_the_value() {
    let schema = json!({ "properties": { "a": { "minimum": 5, "type": "string", "multipleOf": 2 } }, "required": ["b"] });
    assert_eq!(
        lines(schema, json!({ "a": 3 })),
        ["/b required: `b` is required but missing", "/a type: found 3; allowed: a string"]
    );
}
