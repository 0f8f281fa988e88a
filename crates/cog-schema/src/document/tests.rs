use cog_spec::{Format, Manifest, Tier};
use serde_json::{Value, json};

use super::*;
use crate::Contract;

fn rules() -> Rules {
    Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)))
}

/// Returns `pointer: message` of each error, with its suggestion.
fn problems(document: Value) -> Vec<(String, String)> {
    let problems = Contract::compile(&document, &rules()).expect_err("it should not compile");
    problems.into_iter().map(|one| (one.to_string(), one.suggestion.unwrap_or_default())).collect()
}

#[test]
fn references_resolve_in_the_file_and_nothing_is_fetched() {
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
fn property_named_like_a_keyword_stays() {
    let document =
        json!({ "data": { "properties": { "$id": { "type": "string" }, "$ref": { "type": "integer" } } } });
    let contract = Contract::compile(&document, &rules()).unwrap();
    let names: Vec<&String> =
        contract.data_schema().unwrap()["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["$id", "$ref"]);
}

#[test]
fn finds_parts_by_name_alias_and_pointer() {
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
fn each_error_has_its_pointer() {
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
fn number_in_quotes_and_invalid_pattern_have_one_error_each() {
    let fields = json!({ "a": { "maxLength": "600" }, "b": { "pattern": "(" }, "c": { "format": "regex", "const": "(" } });
    let found = problems(json!({ "data": { "properties": fields } }));
    assert_eq!(
        found,
        [
            (
                "/data/properties/a/maxLength: not valid JSON Schema (Draft-07): found `600`; allowed: an integer".to_owned(),
                "Write `600` without quotes.".to_owned()
            ),
            ("/data/properties/b/pattern: the pattern `(` is not supported".to_owned(), lint::LINEAR.to_owned()),
        ]
    );
}

#[test]
fn missing_target_suggests_the_most_similar_name() {
    let missing = problems(json!({ "data": { "$ref": "#/$defs/Isue" }, "$defs": { "Issue": {} } }));
    assert_eq!(missing[0].0, "/data/$ref: `#/$defs/Isue` points to `/$defs/Isue`, which does not exist");
    assert_eq!(missing[0].1, "Did you mean `/$defs/Issue`?");
    let outside = problems(json!({ "data": { "$ref": "http://169.254.169.254/schema.json" } }));
    assert!(outside[0].0.ends_with("points outside this file; references are never fetched"), "{outside:?}");
}

#[test]
fn rejects_circular_references_and_allows_trees() {
    let circle = json!({
        "data": { "$ref": "#/$defs/a" },
        "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "not": { "$ref": "#/$defs/a" } } },
    });
    let found = problems(circle);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].0.contains("circular references: #/$defs/a → #/$defs/a/allOf/0 → #/$defs/b"),
        "{found:?}"
    );
    let tree =
        json!({ "data": { "properties": { "left": { "$ref": "#/data" }, "right": { "$ref": "#/data" } } } });
    assert!(Contract::compile(&tree, &rules()).is_ok());
}

#[test]
fn rejects_documents_over_the_size_limits() {
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
fn follows_long_chains_of_references() {
    let refer = |number: usize| json!({ "$ref": format!("#/$defs/d{number}") });
    let mut definitions: serde_json::Map<String, Value> =
        (0..2_000).map(|number| (format!("d{number}"), refer(number + 1))).collect();
    definitions.insert("d2000".to_owned(), json!({ "properties": { "rationale": { "type": "string" } } }));
    let contract = Contract::compile(&json!({ "data": refer(0), "$defs": definitions }), &rules()).unwrap();
    let wrong = cog_json::Value::parse(r#"{"rationale": 1}"#).unwrap();
    assert_eq!(contract.check_data(wrong.node()).violations.len(), 1);
}

#[test]
fn rejects_long_chains_of_schemas_in_bounded_time() {
    let mut definitions = serde_json::Map::new();
    for number in 0..2_000 {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), json!({ "allOf": [next] }));
    }
    definitions.insert("d2000".to_owned(), json!({}));
    let found = problems(json!({ "data": { "$ref": "#/$defs/d0" }, "$defs": definitions }));
    assert!(found[0].0.contains("schemas apply to the same value"), "{found:?}");
}

#[test]
fn finds_media_inputs_by_structure_and_copies_annotations() {
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
fn definition_of_media_is_added_to_the_branches_of_the_author() {
    let source = |kind: &str, more: Value| json!({ "properties": { "type": { "const": kind }, "caption": more }, "required": ["type", "caption"] });
    let text = json!({ "properties": { "type": { "const": "text" } }, "required": ["type", "text"] });
    let kinds = json!({ "enum": ["image/png"] });
    let mut base64 = source("base64", json!({ "type": "string" }));
    base64["properties"]["media_type"] = kinds.clone();
    let branches = json!([source("url", json!(true)), base64, { "$ref": "#/$defs/F" }, text]);
    let definitions = json!({ "F": source("file", json!({ "maxLength": 9 })) });
    let original =
        json!({ "input": { "properties": { "photo": { "anyOf": branches } } }, "$defs": definitions });
    let document = Document::read(&original, &rules()).unwrap();
    let found = document.value.pointer("/input/properties/photo/anyOf").unwrap();
    assert_eq!(found.as_array().unwrap().len(), 5);
    assert_eq!(found[0]["required"], json!(["type", "caption", "url"]));
    assert_eq!(found[1]["properties"]["media_type"]["enum"], kinds["enum"]);
    assert_eq!(found[1]["properties"]["data"], json!({ "type": "string" }));
    assert_eq!(found[3], text);
    assert_eq!(found[4]["properties"]["type"], json!({ "const": "upload_ref" }));
    assert_eq!(found[4]["properties"]["caption"], json!({ "maxLength": 9 }));
    assert_eq!(found[4]["required"], json!(["type", "caption", "upload_id"]));
    assert_eq!(document.value.pointer("/$defs/F"), definitions.get("F"));
}

#[test]
fn what_a_closed_branch_does_not_name_stays_forbidden() {
    let source = |kind: &str, key: &str| {
        json!({
            "additionalProperties": false,
            "properties": { "type": { "const": kind }, key: { "type": "string" } },
            "required": ["type", key],
        })
    };
    let branches = json!([source("url", "url"), source("base64", "data"), source("file", "path")]);
    let original = json!({ "input": { "properties": { "photo": { "oneOf": branches } } } });
    let document = Document::read(&original, &rules()).unwrap();
    let found = document.value.pointer("/input/properties/photo/oneOf").unwrap();
    let names = |at: usize| {
        let mut names: Vec<&str> =
            found[at]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(0), ["type", "url"]);
    // The runtime cannot do without the type of bytes.
    assert_eq!(names(1), ["data", "media_type", "type"]);
    assert_eq!(names(3), ["type", "upload_id"]);
}

#[test]
fn definition_of_a_generated_file_is_added_to_the_one_of_the_author() {
    let defined = |own: Value| {
        let original = json!({ "data": { "properties": { "made": { "$ref": "#/$defs/MediaOutput" } } }, "$defs": { "MediaOutput": own } });
        Document::read(&original, &rules()).unwrap().value.pointer("/$defs/MediaOutput").cloned().unwrap()
    };
    let own = json!({ "required": ["caption"], "properties": { "caption": {}, "type": { "const": "url" }, "media_type": { "enum": ["image/png"] } } });
    let found = defined(own);
    assert_eq!(found["required"], json!(["caption", "type", "media_type"]));
    assert_eq!(found["properties"]["type"]["const"], "url");
    assert_eq!(found["properties"]["media_type"]["enum"], json!(["image/png"]));
    for own in [
        json!({ "oneOf": [{ "required": ["text"] }, { "required": ["url"] }] }),
        json!({ "type": "string", "format": "uri" }),
        json!({ "additionalProperties": false, "properties": { "url": {} } }),
    ] {
        assert_eq!(defined(own.clone()), own);
    }
}

#[test]
fn rejects_references_that_fan_out() {
    let twice = |next: &str| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
    let mut parts = serde_json::Map::new();
    for level in 0..40 {
        parts.insert(format!("d{level}"), twice(&format!("#/$defs/d{}", level + 1)));
    }
    parts.insert("d40".to_owned(), json!({ "type": "object" }));
    let found = problems(json!({ "$defs": parts, "data": { "$ref": "#/$defs/d0" } }));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.contains("over 100000 schemas"), "{found:?}");
}

#[test]
fn definitions_of_media_are_added_where_they_are_missing() {
    let both = json!({ "properties": {
        "photo": { "$ref": "#/$defs/MediaInput" },
        "chart": { "$ref": "#/definitions/MediaOutput" },
    } });
    let document = Document::read(&json!({ "data": both }), &rules()).unwrap();
    assert_eq!(document.handoffs, Handoffs::default());
    assert_eq!(document.media, ["/$defs/MediaInput"]);
    let branches = document.value.pointer("/$defs/MediaInput/oneOf").and_then(Value::as_array);
    assert_eq!(branches.map(Vec::len), Some(4));
    assert!(document.value.pointer("/definitions/MediaOutput/properties/media_type").is_some());
}

#[test]
fn definition_that_is_missing_accepts_documents_where_the_manifest_lists_them() {
    for (documents, is_accepted) in [(true, true), (false, false)] {
        let original = json!({ "input": { "$ref": "#/$defs/MediaInput" } });
        let contract = Contract::compile(&original, &Rules { documents, ..rules() }).unwrap();
        let source = r#"{"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}"#;
        let source = cog_json::Value::parse(source).unwrap();
        assert_eq!(contract.check_input(source.node()).is_empty(), is_accepted, "{documents}");
    }
}

#[test]
fn circle_of_over_six_references_is_shortened() {
    let circle = |length: usize| {
        let refer =
            |at: usize| (format!("d{at}"), json!({ "$ref": format!("#/$defs/d{}", (at + 1) % length) }));
        let definitions: serde_json::Map<String, Value> = (0..length).map(refer).collect();
        problems(json!({ "data": { "$ref": "#/$defs/d0" }, "$defs": definitions })).swap_remove(0).0
    };
    let six = "#/$defs/d0 → #/$defs/d1 → #/$defs/d2 → #/$defs/d3 → #/$defs/d4 → #/$defs/d5 → ";
    assert!(circle(6).ends_with(&format!("circular references: {six}#/$defs/d0")), "{}", circle(6));
    assert!(circle(7).ends_with(&format!("circular references: {six}… → #/$defs/d0")), "{}", circle(7));
    assert!(
        circle(2).ends_with("circular references: #/$defs/d0 → #/$defs/d1 → #/$defs/d0"),
        "{}",
        circle(2)
    );
}

/// Returns a schema that checks a value against `width` schemas. A reference counts as one more than its target.
fn of_width(width: u64, definitions: &mut serde_json::Map<String, Value>) -> Value {
    if width < 10 {
        return json!({ "allOf": vec![json!({}); width as usize - 1] });
    }
    let half = (width - 3) / 2;
    let name = format!("w{half}");
    let schema = of_width(half, definitions);
    let reference = json!({ "$ref": format!("#/$defs/{name}") });
    definitions.insert(name, schema);
    match width % 2 {
        1 => json!({ "allOf": [reference, reference] }),
        _ => json!({ "allOf": [{}, reference, reference] }),
    }
}

#[test]
fn value_is_checked_against_at_most_100_000_schemas() {
    for (width, expected) in [(100_000, 0), (100_001, 1)] {
        let mut definitions = serde_json::Map::new();
        let data = of_width(width, &mut definitions);
        let document = json!({ "data": data, "$defs": definitions });
        let reached = reach(&document, &["/data".to_owned()]).unwrap();
        assert_eq!(find_loops(&document, &reached).len(), expected, "{width}");
    }
}

#[test]
fn names_of_schemas_are_found_everywhere_and_begin_with_a_number_sign() {
    let violations = |data: Value| {
        let document = json!({ "data": { "properties": data }, "$defs": { "a": { "$id": "https://example.com/a", "type": "string" } } });
        let contract = Contract::compile(&document, &rules()).map_err(|problems| problems[0].to_string())?;
        let wrong = cog_json::Value::parse(r#"{"rationale": "r", "b": 1}"#).unwrap();
        Ok(contract.check_data(wrong.node()).violations.into_iter().map(|one| one.path).collect::<Vec<_>>())
    };
    let named = json!({ "allOf": [{ "$id": "#text", "type": "string" }] });
    assert_eq!(violations(json!({ "a": named, "b": { "$ref": "#text" } })), Ok(vec!["data.b".to_owned()]));
    // `#` is the document, whatever else has that name.
    let named = json!({ "$id": "#", "type": "string" });
    assert_eq!(violations(json!({ "a": named, "b": { "$ref": "#" } })), Ok(vec![]));
    let outside: String = violations(json!({ "b": { "$ref": "https://example.com/a" } })).unwrap_err();
    assert!(outside.ends_with("points outside this file; references are never fetched"), "{outside}");
}
