use super::*;
use crate::Enforcement;

/// Returns what is sent for a field to llama.cpp, and `keyword kind` of each of its losses.
fn sent(field: Value) -> (Value, Vec<String>) {
    let projection = with(json!({ "a": field })).project(Dialect::LlamaCpp);
    assert_eq!(projection.dialect, Dialect::LlamaCpp, "{:?}", projection.lost);
    let of_field = |line: &String| Some(line.strip_prefix("/data/properties/a ")?.to_owned());
    let losses = lost(&projection).iter().filter_map(of_field).collect();
    (data_of(&projection)["properties"]["a"].clone(), losses)
}

const ANY: [&str; 6] = ["string", "number", "boolean", "null", "object", "array"];

#[test]
fn patterns_have_a_form_that_the_grammar_accepts() {
    for (pattern, form) in [
        (r"^\d{4}-\w+$", "^[0-9]{4}-[0-9A-Z_a-z]+$"),
        ("^(?:ab)+$", "^(ab)+$"),
        ("^cat$|^dog$", "^(cat|dog)$"),
    ] {
        let (field, losses) = sent(json!({ "type": "string", "pattern": pattern }));
        assert_eq!(
            (&field["pattern"], losses.as_slice()),
            (&json!(form), &["pattern projected".to_owned()][..])
        );
    }
    let (field, losses) = sent(json!({ "type": "string", "pattern": r"^a\tb$", "minLength": 2 }));
    let text = r"Matches the regular expression `^a\tb$`.";
    assert_eq!(field, json!({ "type": "string", "minLength": 2, "description": text, "maxLength": 1_999 }));
    assert_eq!(losses, ["pattern enforced_locally", "maxLength projected"]);
}

#[test]
fn every_schema_has_a_type() {
    assert_eq!(sent(json!({})), (json!({ "type": ANY }), vec![]));
    assert_eq!(sent(json!(true)), (json!({ "type": ANY }), vec![]));
    assert_eq!(sent(json!({ "description": "x" })), (json!({ "type": ANY, "description": "x" }), vec![]));
    let (field, losses) = sent(json!({ "not": { "type": "string" } }));
    assert_eq!((&field["type"], losses), (&json!(ANY), vec!["not enforced_locally".to_owned()]));
    let (field, losses) = sent(json!({ "minLength": 3 }));
    assert_eq!(field, json!({ "type": "string", "minLength": 3, "maxLength": 1_999 }));
    assert_eq!(losses, ["type projected", "maxLength projected"]);
    assert_eq!(sent(json!({ "type": "object", "properties": {} })).0, json!({ "type": "object" }));
}

#[test]
fn only_limits_that_the_grammar_enforces_are_sent() {
    for (field, keyword) in [
        (json!({ "type": "string", "maxLength": 2_000 }), "maxLength"),
        (json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2_000 }), "maxItems"),
        (json!({ "type": "number", "minimum": 3 }), "minimum"),
        (json!({ "type": "string", "pattern": "^a+$", "maxLength": 3 }), "maxLength"),
        (json!({ "type": "string", "format": "date", "minLength": 3 }), "minLength"),
    ] {
        let (sent, losses) = sent(field);
        assert!(sent.get(keyword).is_none() && sent.get("description").is_some(), "{sent}");
        assert_eq!(losses, [format!("{keyword} enforced_locally")]);
    }
    let limits = json!({ "type": ["integer", "null"], "minimum": 3 });
    assert_eq!(sent(limits.clone()), (limits, vec![]));
}

#[test]
fn everything_that_is_sent_is_enforced_as_measured() {
    let probes: Value = serde_json::from_str(include_str!("../../../probes.json")).unwrap();
    // A contract with look-around does not compile.
    let compiles = |probe: &&Value| probe["feature"] != "pattern_look_around";
    for probe in probes.as_array().unwrap().iter().filter(compiles) {
        let data = json!({ "type": "object", "properties": { "a": probe["schema"] } });
        let document = json!({ "data": data, "$defs": { "X": { "type": "integer", "minimum": 1 } } });
        let projection = contract(document, Format::V22).project(Dialect::LlamaCpp);
        let ignored = Enforcement::by_engine("llamacpp").unwrap().losses(projection.schema.as_ref().unwrap());
        assert_eq!(ignored, [], "{}", probe["feature"]);
    }
}

#[test]
fn texts_and_lists_without_a_bound_get_one() {
    let bound = |keyword: &str| vec![format!("{keyword} projected")];
    for (field, keyword, length) in [
        (json!({ "type": "string" }), "maxLength", 1_999),
        (json!({ "type": ["string", "null"] }), "maxLength", 1_999),
        (json!({ "type": "array", "items": { "type": "integer" } }), "maxItems", 1_000),
    ] {
        let (sent, losses) = sent(field);
        assert_eq!((&sent[keyword], losses), (&json!(length), bound(keyword)), "{sent}");
    }
    for field in [
        json!({ "type": "string", "maxLength": 5 }),
        json!({ "type": "string", "enum": ["a"] }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 5 }),
    ] {
        assert_eq!(sent(field.clone()), (field, vec![]));
    }
    // The prose of an answer and of an error is shorter.
    let projection = with(json!({})).project(Dialect::LlamaCpp);
    assert_eq!(data_of(&projection)["properties"]["rationale"]["maxLength"], 600);
    let error = &choice(projection.schema.as_ref().unwrap())[1]["properties"]["error"];
    assert_eq!(error["properties"]["message"]["maxLength"], 600);
    // Nothing tells that an argument of a tool was cut.
    let input = json!({ "input": { "type": "object", "properties": { "a": { "type": "string" } } } });
    let arguments = contract(input, Format::V22).project_input(Dialect::LlamaCpp);
    assert_eq!(arguments.schema.unwrap()["properties"]["a"], json!({ "type": "string" }));
}

#[test]
fn value_that_reaches_an_added_bound_is_cut() {
    let contract = with(json!({}));
    let cut = |dialect, data: &Value| {
        let data = Tree::from(data.clone());
        contract.cut_at(dialect, data.node()).map(|path| path.to_string())
    };
    let text = |length: usize| json!({ "a": { "b": [1, "é".repeat(length)] } });
    assert_eq!(cut(Dialect::LlamaCpp, &text(1_999)).as_deref(), Some("data.a.b[1]"));
    assert_eq!(cut(Dialect::LlamaCpp, &json!({ "a": vec![1; 1_000] })).as_deref(), Some("data.a"));
    for length in [0, 1_998, 2_000] {
        assert_eq!(cut(Dialect::LlamaCpp, &text(length)), None);
    }
    assert_eq!(cut(Dialect::OpenAiStrict, &text(1_999)), None);
}
