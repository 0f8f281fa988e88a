use cog_json::{Path, Value as Tree};
use cog_spec::{Dialect, Form, Format, Manifest, Tier};
use serde_json::{Value, json};

use super::*;
use crate::Rules;

mod envelope;
mod forms;
mod llamacpp;
mod members;
mod property;
mod types;
mod vendors;

fn contract(document: Value, format: Format) -> Contract {
    let rules = Rules::from(&Manifest::with_defaults("test", format, Some(Tier::Decision)));
    Contract::compile(&document, &rules).unwrap()
}

/// Returns a v2.2 contract with these optional properties and a rationale.
fn with(properties: Value) -> Contract {
    let mut properties = properties;
    properties["rationale"] = json!({ "type": "string" });
    contract(
        json!({ "data": { "type": "object", "required": ["rationale"], "properties": properties } }),
        Format::V22,
    )
}

fn data_of(projection: &Projection) -> &Value {
    &success(projection.schema.as_ref().unwrap())["properties"]["data"]
}

/// Returns the choice between success and failure.
fn choice(schema: &Value) -> &Value {
    schema.get("anyOf").unwrap_or_else(|| &schema["properties"]["envelope"]["anyOf"])
}

fn success(schema: &Value) -> &Value {
    &choice(schema)[0]
}

const WITH_SCHEMA: [Dialect; 5] =
    [Dialect::OpenAiStrict, Dialect::JsonSchema, Dialect::Anthropic, Dialect::Gemini, Dialect::LlamaCpp];

/// Returns `pointer keyword kind` of each loss.
fn lost(projection: &Projection) -> Vec<String> {
    let line = |loss: &Loss| format!("{} {} {}", loss.pointer, loss.keyword, loss.kind.as_str());
    projection.lost.iter().map(line).collect()
}

#[test]
fn success_and_failure_are_separate_envelopes_in_order() {
    for dialect in WITH_SCHEMA {
        let contract = with(json!({}));
        let projection = contract.project(dialect);
        assert_eq!(projection.dialect, dialect);
        let schema = projection.schema.unwrap();
        let [success, failure] = choice(&schema).as_array().unwrap().as_slice() else { panic!("{schema}") };
        for (arm, ok, absent) in [(success, true, "error"), (failure, false, "data")] {
            let names: Vec<&String> = arm["properties"].as_object().unwrap().keys().collect();
            assert_eq!(names, ["ok", "meta", "data", "error"]);
            assert_eq!(arm["required"], json!(["ok", "meta", "data", "error"]));
            let fixed = match dialect {
                Dialect::Gemini => json!({ "type": "boolean", "description": format!("Always {ok}.") }),
                _ => json!({ "type": "boolean", "const": ok }),
            };
            assert_eq!(arm["properties"]["ok"], fixed);
            assert_eq!(arm["properties"][absent], json!({ "type": "null" }));
            let meta: Vec<&String> =
                arm["properties"]["meta"]["properties"].as_object().unwrap().keys().collect();
            assert_eq!(meta, ["confidence", "risk", "explain"]);
        }
    }
}

#[test]
fn envelope_is_one_level_deeper_where_the_root_must_be_an_object() {
    let contract = with(json!({}));
    for dialect in WITH_SCHEMA {
        let schema = contract.project(dialect).schema.unwrap();
        match contract.wrapper(dialect, Form::ENVELOPE) {
            Some(wrapper) => {
                assert_eq!((wrapper, &schema["type"]), ("envelope", &json!("object")));
                assert_eq!(schema["required"], json!(["envelope"]));
                assert_eq!(schema["additionalProperties"], json!(false));
            }
            None => assert!(matches!(dialect, Dialect::JsonSchema | Dialect::LlamaCpp), "{dialect}"),
        }
    }
    assert_eq!(contract.wrapper(Dialect::Prompt, Form::ENVELOPE), None);
    let bare = self::contract(json!({ "output": { "type": "object" } }), Format::V1);
    assert_eq!(bare.wrapper(Dialect::OpenAiStrict, Form::ENVELOPE), None);
}

#[test]
fn confidence_is_a_list_of_values_where_bounds_are_not_enforced() {
    let confidence = |dialect| {
        let schema = with(json!({})).project(dialect).schema.unwrap();
        success(&schema)["properties"]["meta"]["properties"]["confidence"].clone()
    };
    assert_eq!(confidence(Dialect::OpenAiStrict), json!({ "type": "number", "minimum": 0, "maximum": 1 }));
    for dialect in [Dialect::JsonSchema, Dialect::LlamaCpp, Dialect::Anthropic] {
        let values = confidence(dialect)["enum"].as_array().unwrap().clone();
        assert_eq!(values.len(), 21);
        assert_eq!((&values[0], &values[3], &values[20]), (&json!(0.0), &json!(0.15), &json!(1.0)));
    }
}

#[test]
fn details_of_any_form_are_not_sent() {
    let sent = |details: Value| {
        let error = json!({ "type": "object", "properties": { "details": details } });
        let data = json!({ "type": "object", "properties": { "rationale": { "type": "string" } } });
        let projection =
            contract(json!({ "data": data, "error": error }), Format::V22).project(Dialect::JsonSchema);
        let error = &choice(projection.schema.as_ref().unwrap())[1]["properties"]["error"]["properties"];
        let is_reported =
            lost(&projection).contains(&"/error/properties/details  enforced_locally".to_owned());
        (error.get("details").is_some(), is_reported)
    };
    assert_eq!(sent(json!({ "type": "object", "description": "The lines." })), (false, true));
    assert_eq!(sent(json!(true)), (false, true));
    let line = json!({ "type": "object", "properties": { "line": { "type": "integer" } } });
    assert_eq!(sent(line), (true, false));
}

#[test]
fn error_codes_are_listed_unless_the_module_lists_them() {
    let code = |error: Value| {
        let mut manifest = Manifest::with_defaults("test", Format::V22, Some(Tier::Decision));
        manifest.error_codes = vec![("E5001".to_owned(), "A cycle".to_owned())];
        let document = json!({ "data": { "type": "object" }, "error": error });
        let contract = Contract::compile(&document, &Rules::from(&manifest)).unwrap();
        let schema = contract.project(Dialect::JsonSchema).schema.unwrap();
        schema["anyOf"][1]["properties"]["error"]["properties"]["code"].clone()
    };
    let codes = ["E1001", "E1004", "E1006", "E2004", "E2005", "E2006", "E2007", "E5001"];
    assert_eq!(code(json!({}))["enum"], json!(codes));
    let runtime = json!({ "type": "string", "pattern": "^E[1-4]" });
    let accepted = json!(codes.split_last().unwrap().1);
    assert_eq!(code(json!({ "type": "object", "properties": { "code": runtime } }))["enum"], accepted);
    let own = json!({ "type": "string", "enum": ["E5001"] });
    assert_eq!(code(json!({ "type": "object", "properties": { "code": own } })), own);
}

#[test]
fn root_is_the_output_before_v22() {
    let document = json!({ "output": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] } });
    let projection = contract(document, Format::V1).project(Dialect::OpenAiStrict);
    let expected = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "required": ["a"],
        "additionalProperties": false,
    });
    assert_eq!((projection.schema, projection.lost), (Some(expected), vec![]));
}

#[test]
fn openai_strict_requires_all_members_and_closes_objects() {
    let properties = json!({
        "note": { "type": "string", "minLength": 3, "format": "uri", "default": "x" },
        "kind": { "enum": ["a", "b"] },
        "size": { "type": "integer", "minimum": 1 },
        "list": { "type": "array", "items": { "properties": { "a": { "type": "boolean" } } }, "uniqueItems": true },
    });
    let projection = with(properties).project(Dialect::OpenAiStrict);
    let data = data_of(&projection);
    let note = "At least 3 characters. In the format `uri` of JSON Schema.";
    assert_eq!(data["properties"]["note"], json!({ "type": ["string", "null"], "description": note }));
    assert_eq!(data["properties"]["size"], json!({ "type": ["integer", "null"], "minimum": 1 }));
    assert_eq!(data["properties"]["kind"]["anyOf"][0], json!({ "type": "string", "enum": ["a", "b"] }));
    assert_eq!(data["required"], json!(["note", "kind", "size", "list", "rationale", "extensions"]));
    let item = &data["properties"]["list"]["anyOf"][0]["items"];
    assert_eq!((&item["additionalProperties"], &item["required"]), (&json!(false), &json!(["a"])));
    for loss in [
        "/data/properties/note minLength enforced_locally",
        "/data/properties/note format enforced_locally",
        "/data/properties/note required projected",
        "/data/properties/list uniqueItems enforced_locally",
    ] {
        assert!(lost(&projection).contains(&loss.to_owned()), "{loss} in {:?}", lost(&projection));
    }
}

#[test]
fn insights_are_included_if_overflow_is_enabled() {
    let on = with(json!({})).project(Dialect::Anthropic);
    let insights = &data_of(&on)["properties"]["extensions"]["properties"]["insights"];
    assert_eq!(insights["items"]["required"], json!(["text", "suggested_mapping"]));
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Exec)));
    let off = Contract::compile(&json!({ "data": {} }), &rules).unwrap().project(Dialect::Anthropic);
    let names: Vec<&String> = data_of(&off)["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["rationale"]);
}

#[test]
fn references_point_to_definitions() {
    let document = json!({
        "data": { "properties": { "a": { "$ref": "#/$defs/x%20y" }, "b": { "$ref": "#/data/properties/a" } } },
        "$defs": { "x y": { "properties": { "inner": { "$ref": "#/$defs/x%20y" } } } },
    });
    let contract = contract(document, Format::V22);
    let projection = contract.project(Dialect::OpenAiStrict);
    let schema = projection.schema.as_ref().unwrap();
    assert_eq!(data_of(&projection)["properties"]["a"]["anyOf"][0], json!({ "$ref": "#/$defs/x_y" }));
    assert_eq!(schema["$defs"]["data_properties_a"], json!({ "$ref": "#/$defs/x_y" }));
    assert_eq!(schema["$defs"]["x_y"]["required"], json!(["inner"]));
    let verbatim = contract.project(Dialect::JsonSchema).schema.unwrap();
    assert_eq!(verbatim["$defs"]["x_y"]["properties"]["inner"], json!({ "$ref": "#/$defs/x_y" }));
}

#[test]
fn schema_that_is_sent_as_written_has_the_form_that_servers_accept() {
    let document = json!({
        "pair": { "type": "array", "items": [{ "$ref": "#/$defs/name" }, { "items": [{}] }], "additionalItems": false },
        "open": { "items": [{ "type": "string" }], "enum": [{ "items": [1], "propertyNames": 2 }] },
        "map": { "type": "object", "propertyNames": { "pattern": "^a" }, "properties": { "items": { "items": {} } } },
    });
    let mut document = json!({ "data": { "properties": document } });
    document["$defs"] = json!({ "name": { "type": "string" } });
    let projection = contract(document, Format::V22).project(Dialect::JsonSchema);
    let fields = &data_of(&projection)["properties"];
    let pair = json!({
        "type": "array", "items": false,
        "prefixItems": [{ "$ref": "#/$defs/name" }, { "prefixItems": [{}], "items": {} }],
    });
    assert_eq!(fields["pair"], pair);
    let open = json!({
        "prefixItems": [{ "type": "string" }], "items": {}, "enum": [{ "items": [1], "propertyNames": 2 }],
    });
    assert_eq!(fields["open"], open);
    assert_eq!(fields["map"], json!({ "type": "object", "properties": { "items": { "items": {} } } }));
    assert!(lost(&projection).contains(&"/data/properties/map propertyNames enforced_locally".to_owned()));
}

#[test]
fn unsupported_contract_uses_the_next_weaker_dialect() {
    let recursive = json!({ "tree": { "type": "object", "properties": { "next": { "$ref": "#/data/properties/tree" } } } });
    let recursive = with(recursive);
    assert_eq!(recursive.project(Dialect::OpenAiStrict).dialect, Dialect::OpenAiStrict);
    let anthropic = recursive.project(Dialect::Anthropic);
    assert_eq!((anthropic.dialect, &anthropic.schema), (Dialect::Prompt, &None));
    assert_eq!(anthropic.lost[0].reason, "anthropic: the schema contains itself");
    let map = json!({ "data": { "properties": { "m": { "additionalProperties": { "type": "integer" } } }, "required": ["m"] } });
    let openai = contract(map, Format::V22).project(Dialect::OpenAiStrict);
    assert_eq!(openai.dialect, Dialect::JsonSchema);
    assert_eq!(openai.lost[0].reason, "openai_strict: an object with members of any name");
}

#[test]
fn optional_map_is_omitted() {
    let projection = with(json!({ "free": { "type": "object" } })).project(Dialect::OpenAiStrict);
    assert_eq!(projection.dialect, Dialect::OpenAiStrict);
    assert!(data_of(&projection)["properties"].get("free").is_none());
    assert!(lost(&projection).contains(&"/data/properties/free  enforced_locally".to_owned()));
}

#[test]
fn keywords_next_to_alternatives_are_merged_into_each() {
    let shape = json!({
        "type": "object",
        "required": ["kind"],
        "oneOf": [
            { "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } }, "required": ["radius"] },
            { "properties": { "kind": { "const": "point" } } },
        ],
    });
    let projection = with(json!({ "shape": shape })).project(Dialect::Gemini);
    let branches = data_of(&projection)["properties"]["shape"]["anyOf"].as_array().unwrap();
    assert_eq!(branches[0]["required"], json!(["radius", "kind"]));
    assert_eq!(branches[1]["properties"]["kind"], json!({ "type": "string", "enum": ["point"] }));
    assert!(lost(&projection).contains(&"/data/properties/shape oneOf projected".to_owned()));
}

#[test]
fn all_of_is_merged() {
    let document = json!({
        "data": { "allOf": [{ "$ref": "#/$defs/base" }, { "properties": { "b": { "type": "integer" } }, "required": ["b"] }] },
        "$defs": { "base": { "properties": { "a": { "type": "string" } }, "required": ["a"] } },
    });
    let projection = contract(document, Format::V22).project(Dialect::Anthropic);
    assert_eq!(data_of(&projection)["required"], json!(["a", "b", "rationale"]));
    assert_eq!(data_of(&projection)["properties"]["b"], json!({ "type": "integer" }));
}

#[test]
fn dialects_without_a_schema_have_one_loss() {
    for dialect in [Dialect::JsonObject, Dialect::Prompt] {
        let projection = with(json!({})).project(dialect);
        assert_eq!((projection.dialect, projection.schema, projection.lost.len()), (dialect, None, 1));
    }
}

#[test]
fn only_nulls_of_absent_members_are_added() {
    let contract = contract(
        json!({ "data": {
            "required": ["due"],
            "properties": {
                "due": { "type": "string" },
                "nullable": { "type": ["string", "null"] },
                "optional": { "type": "string" },
                "list": { "items": { "properties": { "x": { "type": "integer" } } } },
            },
        } }),
        Format::V22,
    );
    let answer = Tree::parse(
        r#"{"due": null, "nullable": null, "optional": null, "unknown": null, "list": [{"x": null}], "extensions": null}"#,
    );
    let paths: Vec<String> =
        contract.added_nulls("data", answer.unwrap().node()).iter().map(Path::to_string).collect();
    assert_eq!(paths, ["data.optional", "data.list[0].x", "data.extensions"]);
}

#[test]
fn patterns_have_plain_classes_in_every_dialect() {
    let contract = with(json!({ "a": { "type": "string", "pattern": r"^\d+$" } }));
    for dialect in [Dialect::OpenAiStrict, Dialect::JsonSchema, Dialect::Anthropic, Dialect::LlamaCpp] {
        let projection = contract.project(dialect);
        assert_eq!(data_of(&projection)["properties"]["a"]["pattern"], "^[0-9]+$", "{dialect}");
        assert!(lost(&projection).contains(&"/data/properties/a pattern projected".to_owned()), "{dialect}");
    }
    let described = contract.project(Dialect::Gemini);
    let text = r"Matches the regular expression `^\d+$`.";
    assert_eq!(data_of(&described)["properties"]["a"]["description"], text);
    assert_eq!(contract.document().pointer("/data/properties/a/pattern"), Some(&json!(r"^\d+$")));
}

#[test]
fn prompt_schemas_contain_their_definitions() {
    let document = json!({
        "data": { "properties": { "list": { "items": { "$ref": "#/$defs/Item" } } } },
        "meta": { "properties": { "source": { "$ref": "#/$defs/Item" } } },
        "$defs": { "Item": { "properties": { "next": { "$ref": "#/$defs/Item" } } } },
    });
    let schemas = contract(document, Format::V22).prompt_schemas(Form::ENVELOPE);
    let names: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["data", "meta"]);
    for (name, schema) in &schemas {
        assert_eq!(schema["$defs"]["Item"]["properties"]["next"]["$ref"], "#/$defs/Item", "{name}");
    }
    let bare = contract(json!({ "output": { "type": "object", "required": ["a"] } }), Format::V1);
    assert_eq!(bare.prompt_schemas(Form::ENVELOPE), [("", json!({ "type": "object", "required": ["a"] }))]);
}

#[test]
fn positions_and_patterns_of_names_are_described() {
    let contract = with(json!({
        "pair": { "type": "array", "items": [{ "type": "number" }, { "type": "string" }] },
        "map": { "type": "object", "patternProperties": { "^x": { "type": "number" } } },
    }));
    let anthropic = contract.project(Dialect::Anthropic);
    let pair = r#"Also matches this JSON Schema: {"items": [{"type":"number"},{"type":"string"}]}."#;
    assert_eq!(data_of(&anthropic)["properties"]["pair"]["description"], pair);
    let map = r#"Also matches this JSON Schema: {"patternProperties": {"^x":{"type":"number"}}}."#;
    let gemini = contract.project(Dialect::Gemini);
    assert_eq!(data_of(&gemini)["properties"]["map"]["description"], map);
}

#[test]
fn keyword_that_nothing_enforces_is_not_a_loss() {
    let field =
        json!({ "type": "string", "maxlenght": 3, "nullable": true, "format": "dates", "maxLength": 3 });
    for dialect in WITH_SCHEMA {
        let contract = with(json!({ "a": field }));
        let found = lost(&contract.project(dialect));
        let unknown = ["maxlenght", "nullable", "format"];
        assert!(!found.iter().any(|line| unknown.iter().any(|keyword| line.contains(keyword))), "{found:?}");
        let portable = contract.portability(dialect, None).constraints;
        let keywords: Vec<&str> =
            portable.iter().filter(|one| one.path == "data.a").map(|one| one.keyword.as_str()).collect();
        assert_eq!(keywords, ["type", "maxLength"]);
    }
}

#[test]
fn required_member_that_is_not_defined_is_sent() {
    let document = json!({ "data": {
        "type": "object",
        "required": ["rationale", "basis"],
        "properties": { "rationale": { "type": "string" } }
    } });
    let contract = contract(document, Format::V22);
    for dialect in WITH_SCHEMA {
        let projection = contract.project(dialect);
        assert_eq!(projection.dialect, dialect, "{:?}", lost(&projection));
        let data = data_of(&projection);
        // Where the schema is sent as it is, a name under `required` is enough.
        let is_defined = dialect == Dialect::JsonSchema || data["properties"].get("basis").is_some();
        assert!(is_defined, "{dialect:?} {data}");
        assert!(data["required"].as_array().unwrap().contains(&json!("basis")), "{dialect:?} {data}");
    }
    let lost = lost(&contract.project(Dialect::OpenAiStrict));
    assert!(lost.iter().any(|line| line == "/data/properties/basis required projected"), "{lost:?}");
}

#[test]
fn large_enum_with_long_values_is_not_sent_as_strict() {
    let dialect = |count: usize, length: usize| {
        let values: Vec<String> = (0..count).map(|index| format!("{index:0length$}")).collect();
        with(json!({ "code": { "type": "string", "enum": values } })).project(Dialect::OpenAiStrict)
    };
    assert_eq!(dialect(250, 100).dialect, Dialect::OpenAiStrict);
    assert_eq!(dialect(300, 50).dialect, Dialect::OpenAiStrict);
    let refused = dialect(300, 51);
    assert_eq!(refused.dialect, Dialect::JsonSchema);
    let reason = "openai_strict: 15300 characters in an enum of over 250 values; the maximum is 15000";
    assert_eq!(refused.lost[0].reason, reason);
}
