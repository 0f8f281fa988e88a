use super::*;

/// Returns what is sent for an optional field, and `keyword kind` of each of its losses.
pub(super) fn field(dialect: Dialect, field: Value) -> (Value, Vec<String>) {
    let projection = with(json!({ "a": field })).project(dialect);
    let of_field = |line: &String| Some(line.strip_prefix("/data/properties/a ")?.to_owned());
    let losses = lost(&projection).iter().filter_map(of_field).collect();
    (data_of(&projection)["properties"]["a"].clone(), losses)
}

const PROJECTED: [Dialect; 4] =
    [Dialect::OpenAiStrict, Dialect::Anthropic, Dialect::Gemini, Dialect::LlamaCpp];

#[test]
fn type_that_keywords_imply_is_reported() {
    for (schema, implied) in [
        (json!({ "items": { "type": "integer" } }), "array"),
        (json!({ "properties": { "b": { "type": "integer" } }, "required": ["b"] }), "object"),
        (json!({ "minLength": 2 }), "string"),
        (json!({ "minimum": 2 }), "number"),
    ] {
        for dialect in PROJECTED {
            let (sent, losses) = field(dialect, schema.clone());
            // OpenAI's optional members are nullable.
            let sent = sent.get("anyOf").map_or(sent.clone(), |branches| branches[0].clone());
            let is_implied = sent["type"] == implied || sent["type"] == json!([implied, "null"]);
            assert!(is_implied, "{dialect} {sent}");
            assert!(losses.contains(&"type projected".to_owned()), "{dialect} {losses:?}");
        }
    }
}

#[test]
fn listed_values_have_their_type_and_no_loss() {
    for dialect in [Dialect::Anthropic, Dialect::Gemini, Dialect::LlamaCpp] {
        assert_eq!(
            field(dialect, json!({ "enum": ["a", "b"] })),
            (json!({ "type": "string", "enum": ["a", "b"] }), vec![])
        );
    }
}

#[test]
fn containers_and_other_types_are_branches_with_their_own_keywords() {
    let schema = json!({
        "type": ["object", "string", "null"],
        "description": "Both",
        "required": ["b"],
        "properties": { "b": { "type": "integer" } },
        "minLength": 2,
    });
    let (sent, losses) = field(Dialect::LlamaCpp, schema);
    let object = json!({ "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] });
    let text = json!({ "type": ["string", "null"], "minLength": 2, "maxLength": 1_999 });
    assert_eq!(sent, json!({ "description": "Both", "anyOf": [object, text] }));
    assert_eq!(losses, ["maxLength projected"]);
}

#[test]
fn any_value_is_a_scalar_where_containers_must_be_described() {
    let sent = json!({ "type": ["string", "number", "boolean", "null"] });
    assert_eq!(field(Dialect::Gemini, json!({})), (sent, vec!["type projected".to_owned()]));
}

#[test]
fn integers_have_the_keywords_of_numbers() {
    let schema = json!({ "type": ["object", "integer"], "minimum": 1, "minLength": 2 });
    let (sent, _) = field(Dialect::LlamaCpp, schema);
    assert_eq!(sent["anyOf"], json!([{ "type": "object" }, { "type": "integer", "minimum": 1 }]));
}
