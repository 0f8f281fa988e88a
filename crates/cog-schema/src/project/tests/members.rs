use super::types::field;
use super::*;

/// Returns an object with more keywords.
fn object(keywords: Value) -> Value {
    let mut schema = json!({ "type": "object" });
    schema.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
    schema
}

/// Returns the reason why an optional field is not sent.
fn refused(schema: Value) -> String {
    let projection = with(json!({ "a": schema })).project(Dialect::Gemini);
    assert!(data_of(&projection)["properties"].get("a").is_none());
    projection.lost.into_iter().find(|loss| loss.pointer == "/data/properties/a").unwrap().reason
}

#[test]
fn required_member_that_is_not_defined_has_the_schema_of_further_members() {
    let member = |keywords: Value| {
        let mut schema = object(keywords);
        schema["required"] = json!(["x"]);
        schema
    };
    let (sent, _) = field(Dialect::Gemini, member(json!({ "additionalProperties": { "type": "integer" } })));
    assert_eq!(sent["properties"], json!({ "x": { "type": "integer" } }));
    let by_pattern = json!({ "additionalProperties": false, "patternProperties": { "^x": true } });
    let (sent, _) = field(Dialect::Gemini, member(by_pattern));
    assert_eq!(sent["properties"]["x"]["type"], json!(["string", "number", "boolean", "null"]));
    let closed = member(json!({ "additionalProperties": false }));
    assert_eq!(refused(closed), "the member is not sent: `x` is required, but not allowed");
}

#[test]
fn member_that_nothing_matches_is_not_sent() {
    assert_eq!(refused(json!(false)), "the member is not sent: the schema `false` matches nothing");
}

#[test]
fn further_members_of_a_closed_object_are_a_loss() {
    let losses = |further: Value| {
        let keywords = json!({ "properties": { "b": { "type": "null" } }, "additionalProperties": further });
        field(Dialect::OpenAiStrict, object(keywords)).1
    };
    let loss = "additionalProperties projected".to_owned();
    assert!(!losses(json!(false)).contains(&loss));
    assert!(losses(json!(true)).contains(&loss));
    assert!(losses(json!({ "type": "null" })).contains(&loss));
}

#[test]
fn further_members_depend_on_patterns_of_names() {
    let losses = |further: Value| {
        let keywords = json!({ "patternProperties": { "^c": true }, "additionalProperties": further });
        field(Dialect::Gemini, object(keywords)).1
    };
    let patterns = "patternProperties enforced_locally";
    assert_eq!(losses(json!(false)), [patterns, "additionalProperties enforced_locally"]);
    assert_eq!(losses(json!(true)), [patterns]);
}

#[test]
fn list_has_items_where_the_dialect_needs_them() {
    let list = json!({ "type": "array" });
    assert_eq!(field(Dialect::LlamaCpp, list.clone()), (list.clone(), vec![]));
    let any = json!({ "type": ["string", "number", "boolean", "null", "object", "array"] });
    let limited = json!({ "type": "array", "minItems": 1, "maxItems": 9, "items": any });
    let limits = json!({ "type": "array", "minItems": 1, "maxItems": 9 });
    assert_eq!(field(Dialect::LlamaCpp, limits), (limited, vec![]));
    let scalars = json!({ "type": ["string", "number", "boolean", "null"] });
    assert_eq!(field(Dialect::Gemini, list).0["items"], scalars);
}

#[test]
fn listed_containers_have_no_other_keywords() {
    for (schema, sent) in [
        (
            json!({ "type": "object", "const": { "b": 1 }, "properties": { "b": { "type": "integer" } } }),
            json!({ "type": "object", "const": { "b": 1 } }),
        ),
        (
            json!({ "type": "object", "enum": [{ "b": 1 }], "properties": { "b": { "type": "integer" } } }),
            json!({ "type": "object", "enum": [{ "b": 1 }] }),
        ),
        (
            json!({ "type": "array", "const": [1], "items": { "type": "integer" } }),
            json!({ "type": "array", "const": [1] }),
        ),
        (
            json!({ "type": "array", "enum": [[1]], "items": { "type": "integer" } }),
            json!({ "type": "array", "enum": [[1]] }),
        ),
    ] {
        assert_eq!(field(Dialect::LlamaCpp, schema), (sent, vec![]));
    }
}

#[test]
fn container_in_a_list_of_one_type_keeps_its_keywords() {
    for schema in [
        json!({ "type": ["object"], "properties": { "b": { "type": "integer" } }, "required": ["b"] }),
        json!({ "type": ["array"], "items": { "type": "integer" }, "maxItems": 9 }),
    ] {
        assert_eq!(field(Dialect::LlamaCpp, schema.clone()), (schema, vec![]));
    }
    let text = json!({ "type": ["string", "null"] });
    assert_eq!(field(Dialect::Anthropic, text.clone()), (text, vec![]));
}

#[test]
fn optional_member_becomes_nullable_once() {
    let text = json!({ "type": "string" });
    let nothing = json!({ "type": "null" });
    for nullable in
        [nothing.clone(), json!({ "type": ["string", "null"] }), json!({ "anyOf": [text, nothing] })]
    {
        assert_eq!(field(Dialect::OpenAiStrict, nullable.clone()), (nullable, vec![]));
    }
    let number = json!({ "type": "integer" });
    let either = json!({ "type": ["string", "integer"] });
    for (schema, sent) in [
        (json!({ "anyOf": [text, number] }), json!({ "anyOf": [text, number, nothing] })),
        (either.clone(), json!({ "anyOf": [either, nothing] })),
    ] {
        assert_eq!(field(Dialect::OpenAiStrict, schema), (sent, vec!["required projected".to_owned()]));
    }
}

#[test]
fn description_next_to_a_reference_is_sent() {
    let schema = json!({
        "data": { "type": "object", "required": ["chart"], "properties": {
            "chart": { "$ref": "#/$defs/Chart", "description": "The leading chart." },
        } },
        "$defs": { "Chart": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } } },
    });
    for dialect in
        [Dialect::OpenAiStrict, Dialect::JsonSchema, Dialect::Anthropic, Dialect::Gemini, Dialect::LlamaCpp]
    {
        let projection = contract(schema.clone(), Format::V22).project(dialect);
        let sent = projection.schema.unwrap().to_string();
        assert!(sent.contains("The leading chart."), "{dialect} {sent}");
    }
}
