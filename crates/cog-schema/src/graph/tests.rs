use cog_json::Value as Tree;
use cog_spec::{EnumStrategy, Format, Manifest, Strictness, Tier};
use serde_json::{Map, Value, json};

use super::is_output;
use crate::{Contract, DataCheck, Rules};

/// Returns the check of data by a schema whose enums are strict, so that each custom value that a walk visits is reported.
fn check(strictness: Strictness, schema: Value, data: Value) -> DataCheck {
    let manifest = Manifest::with_defaults("test", Format::V1, None);
    let mut rules = Rules { strictness, ..Rules::from(&manifest) };
    rules.enums.strategy = EnumStrategy::Strict;
    let document =
        json!({ "output": schema, "$defs": { "Kind": kind(), "More": { "properties": { "m": {} } } } });
    Contract::compile(&document, &rules).unwrap().check_data(Tree::from(data).node())
}

/// Returns the paths of the custom values that a walk visits.
fn custom_paths(schema: Value, data: Value) -> Vec<String> {
    let violations = check(Strictness::Low, schema, data).violations;
    assert!(violations.iter().all(|one| one.rule == "extensible_enum"), "{violations:?}");
    violations.into_iter().map(|one| one.path).collect()
}

fn custom_object() -> Value {
    json!({ "type": "object", "required": ["custom", "reason"] })
}

fn kind() -> Value {
    json!({ "oneOf": [{ "enum": ["bug"] }, custom_object()] })
}

fn custom() -> Value {
    json!({ "custom": "c", "reason": "r", "more": 1 })
}

#[test]
fn walk_visits_each_place_of_a_value() {
    let kind = json!({ "$ref": "#/$defs/Kind" });
    let field = |schema: &Value| json!({ "properties": { "a": schema } });
    for (schema, data, paths) in [
        (field(&kind), json!({ "a": custom(), "b": custom() }), vec!["data.a"]),
        (field(&kind), json!({ "a": "bug" }), vec![]),
        (
            json!({ "properties": { "b": {} }, "additionalProperties": kind }),
            json!({ "a": custom() }),
            vec!["data.a"],
        ),
        (
            json!({ "patternProperties": { "^x": kind } }),
            json!({ "x1": custom(), "y": custom() }),
            vec!["data.x1"],
        ),
        (json!({ "items": kind }), json!([custom(), "bug", custom()]), vec!["data[0]", "data[2]"]),
        (json!({ "items": [{}, kind] }), json!([custom(), custom(), custom()]), vec!["data[1]"]),
        (
            json!({ "items": [{}], "additionalItems": kind }),
            json!([custom(), custom(), custom()]),
            vec!["data[1]", "data[2]"],
        ),
        (
            json!({ "allOf": [field(&kind), field(&json!({ "minProperties": 1 }))] }),
            json!({ "a": custom() }),
            vec!["data.a"],
        ),
        (
            json!({ "properties": {
                "a": { "additionalProperties": kind },
                "b": { "items": { "$ref": "#/output/properties/a" } },
            } }),
            json!({ "b": [{ "x": custom() }] }),
            vec!["data.b[0].x"],
        ),
    ] {
        assert_eq!(custom_paths(schema.clone(), data), paths, "{schema}");
    }
}

#[test]
fn extensible_enum_is_an_enum_of_strings_or_an_object_with_tag_and_reason() {
    let list = json!({ "enum": ["bug"] });
    let object = custom_object();
    for (branches, is_extensible) in [
        (json!([list, object]), true),
        (json!([object, list]), true),
        (json!([list, { "type": "object" }]), false),
        (json!([{ "type": "object" }, list]), false),
        (json!([{ "type": "string" }, object]), false),
        (json!([object, { "type": "string" }]), false),
        (json!([{ "enum": [1] }, object]), false),
        (json!([{ "enum": [] }, object]), false),
        (json!([list, { "required": ["reason"] }]), false),
        (json!([list, { "required": ["custom"] }]), false),
        (json!([list, { "required": ["custom", "more"] }]), false),
        (json!([list, object, { "type": "null" }]), false),
    ] {
        let found =
            custom_paths(json!({ "properties": { "a": { "oneOf": branches } } }), json!({ "a": custom() }));
        assert_eq!(!found.is_empty(), is_extensible, "{branches}");
    }
}

#[test]
fn undefined_members_are_not_reported_at_low_strictness() {
    let schema = json!({
        "properties": { "a": { "$ref": "#/$defs/Kind" } },
        "allOf": [{ "$ref": "#/$defs/More" }],
    });
    let data = json!({ "a": "bug", "more": 1 });
    assert_eq!(check(Strictness::Low, schema.clone(), data.clone()), DataCheck::default());
    assert_eq!(check(Strictness::Medium, schema, data).unknown, ["data.more"]);
}

#[test]
fn media_output_has_one_of_three_types_and_a_media_type() {
    let schema = |forms: Value, name: &str| json!({ "properties": { "type": { "enum": forms }, name: {} } });
    for (pointer, schema, expected) in [
        ("/a", schema(json!(["url", "file"]), "media_type"), true),
        ("/a", schema(json!(["url", "ftp"]), "media_type"), false),
        ("/a", schema(json!([]), "media_type"), false),
        ("/a", schema(json!(["url"]), "kind"), false),
        ("/$defs/MediaOutput", json!({}), true),
        ("/definitions/MediaOutput", json!({}), true),
        ("/$defs/Other", json!({}), false),
    ] {
        assert_eq!(is_output(pointer, &schema), expected, "{pointer} {schema}");
    }
}

/// Returns a contract with 4,096 paths through its data, and `extra` more: each of eleven levels refers twice to the next one.
fn wide(extra: usize) -> Contract {
    let level = |at: usize| {
        let next = json!({ "$ref": format!("#/$defs/L{}", at + 1) });
        (format!("L{at}"), json!({ "allOf": [next, next] }))
    };
    let mut levels: Map<String, Value> = (0..11).map(level).collect();
    levels.insert("L11".to_owned(), json!({}));
    let mut all = vec![json!({}); extra];
    all.push(json!({ "$ref": "#/$defs/L0" }));
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    Contract::compile(&json!({ "data": { "allOf": all }, "$defs": levels }), &rules).unwrap()
}

#[test]
fn document_with_over_4096_paths_is_wide() {
    assert!(!wide(0).graph.is_wide);
    assert!(wide(1).graph.is_wide);
}

#[test]
fn walk_over_all_values_visits_closed_objects() {
    let closed =
        |name: &str, schema: Value| json!({ "properties": { name: schema }, "additionalProperties": false });
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V1, None));
    let schema = closed("a", closed("b", json!({ "type": "string" })));
    let contract = Contract::compile(&json!({ "output": schema }), &rules).unwrap();
    let nulls = contract.added_nulls("data", Tree::from(json!({ "a": { "b": null } })).node());
    assert_eq!(nulls.iter().map(ToString::to_string).collect::<Vec<_>>(), ["data.a.b"]);
}
