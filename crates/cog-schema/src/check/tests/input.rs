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
    assert_eq!(violations(schema.clone(), pdf), ["input.images[0].media_type pattern E1010"]);
    // As browsers and libraries write them.
    for named in ["IMAGE/JPEG", "image/jpg", "audio/webm;codecs=opus", "audio/x-wav", "application/ogg"] {
        let named = json!({ "images": [{ "type": "base64", "media_type": named, "data": "" }] });
        assert_eq!(violations(schema.clone(), named), [""; 0]);
    }
}

/// The violations of one media item, by the author's definition of it.
fn item(definition: Value, item: Value) -> Vec<String> {
    let input = json!({ "properties": { "photo": { "$ref": "#/$defs/MediaInput" } } });
    let contract =
        contract(json!({ "input": input, "$defs": { "MediaInput": definition } }), &rules(Tier::Decision));
    let input = Tree::from(json!({ "photo": item }));
    let violations = contract.check_input(input.node());
    violations.iter().map(|it| format!("{} {} {}", it.path, it.rule, it.code.as_str())).collect()
}

#[test]
fn what_the_author_forbids_of_media_stays_forbidden() {
    let url = json!({ "type": "url", "url": "https://example.com/a.png" });
    let png = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
    let jpeg = json!({ "type": "base64", "media_type": "image/jpeg", "data": "QUJD" });
    let upload = json!({ "type": "upload_ref", "upload_id": "u" });
    let only_png = json!({
        "type": "object",
        "required": ["type", "media_type"],
        "properties": { "type": { "const": "base64" }, "media_type": { "enum": ["image/png"] } },
    });
    assert_eq!(item(only_png.clone(), png.clone()), [""; 0]);
    for other in [&url, &jpeg, &upload, &json!({ "type": "base64", "media_type": "image/png" })] {
        assert_ne!(item(only_png.clone(), other.clone()), [""; 0], "{other}");
    }
    let captioned = json!({ "required": ["caption"], "properties": { "caption": { "type": "string" } } });
    assert_eq!(item(captioned.clone(), url.clone()), ["input.photo.caption required E1002"]);
    let with_caption = json!({ "type": "url", "url": "https://example.com/a.png", "caption": "x" });
    assert_eq!(item(captioned, with_caption), [""; 0]);
    let listed = json!({ "properties": { "type": { "enum": ["url", "base64", "file"] } } });
    assert_eq!(item(listed, upload.clone()), [""; 0]);
    let two = json!({ "oneOf": [
        { "properties": { "type": { "const": "base64" } }, "required": ["type"] },
        { "properties": { "type": { "const": "text" } }, "required": ["type", "text"] },
    ] });
    assert_eq!(item(two.clone(), png), [""; 0]);
    assert_eq!(item(two.clone(), json!({ "type": "text", "text": "x" })), [""; 0]);
    for other in [url, upload, json!({ "type": "base64", "media_type": "image/png" })] {
        assert_ne!(item(two.clone(), other.clone()), [""; 0], "{other}");
    }
}

#[test]
fn branch_of_the_author_is_not_a_medium() {
    let branch = |kind: &str| json!({ "properties": { "type": { "const": kind } }, "required": ["type"] });
    let choice = json!({ "oneOf": [branch("url"), branch("base64"), branch("file"), branch("text")] });
    let contract = contract(
        json!({ "input": { "properties": { "a": choice.clone(), "b": choice } } }),
        &rules(Tier::Decision),
    );
    let input = Tree::from(json!({ "a": { "type": "text" }, "b": { "type": "file", "path": "b.png" } }));
    assert_eq!(contract.check_input(input.node()), []);
    let paths: Vec<String> = contract.media_paths(input.node()).iter().map(Path::to_string).collect();
    assert_eq!(paths, ["input.b"]);
}

#[test]
fn documents_are_accepted_if_the_manifest_lists_them() {
    let schema = json!({ "properties": { "file": { "$ref": "#/$defs/MediaInput" } } });
    let rules = Rules { documents: true, ..rules(Tier::Decision) };
    let contract = contract(json!({ "input": schema }), &rules);
    let pdf =
        Tree::parse(r#"{"file": {"type": "base64", "media_type": "application/pdf", "data": ""}}"#).unwrap();
    assert_eq!(contract.check_input(pdf.node()), []);
    let named = json!({ "file": { "type": "base64", "media_type": "application/x-pdf", "data": "" } });
    assert_eq!(contract.check_input(Tree::from(named).node()), []);
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
