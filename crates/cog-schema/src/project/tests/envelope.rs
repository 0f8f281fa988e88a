//! The members of an envelope that the specification adds, and the input of a tool.

use super::*;

fn input(input: Value, dialect: Dialect) -> Projection {
    let document = json!({ "input": input, "data": { "type": "object" } });
    contract(document, Format::V22).project_input(dialect)
}

fn paths(paths: &[Path]) -> Vec<String> {
    paths.iter().map(Path::to_string).collect()
}

/// Returns a contract that emits three contexts, one with a schema.
fn emitting() -> Contract {
    let mut rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    rules.emits = ["notes", "other", "conversation_history"].map(str::to_owned).to_vec();
    let notes = json!({ "type": "object", "properties": { "due": { "type": "string" } } });
    let document = json!({ "data": { "type": "object" }, "$context": { "emits": { "notes": notes } } });
    Contract::compile(&document, &rules).unwrap()
}

#[test]
fn input_is_an_object_in_the_dialect_of_its_tool() {
    let named = json!({ "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let strict = input(named.clone(), Dialect::OpenAiStrict);
    let expected = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    assert_eq!((strict.dialect, strict.schema), (Dialect::OpenAiStrict, Some(expected)));
    assert_eq!(input(named, Dialect::Prompt).dialect, Dialect::JsonSchema);
    let choice = json!({ "oneOf": [{ "properties": { "a": true } }, { "properties": { "b": true } }] });
    let refused = input(choice.clone(), Dialect::OpenAiStrict);
    assert_eq!(refused.dialect, Dialect::JsonSchema);
    assert_eq!(refused.lost[0].reason, "openai_strict: the root of the schema is not an object");
    assert_eq!(input(choice, Dialect::Gemini).dialect, Dialect::Gemini);
}

#[test]
fn module_without_a_part_has_the_usual_fields() {
    let contract = contract(json!({ "data": { "type": "object" } }), Format::V22);
    let expected = json!({ "type": "object", "properties": {} });
    assert_eq!(contract.project_input(Dialect::JsonSchema).schema, Some(expected));
    let schema = contract.project(Dialect::JsonSchema).schema.unwrap();
    let meta = success(&schema)["properties"]["meta"].as_object().unwrap();
    assert_eq!(meta.keys().collect::<Vec<_>>(), ["type", "properties", "required"]);
}

#[test]
fn confidence_of_another_form_is_sent_as_written() {
    for confidence in [
        json!({ "type": "number", "minimum": 0.5, "maximum": 1 }),
        json!({ "type": "number", "minimum": 0, "maximum": 0.9 }),
        json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 }),
        json!({ "type": "number", "enum": [0, 0.5, 1] }),
    ] {
        let meta = json!({ "type": "object", "properties": { "confidence": confidence } });
        let document = json!({ "data": { "type": "object" }, "meta": meta });
        let schema = contract(document, Format::V22).project(Dialect::JsonSchema).schema.unwrap();
        assert_eq!(success(&schema)["properties"]["meta"]["properties"]["confidence"], confidence);
    }
}

#[test]
fn emitted_context_is_a_required_member_of_success() {
    let schema = emitting().project(Dialect::JsonSchema).schema.unwrap();
    let emitted = &success(&schema)["properties"]["_emitted_context"]["properties"];
    let definition = emitted["notes"]["$ref"].as_str().unwrap().strip_prefix("#").unwrap();
    assert_eq!(schema.pointer(definition).unwrap()["properties"], json!({ "due": { "type": "string" } }));
    assert_eq!(emitted["other"], json!({ "type": "object" }));
    assert_eq!(emitted["conversation_history"]["items"]["required"], json!(["role", "content"]));
    assert!(success(&schema)["required"].as_array().unwrap().contains(&json!("_emitted_context")));
    assert!(choice(&schema)[1]["properties"].get("_emitted_context").is_none());
}

#[test]
fn nulls_of_emitted_context_are_added() {
    let context = Tree::parse(r#"{"due": null, "unknown": null}"#).unwrap();
    assert_eq!(paths(&emitting().added_nulls_of_emitted("notes", context.node())), ["notes.due"]);
    assert_eq!(emitting().added_nulls_of_emitted("other", context.node()), []);
}

#[test]
fn null_extensions_are_added_to_data_only() {
    let null = Tree::parse(r#"{"extensions": null}"#).unwrap();
    let plain = with(json!({}));
    assert_eq!(paths(&plain.added_nulls("data", null.node())), ["data.extensions"]);
    assert_eq!(plain.added_nulls("meta", null.node()), []);
    assert_eq!(plain.added_nulls("data", Tree::parse("{}").unwrap().node()), []);
    let named = with(json!({ "extensions": { "type": "object" } }));
    assert_eq!(paths(&named.added_nulls("data", null.node())), ["data.extensions"]);
}

#[test]
fn model_reports_the_codes_of_the_error_schema() {
    let codes = |error: Value| {
        contract(json!({ "data": { "type": "object" }, "error": error }), Format::V22).model_codes()
    };
    assert_eq!(
        codes(json!({ "properties": { "code": { "enum": ["E5001", "E5002"] } } })),
        ["E5001", "E5002"]
    );
    assert_eq!(codes(json!({})), ["E1001", "E1004", "E1006", "E2004", "E2005", "E2006", "E2007"]);
    assert_eq!(codes(json!({ "properties": { "code": { "const": "E1004" } } })), ["E1004"]);
}
