use cog_spec::{Format, Manifest, Tier};
use serde_json::{Value, json};

use crate::{Contract, Rules};

/// Returns `pointer: message help` of each warning.
fn warnings(document: Value) -> Vec<String> {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    let contract = Contract::compile(&document, &rules).unwrap();
    let found = contract.warnings().iter();
    found.map(|one| format!("{one} {}", one.suggestion.as_deref().unwrap_or_default())).collect()
}

/// Returns the warnings of a field `a` of the data.
fn of_field(schema: Value) -> Vec<String> {
    warnings(json!({ "data": { "type": "object", "properties": { "a": schema } } }))
}

#[track_caller]
fn assert_warns(schema: Value, expected: &str) {
    let found = of_field(schema);
    assert!(found.len() == 1 && found[0].contains(expected), "expected {expected:?}, found {found:?}");
}

#[test]
fn unknown_keyword_suggests_the_nearest_one() {
    for (written, meant) in [
        ("propertes", "properties"),
        ("requird", "required"),
        ("maxlenght", "maxLength"),
        ("max_length", "maxLength"),
        ("enums", "enum"),
        ("additionalProperty", "additionalProperties"),
        ("additional_properties", "additionalProperties"),
        ("item", "items"),
        ("minItem", "minItems"),
        ("unique_items", "uniqueItems"),
        ("patern", "pattern"),
        ("minumum", "minimum"),
        ("anyof", "anyOf"),
        ("oneof", "oneOf"),
        ("any_of", "anyOf"),
        ("desciption", "description"),
        ("ref", "$ref"),
        ("cosnt", "const"),
        ("example", "examples"),
    ] {
        let expected = format!(
            "/data/properties/a/{written}: unknown keyword `{written}`: it has no effect Did you mean `{meant}`?"
        );
        assert_warns(json!({ written: {} }), &expected);
    }
}

#[test]
fn keyword_of_another_draft_names_the_one_of_draft_07() {
    assert_warns(json!({ "type": "string", "nullable": true }), "Write `\"type\": [\"string\", \"null\"]`");
    assert_warns(
        json!({ "type": "array", "prefixItems": [{}] }),
        "write the list of schemas as the value of `items`",
    );
    assert_warns(json!({ "dependentRequired": {} }), "write `dependencies`");
    assert_warns(json!({ "unevaluatedProperties": false }), "write `additionalProperties`");
    assert_warns(json!({ "type": "integer", "min": 1 }), "Write `minimum`");
    assert_warns(json!({ "colour": "red" }), "start its name with `x-`");
}

#[test]
fn unknown_format_suggests_the_nearest_one() {
    assert_warns(
        json!({ "format": "dates" }),
        "unknown format `dates`: it is not checked Did you mean `date`?",
    );
    assert_warns(json!({ "format": "datetime" }), "Did you mean `date-time`?");
    assert_warns(json!({ "format": "phone-number" }), "Use `pattern`");
}

#[test]
fn keyword_that_does_not_apply_to_the_type() {
    assert_warns(
        json!({ "type": "string", "maximum": 5 }),
        "/data/properties/a/maximum: `maximum` has no effect: the type is `string` It restricts a number",
    );
    assert_warns(json!({ "type": "array", "properties": {} }), "`properties` has no effect");
    assert_warns(json!({ "type": ["integer", "null"], "maxLength": 5 }), "the type is `integer` or `null`");
    assert_warns(json!({ "type": "object", "items": {} }), "It restricts an array");
}

#[test]
fn constraint_next_to_a_reference() {
    assert_warns(
        json!({ "$ref": "#/data", "maxProperties": 3, "description": "x" }),
        "`maxProperties` has no effect next to `$ref`",
    );
    assert_warns(json!({ "$ref": "#/data", "nulable": true }), "unknown keyword `nulable`");
}

#[test]
fn values_that_are_never_allowed() {
    assert_warns(json!({ "minimum": 5, "maximum": 1 }), "`minimum` is over `maximum`");
    assert_warns(json!({ "minLength": 5, "maxLength": 1 }), "`minLength` is over `maxLength`");
    assert_warns(
        json!({ "type": "integer", "enum": [1, "2"] }),
        "/data/properties/a/enum/1: this value is never allowed",
    );
    assert_warns(json!({ "type": "string", "const": true }), "/data/properties/a/const");
    for (name, right, wrong) in [
        (json!("null"), json!(null), json!(0)),
        (json!("boolean"), json!(false), json!(0)),
        (json!("string"), json!(""), json!(0)),
        (json!("array"), json!([]), json!({})),
        (json!("object"), json!({}), json!([])),
        (json!("integer"), json!(-1), json!(1.5)),
        (json!("integer"), json!(u64::MAX), json!("1")),
        (json!("number"), json!(1.5), json!("1")),
        (json!(["string", "null"]), json!(null), json!(0)),
    ] {
        assert_eq!(of_field(json!({ "type": name, "const": right })), [""; 0]);
        assert_warns(
            json!({ "type": name, "const": wrong }),
            "this value is never allowed: `type` excludes it",
        );
    }
    assert_warns(
        json!({ "enum": ["a"], "const": "b" }),
        "/data/properties/a/const: the constant is not allowed",
    );
    assert_warns(
        json!({ "enum": ["a", "b", "a"] }),
        "/data/properties/a/enum/2: this value is listed before",
    );
    assert_warns(
        json!({ "type": "integer", "default": "x" }),
        "/data/properties/a/default: this value is never",
    );
    assert_warns(json!({ "enum": [1, 2, 1.0] }), "/data/properties/a/enum/2: this value is listed before");
    assert_warns(
        json!({ "enum": [{ "a": [1], "b": 2 }, { "b": 2.0, "a": [1e0] }] }),
        "/data/properties/a/enum/1: this value is listed before",
    );
    for right in [
        json!({ "enum": [1, "1", null, true] }),
        json!({ "enum": ["a"], "const": "a", "default": "a" }),
        json!({ "type": "integer", "enum": [1, 2], "const": 2.0, "default": 1.0 }),
    ] {
        assert_eq!(of_field(right), [""; 0]);
    }
}

#[test]
fn default_that_the_enum_does_not_list() {
    assert_warns(
        json!({ "enum": ["a", "b"], "default": "c" }),
        "/data/properties/a/default: the default is not allowed",
    );
    let listed = json!({ "data": { "properties": { "a": { "enum": ["a", null], "default": null } } } });
    assert_eq!(warnings(listed).len(), 0);
}

#[test]
fn meta_of_another_form() {
    let meta = |fields: Value| warnings(json!({ "data": {}, "meta": { "properties": fields } }));
    for (confidence, at) in [
        (json!({ "type": "integer", "maximum": 100 }), "/confidence/type: "),
        (json!({ "type": "number", "minimum": 0, "maximum": 100 }), "/confidence/maximum: "),
        (json!({ "type": "string" }), "/confidence/type: "),
    ] {
        let found = meta(json!({ "confidence": confidence }));
        assert!(found.len() == 1 && found[0].contains(at), "{found:?}");
    }
    let found = meta(json!({ "risk": { "enum": ["low", "green"] } }));
    assert!(
        found.len() == 1 && found[0].contains("/risk/enum/1: `green` is not a level of risk"),
        "{found:?}"
    );
    let right = json!({
        "confidence": { "type": ["number", "null"], "minimum": 0.5, "maximum": 1 },
        "risk": { "enum": ["none", "low"] },
    });
    assert_eq!(meta(right).len(), 0);
}

#[test]
fn required_field_that_is_not_defined() {
    let object =
        |required: Value| json!({ "type": "object", "required": required, "properties": { "title": {} } });
    assert_warns(
        object(json!(["titel"])),
        "required field `titel` is not defined in `properties` Did you mean `title`?",
    );
    assert_warns(object(json!(["title", "size"])), "/required/1: required field `size`");
    let data = json!({ "required": ["queue", "rationale"], "properties": { "quue": {}, "rationale": {} } });
    assert_eq!(warnings(json!({ "data": data })).len(), 1);
}

#[test]
fn required_field_can_be_defined_elsewhere_for_the_same_value() {
    let ways = json!({
        "data": {
            "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "b": {} } }],
            "anyOf": [{ "required": ["a"] }, { "required": ["b"] }, { "not": { "required": ["a", "b"] } }],
            "if": { "properties": { "a": { "const": 1 } } },
            "then": { "required": ["b"] },
        },
        "meta": { "required": ["confidence", "risk", "explain"], "properties": { "explain": {} } },
        "error": { "required": ["code", "message"] },
        "$defs": { "Base": { "required": ["a", "b", "rationale"], "properties": { "a": {} } } },
    });
    assert_eq!(warnings(ways), [""; 0]);
    assert_eq!(
        of_field(json!({ "required": ["a"], "patternProperties": { "a": {} }, "properties": { "b": {} } })),
        [""; 0]
    );
}

#[test]
fn misspelt_section() {
    let found = warnings(json!({ "data": {}, "eror": {}, "$def": {}, "schemas": {}, "contracts": {} }));
    assert_eq!(
        found,
        [
            "/eror: unknown section `eror`: it has no effect Did you mean `error`?",
            "/$def: unknown section `$def`: it has no effect Did you mean `$defs`?",
        ]
    );
    assert_eq!(warnings(json!({ "data": { "$ref": "#/$def/A" }, "$def": { "A": {} } })), [""; 0]);
}

#[test]
fn right_schemas_have_no_warnings() {
    for schema in [
        json!({ "type": ["string", "null"], "maxLength": 9, "minLength": 1, "pattern": "^a" }),
        json!({ "type": "integer", "minimum": 1, "maximum": 1, "format": "int64", "enum": [1.0] }),
        json!({ "enum": ["a", null, 1] }),
        json!({ "properties": { "enums": {}, "nullable": { "type": "boolean" }, "format": {} } }),
        json!({ "type": "array", "items": [{}, {}], "additionalItems": false, "uniqueItems": true, "contains": {} }),
        json!({ "if": { "required": ["x"] }, "then": {}, "else": {}, "dependencies": { "x": ["y"] } }),
        json!({ "title": "t", "description": "d", "$comment": "c", "default": 1, "examples": [1], "x-ui": 1 }),
        json!({ "readOnly": true, "writeOnly": false, "deprecated": true, "$id": "#a", "$schema": "http://json-schema.org/draft-07/schema#" }),
        json!({ "type": "string", "format": "date-time", "contentEncoding": "base64", "contentMediaType": "text/plain" }),
        json!({ "format": "uuid" }),
        json!({ "format": "duration" }),
        json!({ "$ref": "#/data", "description": "d", "default": {} }),
        json!({ "$ref": "#/$defs/MediaInput", "title": "Photo" }),
        json!({ "default": { "propertes": 1 }, "const": { "requird": 1 } }),
        json!(true),
    ] {
        assert_eq!(of_field(schema.clone()), [""; 0], "{schema}");
    }
}

#[test]
fn number_of_warnings_is_bounded() {
    let schema: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("propertes{n}"), json!(1))).collect();
    assert_eq!(of_field(Value::Object(schema)).len(), 100);
}

#[test]
fn section_whose_name_begins_a_used_one_is_unknown() {
    let found = warnings(json!({ "data": {}, "dat": {} }));
    assert_eq!(found, ["/dat: unknown section `dat`: it has no effect Did you mean `data`?"]);
}

#[test]
fn mistakes_of_other_languages_have_a_suggestion() {
    let of_type = |name: &str, meant: &str| (json!({ "type": name }), format!("Write `{meant}`."));
    let names = [
        ("string", vec!["text", "str", "varchar", "char", "date", "datetime", "TEXT"]),
        ("integer", vec!["int", "long"]),
        ("number", vec!["float", "double", "decimal"]),
        ("boolean", vec!["bool"]),
        ("array", vec!["list", "tuple", "set"]),
        ("object", vec!["dict", "map", "json", "struct", "record"]),
        ("null", vec!["none", "nil"]),
    ];
    let names = names.iter().flat_map(|(meant, names)| names.iter().map(|name| of_type(name, meant)));
    let others = [
        (
            json!({ "required": true }),
            "List the name of the field in the `required` of its object.".to_owned(),
        ),
        (json!({ "items": "string" }), "Write a schema, such as `{ \"type\": \"string\" }`.".to_owned()),
        (json!({ "maxLength": "9" }), "Write `9` without quotes.".to_owned()),
    ];
    for (schema, help) in names.chain(others) {
        let document = json!({ "data": { "properties": { "a": schema } } });
        let found: Vec<_> = super::malformed(&document, &["/data".to_owned()])
            .into_iter()
            .map(|one| one.suggestion)
            .collect();
        assert_eq!(found, [Some(help)], "{schema}");
    }
}

#[test]
fn document_has_at_most_10_000_values_64_levels_and_1_mib() {
    let values = |count: usize| json!({ "data": { "enum": vec![1; count - 3] } });
    let levels = |count: usize| (1..count).fold(json!([]), |inner, _| json!([inner]));
    let name = |bytes: usize| json!({ "x".repeat(bytes): 1 });
    let text = |bytes: usize| json!(["x".repeat(bytes)]);
    for (fits, excess, unit) in [
        (values(10_000), values(10_001), "10000 values"),
        (levels(64), levels(65), "64 levels"),
        (name(1 << 20), name((1 << 20) + 1), "1048576 bytes"),
        (text(1 << 20), text((1 << 20) + 1), "1048576 bytes"),
    ] {
        assert!(super::check_size(&fits).is_ok(), "{unit}");
        let problem = super::check_size(&excess).unwrap_err();
        assert_eq!(problem.message, format!("the schema is too large: more than {unit}"));
    }
}
