use cog_spec::{Format, Manifest};
use serde_json::json;

use super::*;
use crate::Rules;

fn conflicts_with(manifest: &Manifest, document: Value) -> Vec<String> {
    let contract = Contract::compile(&document, &Rules::from(manifest)).unwrap();
    contract.conflicts().iter().map(|found| found.pointer.clone()).collect()
}

fn conflicts(tier: Tier, document: Value) -> Vec<String> {
    conflicts_with(&Manifest::with_defaults("m", Format::V22, Some(tier)), document)
}

fn of_data(data: Value) -> Vec<String> {
    conflicts(Tier::Decision, json!({ "data": data }))
}

fn of_meta(tier: Tier, properties: Value) -> Vec<String> {
    conflicts(tier, json!({ "data": {}, "meta": { "properties": properties } }))
}

const NONE: [&str; 0] = [];

#[test]
fn data_has_room_for_a_rationale() {
    for (data, expected) in [
        (json!({ "additionalProperties": false, "properties": { "a": {} } }), "/data/additionalProperties"),
        (json!({ "properties": { "rationale": false } }), "/data/properties/rationale"),
        (
            json!({ "properties": { "rationale": { "type": "string", "maxLength": 0 } } }),
            "/data/properties/rationale/maxLength",
        ),
        (
            json!({ "properties": { "rationale": { "type": ["string", "null"], "maxLength": 0 } } }),
            "/data/properties/rationale/maxLength",
        ),
        (
            json!({ "properties": { "rationale": { "enum": ["", " ", null] } } }),
            "/data/properties/rationale/enum",
        ),
        (json!({ "properties": { "rationale": { "type": "null" } } }), "/data/properties/rationale/type"),
        (json!({ "properties": { "rationale": { "$ref": "#/$defs/no" } } }), "/$defs/no/type"),
        (json!({ "type": "array" }), "/data/type"),
        (json!({ "type": ["string", "array"] }), "/data/type"),
        (
            json!({ "additionalProperties": false, "patternProperties": { "^x-": {} } }),
            "/data/additionalProperties",
        ),
        (json!({ "patternProperties": { "ale$": false } }), "/data/patternProperties/ale$"),
        (json!({ "propertyNames": { "maxLength": 4 } }), "/data/propertyNames"),
        (json!({ "propertyNames": { "enum": ["a", "b"] } }), "/data/propertyNames"),
        (json!({ "maxProperties": 0 }), "/data/maxProperties"),
        (json!({ "maxProperties": 1, "required": ["a"] }), "/data/maxProperties"),
        (json!({ "not": { "required": ["rationale"] } }), "/data/not"),
        (
            json!({ "allOf": [{ "not": { "anyOf": [{ "required": ["a"] }, { "type": "object" }] } }] }),
            "/data/allOf/0/not",
        ),
        (json!({ "not": {} }), "/data/not"),
        (json!({ "not": { "minProperties": 1, "description": "x" } }), "/data/not"),
        (
            json!({ "properties": { "rationale": { "type": "string", "pattern": "^$" } } }),
            "/data/properties/rationale/pattern",
        ),
        (
            json!({ "properties": { "rationale": { "type": ["string", "null"], "pattern": "^(?:\\s*| )$" } } }),
            "/data/properties/rationale/pattern",
        ),
        (
            json!({ "properties": { "rationale": { "type": "string", "not": { "minLength": 1 } } } }),
            "/data/properties/rationale/not",
        ),
        (
            json!({ "allOf": [{ "properties": { "a": {} }, "additionalProperties": false }] }),
            "/data/allOf/0/additionalProperties",
        ),
        (
            json!({ "anyOf": [
                { "properties": { "a": {} }, "additionalProperties": false },
                { "properties": { "rationale": { "const": "" } } },
            ] }),
            "/data/anyOf",
        ),
    ] {
        let document = json!({ "data": data, "$defs": { "no": { "type": "null" } } });
        assert_eq!(conflicts(Tier::Decision, document), [expected], "{data}");
    }
    for data in [
        json!({}),
        json!({ "additionalProperties": false, "properties": { "rationale": { "type": "string" } } }),
        json!({ "additionalProperties": false, "patternProperties": { "^r": {} } }),
        json!({ "additionalProperties": { "type": "string" } }),
        json!({ "additionalProperties": { "type": "string" }, "patternProperties": { "^x": false } }),
        json!({ "propertyNames": { "pattern": "^[a-z]+$" } }),
        json!({ "maxProperties": 2, "required": ["a", "rationale"] }),
        json!({ "not": { "required": ["rationale", "a"] } }),
        json!({ "not": { "required": ["rationale"], "maxProperties": 3 } }),
        json!({ "not": { "anyOf": [{ "required": ["a"] }, { "minProperties": 2 }] } }),
        json!({ "properties": { "rationale": { "pattern": "^$" } } }),
        json!({ "properties": { "rationale": { "type": "string", "pattern": "^\\s*" } } }),
        json!({ "properties": { "rationale": { "type": "string", "pattern": "^(|x)$", "not": { "minLength": 2 } } } }),
        json!({ "type": ["array", "object"] }),
        json!({ "properties": { "rationale": { "type": "object", "required": ["a"] } } }),
        json!({ "properties": { "rationale": { "type": ["integer", "string"], "maxLength": 0 } } }),
        json!({ "oneOf": [{ "properties": { "a": {} }, "additionalProperties": false }, { "required": ["b"] }] }),
    ] {
        assert_eq!(of_data(data.clone()), NONE, "{data}");
    }
}

#[test]
fn older_formats_require_a_rationale_only_if_they_say_so() {
    let closed =
        json!({ "output": { "type": "object", "additionalProperties": false, "properties": { "a": {} } } });
    let mut manifest = Manifest::with_defaults("m", Format::V1, None);
    assert_eq!(conflicts_with(&manifest, closed.clone()), NONE);
    assert_eq!(conflicts_with(&manifest, json!({ "output": { "type": "array" } })), NONE);
    manifest.constraints.require_rationale = true;
    assert_eq!(conflicts_with(&manifest, closed), ["/output/additionalProperties"]);
    assert_eq!(conflicts_with(&manifest, json!({ "output": { "type": "array" } })), NONE);
}

#[test]
fn meta_has_room_for_what_the_tier_requires() {
    for (tier, properties, expected) in [
        (Tier::Exec, json!({ "confidence": { "maximum": 0.8 } }), "confidence/maximum"),
        (Tier::Exec, json!({ "confidence": { "exclusiveMaximum": 0.9 } }), "confidence/exclusiveMaximum"),
        (Tier::Exec, json!({ "confidence": { "enum": [0, 0.5, 0.89] } }), "confidence/enum"),
        (Tier::Exec, json!({ "risk": { "enum": ["medium", "high"] } }), "risk/enum"),
        (Tier::Exec, json!({ "risk": { "type": "string", "pattern": "^h" } }), "risk"),
        (Tier::Decision, json!({ "confidence": { "minimum": 2 } }), "confidence/minimum"),
        (Tier::Decision, json!({ "confidence": { "type": "string" } }), "confidence/type"),
        (Tier::Decision, json!({ "explain": { "minLength": 281 } }), "explain/minLength"),
        (Tier::Exploration, json!({ "risk": { "enum": [] } }), "risk/enum"),
    ] {
        assert_eq!(
            of_meta(tier, properties.clone()),
            [format!("/meta/properties/{expected}")],
            "{properties}"
        );
    }
    for (tier, properties) in [
        (Tier::Decision, json!({ "confidence": { "maximum": 0.8 }, "risk": { "enum": ["high"] } })),
        (Tier::Exec, json!({ "confidence": { "type": "integer" }, "risk": { "enum": ["low", "severe"] } })),
        (Tier::Exec, json!({ "confidence": { "anyOf": [{ "maximum": 0.5 }, { "minimum": 0.95 }] } })),
    ] {
        assert_eq!(of_meta(tier, properties.clone()), NONE, "{properties}");
    }
    let closed = json!({ "data": {}, "meta": { "additionalProperties": false, "properties": { "confidence": {}, "risk": {} } } });
    assert_eq!(conflicts(Tier::Decision, closed), ["/meta/additionalProperties"]);
}

#[test]
fn required_fields_have_a_value() {
    for (field, expected) in [
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "minimum"),
        (json!({ "type": "number", "minimum": 1, "exclusiveMaximum": 1 }), "minimum"),
        (json!({ "allOf": [{ "type": "string" }, { "type": "number" }] }), "allOf/1/type"),
        (json!({ "allOf": [{ "enum": [1, 2] }, { "minimum": 3 }] }), "allOf/0/enum"),
        (
            json!({ "type": "object", "required": ["b"], "additionalProperties": false }),
            "additionalProperties",
        ),
        (json!({ "type": "object", "required": ["b"], "properties": { "b": false } }), "properties/b"),
    ] {
        let data = json!({ "required": ["a"], "properties": { "a": field } });
        assert_eq!(of_data(data), [format!("/data/properties/a/{expected}")], "{field}");
        let optional = json!({ "properties": { "a": field } });
        assert_eq!(of_data(optional), NONE, "{field}");
    }
    for field in [
        json!({ "minimum": 3, "maximum": 2 }),
        json!({ "type": ["integer", "null"], "minimum": 3, "maximum": 2 }),
        json!({ "required": ["b"], "additionalProperties": false }),
        json!({ "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#/data/properties/a" } } }),
    ] {
        let data = json!({ "required": ["a"], "properties": { "a": field } });
        assert_eq!(of_data(data), NONE, "{field}");
    }
}

#[test]
fn insights_that_the_schema_requires_are_allowed() {
    let document = |least: u64| {
        json!({ "data": {
            "required": ["extensions"],
            "properties": { "extensions": {
                "required": ["insights"],
                "properties": { "insights": { "minItems": least } },
            } },
        } })
    };
    let at = "/data/properties/extensions/properties/insights/minItems";
    let mut manifest = Manifest::with_defaults("m", Format::V22, Some(Tier::Decision));
    manifest.overflow.enabled = false;
    assert_eq!(conflicts_with(&manifest, document(0)), NONE);
    assert_eq!(conflicts_with(&manifest, document(1)), [at]);
    manifest.overflow.enabled = true;
    manifest.overflow.max_items = 5;
    assert_eq!(conflicts_with(&manifest, document(6)), NONE);
    manifest.tier = Some(Tier::Exec);
    assert_eq!(conflicts_with(&manifest, document(6)), [at]);
    assert_eq!(conflicts_with(&manifest, document(5)), NONE);
}

#[test]
fn message_names_the_rule_and_the_place() {
    let manifest = Manifest::with_defaults("m", Format::V22, Some(Tier::Exec));
    let document = json!({ "data": {}, "meta": { "properties": { "confidence": { "maximum": 0.8 } } } });
    let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
    let found = contract.conflicts();
    assert_eq!(
        found[0].to_string(),
        "/meta/properties/confidence/maximum: no answer can succeed: `tier: exec` requires a confidence of at least 0.9, which this excludes"
    );
    assert!(found[0].suggestion.is_some());
    for (data, expected) in [
        (
            json!({ "required": ["a"], "maxProperties": 1 }),
            "/data/maxProperties: no answer can succeed: at most 1 fields are allowed, and these are required: `rationale`, `a`",
        ),
        (
            json!({ "not": { "type": "object" } }),
            "/data/not: no answer can succeed: this excludes every object with the required fields",
        ),
    ] {
        let contract = Contract::compile(&json!({ "data": data }), &Rules::from(&manifest)).unwrap();
        assert_eq!(contract.conflicts()[0].to_string(), expected);
    }
}

#[test]
fn search_of_many_alternatives_ends() {
    let level = |next: usize| json!({ "required": ["a"], "properties": { "a": { "anyOf": vec![json!({ "$ref": format!("#/$defs/l{next}") }); 8] } } });
    let mut defs: serde_json::Map<String, Value> =
        (0..12).map(|at| (format!("l{at}"), level(at + 1))).collect();
    defs.insert("l12".to_owned(), json!({}));
    assert_eq!(conflicts(Tier::Decision, json!({ "data": { "$ref": "#/$defs/l0" }, "$defs": defs })), NONE);
}
