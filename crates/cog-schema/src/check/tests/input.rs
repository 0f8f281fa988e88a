use super::*;

fn violations(schema: Value, input: Value) -> Vec<String> {
    let contract = contract(json!({ "input": schema }), &rules(Tier::Decision));
    lines(&contract.check_input(Tree::from(input).node()))
}

#[test]
fn every_violation_has_path_and_code() {
    let schema = json!({
        "type": "object",
        "required": ["title", "urgency"],
        "properties": {
            "title": { "type": "string" },
            "urgency": { "enum": ["low", "high"] },
            "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
        },
        "additionalProperties": false,
    });
    let input = json!({ "urgency": "hihg", "tags": ["a", 2, "c"], "odd key": 1 });
    assert_eq!(
        violations(schema, input),
        [
            "input.title required E1002",
            "input.urgency enum E1004",
            "input.tags maxItems E1001",
            "input.tags[1] type E1003",
            "input[\"odd key\"] additionalProperties E1001",
        ]
    );
}

#[test]
fn messages_have_found_and_allowed_values_and_a_suggestion() {
    let schema =
        json!({ "properties": { "urgency": { "enum": ["low", "high"] } }, "additionalProperties": false });
    let contract = contract(json!({ "input": schema }), &rules(Tier::Decision));
    let violations =
        contract.check_input(Tree::parse(r#"{"urgency": "hihg", "urgencyy": 1}"#).unwrap().node());
    assert_eq!(violations[0].message, "found `hihg`; allowed: `low` or `high`");
    assert_eq!(violations[0].suggestion.as_deref(), Some("Did you mean `high`?"));
    assert_eq!(violations[1].message, "unknown field `urgencyy`; allowed: `urgency`");
    assert_eq!(violations[1].suggestion.as_deref(), Some("Did you mean `urgency`?"));
}

#[test]
fn message_does_not_repeat_content() {
    let secret = "the patient's name is Maria";
    let contract = contract(json!({ "input": { "type": "integer" } }), &rules(Tier::Decision));
    let violations = contract.check_input(Tree::from(json!(secret)).node());
    assert_eq!(violations[0].message, "found a string of 27 characters; allowed: an integer");
}

#[test]
fn media_sources_have_the_definition_of_the_runtime() {
    let schema = json!({
        "properties": { "images": { "type": "array", "items": { "$ref": "#/$defs/MediaInput" }, "minItems": 1 } },
    });
    let sources = json!({ "images": [
        { "type": "url", "url": "https://example.com/a.png" },
        { "type": "base64", "media_type": "image/png", "data": "QUJD" },
        { "type": "file", "path": "a.png" },
        { "type": "upload_ref", "upload_id": "upl_1" },
    ] });
    assert_eq!(violations(schema.clone(), sources), [""; 0]);
    assert_eq!(
        violations(schema.clone(), json!({ "images": [{ "type": "ftp" }] })),
        ["input.images[0].type const E1004"]
    );
    assert_eq!(
        violations(schema.clone(), json!({ "images": [{ "type": "url" }] })),
        ["input.images[0].url required E1002"]
    );
    assert_eq!(
        violations(schema.clone(), json!({ "images": [{}] })),
        ["input.images[0].type required E1002"]
    );
    assert_eq!(violations(schema.clone(), json!({ "images": [] })), ["input.images minItems E1001"]);
    let pdf = json!({ "images": [{ "type": "base64", "media_type": "application/pdf", "data": "" }] });
    assert_eq!(violations(schema, pdf), ["input.images[0].media_type pattern E1010"]);
}

#[test]
fn documents_are_accepted_if_the_manifest_lists_them() {
    let schema = json!({ "properties": { "file": { "$ref": "#/$defs/MediaInput" } } });
    let rules = Rules { documents: true, ..rules(Tier::Decision) };
    let contract = contract(json!({ "input": schema }), &rules);
    let pdf =
        Tree::parse(r#"{"file": {"type": "base64", "media_type": "application/pdf", "data": ""}}"#).unwrap();
    assert_eq!(contract.check_input(pdf.node()), []);
    let paths: Vec<String> = contract.media_paths(pdf.node()).iter().map(Path::to_string).collect();
    assert_eq!(paths, ["input.file"]);
    assert!(contract.takes_media());
}

#[test]
fn pattern_of_another_field_is_not_that_of_a_media_type() {
    for (field, value) in [("media_type", "x"), ("name", "x")] {
        let own = json!({ "properties": { field: { "pattern": "^a" } } });
        let schema = json!({ "properties": {
            "photo": { "$ref": "#/$defs/MediaInput" },
            "own": own,
        } });
        let found = violations(schema, json!({ "own": { field: value } }));
        assert_eq!(found, [format!("input.own.{field} pattern E1001")]);
    }
    let sources =
        ["url", "base64", "file"].map(|kind| json!({ "properties": { "type": { "const": kind } } }));
    let schema = json!({ "properties": {
        "photo": { "oneOf": sources },
        "photos": { "properties": { "media_type": { "pattern": "^a" } } },
    } });
    let found = violations(schema, json!({ "photos": { "media_type": "x" } }));
    assert_eq!(found, ["input.photos.media_type pattern E1001"]);
}
