use cog_spec::{Format, Manifest, Tier};
use serde_json::{Value, json};

use super::*;
use crate::Contract;

fn rules() -> Rules {
    Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)))
}

/// `pointer: message` of each problem, and the suggestions.
fn problems(document: Value) -> Vec<(String, String)> {
    let problems = Contract::compile(&document, &rules()).expect_err("it should not compile");
    problems.into_iter().map(|one| (one.to_string(), one.suggestion.unwrap_or_default())).collect()
}

#[test]
fn names_are_never_fetched_and_references_see_the_whole_file() {
    let document = json!({
        "$schema": "https://ziel-io.github.io/cognitive-modules/schema/v1.json",
        "$id": "https://example.com/schema.json",
        "data": {
            "$id": "https://example.com/data.json",
            "properties": {
                "a": { "$ref": "#/$defs/word" },
                "b": { "$ref": "https://example.com/schema.json#/$defs/word" },
                "c": { "$ref": "#named" },
            },
        },
        "$defs": { "word": { "type": "string" }, "other": { "$id": "#named", "type": "integer" } },
    });
    let contract = Contract::compile(&document, &rules()).unwrap();
    let wrong = cog_json::Value::parse(r#"{"rationale": "r", "a": 1, "b": 2, "c": "x"}"#).unwrap();
    let paths: Vec<String> =
        contract.check_data(wrong.node()).violations.into_iter().map(|one| one.path).collect();
    assert_eq!(paths, ["data.a", "data.b", "data.c"]);
}

#[test]
fn a_property_that_is_called_like_a_keyword_stays() {
    let document =
        json!({ "data": { "properties": { "$id": { "type": "string" }, "$ref": { "type": "integer" } } } });
    let contract = Contract::compile(&document, &rules()).unwrap();
    let names: Vec<&String> =
        contract.data_schema().unwrap()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["$id", "$ref"]);
}

#[test]
fn parts_are_found_by_name_by_alias_and_by_pointer() {
    let document = json!({ "input": {}, "output": {}, "contracts": { "ok": {}, "meta": {} } });
    let mut rules = rules();
    let parts = Document::read(&document, &rules).unwrap().parts;
    assert_eq!(
        (parts.input.as_deref(), parts.data.as_deref(), parts.meta),
        (Some("/input"), Some("/output"), None)
    );
    rules.io.data = Some("#/contracts/ok".to_owned());
    rules.io.meta = Some("/contracts/meta".to_owned());
    let parts = Document::read(&document, &rules).unwrap().parts;
    assert_eq!(
        (parts.data.as_deref(), parts.meta.as_deref()),
        (Some("/contracts/ok"), Some("/contracts/meta"))
    );
    rules.io.meta = Some("/contracts/mata".to_owned());
    let problems = Document::read(&document, &rules).unwrap_err();
    assert_eq!(problems[0].suggestion.as_deref(), Some("Did you mean `/contracts/meta`?"));
}

#[test]
fn each_mistake_is_told_with_its_place_and_a_way_out() {
    let document = json!({
        "input": { "type": "strng" },
        "data": { "properties": { "a": { "maxLength": -1 } } },
        "$defs": { "x": { "pattern": "(?!a)b" } },
    });
    assert_eq!(
        problems(document).iter().map(|(problem, _)| problem.as_str()).collect::<Vec<_>>(),
        [
            "/input/type: not valid JSON Schema (Draft-07): found `strng`; allowed: `array`, `boolean`, `integer`, `null`, `number`, `object` or `string`",
            "/data/properties/a/maxLength: not valid JSON Schema (Draft-07): found -1; allowed: at least 0",
            "/$defs/x/pattern: the pattern `(?!a)b` is not supported",
        ]
    );
}

#[test]
fn a_reference_that_leads_nowhere_is_told_with_the_nearest_name() {
    let missing = problems(json!({ "data": { "$ref": "#/$defs/Isue" }, "$defs": { "Issue": {} } }));
    assert_eq!(missing[0].0, "/data/$ref: `#/$defs/Isue` points to `/$defs/Isue`, which does not exist");
    assert_eq!(missing[0].1, "Did you mean `/$defs/Issue`?");
    let outside = problems(json!({ "data": { "$ref": "http://169.254.169.254/schema.json" } }));
    assert!(outside[0].0.ends_with("points outside this file; references are never fetched"), "{outside:?}");
}

#[test]
fn circles_of_references_are_refused_and_trees_are_not() {
    let circle = json!({
        "data": { "$ref": "#/$defs/a" },
        "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "not": { "$ref": "#/$defs/a" } } },
    });
    let reported = problems(circle);
    assert_eq!(reported.len(), 1);
    assert!(
        reported[0].0.contains("circular references: #/$defs/a → #/$defs/a/allOf/0 → #/$defs/b"),
        "{reported:?}"
    );
    let tree =
        json!({ "data": { "properties": { "left": { "$ref": "#/data" }, "right": { "$ref": "#/data" } } } });
    assert!(Contract::compile(&tree, &rules()).is_ok());
}

#[test]
fn a_document_that_is_too_large_is_refused_before_anything_walks_over_it() {
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "items": deep });
    }
    let wide: Value = json!({ "data": { "enum": (0..11_000).collect::<Vec<_>>() } });
    let long = json!({ "data": { "description": "x".repeat(1_100_000) } });
    for (document, unit) in
        [(json!({ "data": deep }), "64 levels"), (wide, "10000 values"), (long, "1048576 bytes")]
    {
        assert!(problems(document)[0].0.contains(unit));
    }
    for other in [json!([]), json!("x"), json!(null)] {
        assert!(problems(other)[0].0.contains("must be an object"));
    }
}

#[test]
fn a_long_chain_of_references_is_followed() {
    let refer = |number: usize| json!({ "$ref": format!("#/$defs/d{number}") });
    let mut definitions: serde_json::Map<String, Value> =
        (0..2_000).map(|number| (format!("d{number}"), refer(number + 1))).collect();
    definitions.insert("d2000".to_owned(), json!({ "properties": { "rationale": { "type": "string" } } }));
    let contract = Contract::compile(&json!({ "data": refer(0), "$defs": definitions }), &rules()).unwrap();
    let wrong = cog_json::Value::parse(r#"{"rationale": 1}"#).unwrap();
    assert_eq!(contract.check_data(wrong.node()).violations.len(), 1);
}

#[test]
fn a_long_chain_of_schemas_is_refused_in_bounded_time() {
    let mut definitions = serde_json::Map::new();
    for number in 0..2_000 {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), json!({ "allOf": [next] }));
    }
    definitions.insert("d2000".to_owned(), json!({}));
    let reported = problems(json!({ "data": { "$ref": "#/$defs/d0" }, "$defs": definitions }));
    assert!(reported[0].0.contains("schemas apply to the same value"), "{reported:?}");
}

#[test]
fn media_inputs_are_found_by_shape_and_keep_their_words() {
    let own = json!({
        "description": "A photo.",
        "oneOf": [
            { "properties": { "type": { "const": "url" } } },
            { "properties": { "type": { "const": "base64" } } },
            { "properties": { "type": { "const": "file" } } },
        ],
    });
    let document = Document::read(&json!({ "input": { "properties": { "photo": own } } }), &rules()).unwrap();
    assert_eq!(document.media, ["/input/properties/photo"]);
    let photo = document.value.pointer("/input/properties/photo").unwrap();
    assert_eq!((photo["oneOf"].as_array().unwrap().len(), &photo["description"]), (4, &json!("A photo.")));
}

#[test]
fn references_that_fan_out_are_refused() {
    let twice = |next: &str| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
    let mut parts = serde_json::Map::new();
    for level in 0..40 {
        parts.insert(format!("d{level}"), twice(&format!("#/$defs/d{}", level + 1)));
    }
    parts.insert("d40".to_owned(), json!({ "type": "object" }));
    let reported = problems(json!({ "$defs": parts, "data": { "$ref": "#/$defs/d0" } }));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].0.contains("over 100000 schemas"), "{reported:?}");
}
