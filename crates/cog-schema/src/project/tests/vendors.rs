use super::*;

fn field(projection: &Projection) -> &Value {
    &data_of(projection)["properties"]["a"]
}

fn tuple(keywords: Value) -> Contract {
    let mut schema = json!({ "type": "array", "items": [{ "type": "integer" }, { "type": "boolean" }] });
    schema.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
    with(json!({ "a": schema }))
}

#[test]
fn gemini_gets_tuples_as_prefix_items() {
    let positions = json!([{ "type": "integer" }, { "type": "boolean" }]);
    let open = tuple(json!({})).project(Dialect::Gemini);
    assert_eq!(field(&open), &json!({ "type": "array", "prefixItems": positions }));
    assert!(!lost(&open).iter().any(|line| line.contains("items")), "{:?}", lost(&open));
    let closed = tuple(json!({ "additionalItems": false, "minItems": 2 })).project(Dialect::Gemini);
    let expected = json!({ "type": "array", "minItems": 2, "prefixItems": positions, "maxItems": 2 });
    assert_eq!(field(&closed), &expected);
    let more = tuple(json!({ "additionalItems": { "type": "null" } })).project(Dialect::Gemini);
    assert_eq!(field(&more)["items"], json!({ "type": "null" }));
}

#[test]
fn llamacpp_gets_tuples_of_one_length() {
    let positions = json!([{ "type": "integer" }, { "type": "boolean" }]);
    let is_lost =
        |projection: &Projection| lost(projection).contains(&"/data/properties/a items projected".to_owned());
    let exact = tuple(json!({ "minItems": 2, "maxItems": 2 })).project(Dialect::LlamaCpp);
    assert_eq!((&field(&exact)["items"], is_lost(&exact)), (&positions, false));
    let open = tuple(json!({})).project(Dialect::LlamaCpp);
    assert_eq!((&field(&open)["items"], is_lost(&open)), (&positions, true));
    for half_open in [json!({ "minItems": 2 }), json!({ "maxItems": 2 })] {
        let half_open = tuple(half_open).project(Dialect::LlamaCpp);
        assert_eq!((&field(&half_open)["items"], is_lost(&half_open)), (&positions, true));
    }
    let longer = tuple(json!({ "minItems": 3 })).project(Dialect::LlamaCpp);
    assert_eq!((&field(&longer)["items"]["anyOf"], is_lost(&longer)), (&positions, true));
}

#[test]
fn anthropic_gets_simple_patterns() {
    let sent = |pattern: &str| {
        let contract = with(json!({ "a": { "type": "string", "pattern": pattern } }));
        field(&contract.project(Dialect::Anthropic)).get("pattern").cloned()
    };
    assert_eq!(sent("^[A-Z]{3}-[0-9]{4}$"), Some(json!("^[A-Z]{3}-[0-9]{4}$")));
    assert_eq!(sent(r"^(?:a|b)\d{2,}$"), Some(json!("^(a|b)[0-9]{2,}$")));
    assert_eq!(sent("^[a-z]{1,500}$"), None);
    assert_eq!(sent(r"\bword\b"), None);
}

#[test]
fn tuple_of_equal_items_is_a_list_of_them() {
    let number = json!({ "type": "integer" });
    let contract = with(json!({ "a": { "type": "array", "items": [number, number] } }));
    assert_eq!(field(&contract.project(Dialect::Anthropic))["items"], number);
}

/// Returns this number of strings.
fn texts(count: usize) -> Value {
    let member = |index| (format!("p{index}"), json!({ "type": "string" }));
    Value::Object((0..count).map(member).collect())
}

#[test]
fn anthropic_gets_optional_members_over_the_limit_as_nullable() {
    let projection = with(texts(38)).project(Dialect::Anthropic);
    assert_eq!(projection.dialect, Dialect::Anthropic, "{:?}", lost(&projection));
    let data = data_of(&projection);
    let nullable = json!({ "type": ["string", "null"] });
    let properties = data["properties"].as_object().unwrap();
    // `rationale` is required, and `extensions` is optional too.
    assert_eq!(properties.values().filter(|schema| **schema == nullable).count(), 15);
    assert_eq!(data["required"].as_array().unwrap().len(), 16);
    assert!(lost(&projection).contains(&" required projected".to_owned()), "{:?}", lost(&projection));
    let over = with(texts(39)).project(Dialect::Anthropic);
    assert_eq!(over.dialect, Dialect::Prompt);
    assert_eq!(over.lost[0].reason, "anthropic: 25 optional members; the maximum is 24");
}

#[test]
fn anthropic_gets_only_the_excess_as_nullable() {
    let projection = with(texts(30)).project(Dialect::Anthropic);
    assert_eq!(data_of(&projection)["required"].as_array().unwrap().len(), 1 + 7);
    let within = with(texts(23)).project(Dialect::Anthropic);
    assert_eq!(data_of(&within)["required"], json!(["rationale"]));
    let object = json!({ "type": "object", "properties": texts(37) });
    let in_list = with(json!({ "list": { "type": "array", "items": object } }));
    let definition = json!({
        "data": { "type": "object", "properties": { "item": { "$ref": "#/$defs/Item" } } },
        "$defs": { "Item": object },
    });
    for contract in [in_list, contract(definition, Format::V22)] {
        let projection = contract.project(Dialect::Anthropic);
        assert_eq!(projection.dialect, Dialect::Anthropic, "{:?}", projection.lost);
    }
}

#[test]
fn anthropic_gets_no_recursion_through_a_choice() {
    let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } });
    let document = json!({
        "data": { "type": "object", "properties": { "node": { "$ref": "#/$defs/Node" } } },
        "$defs": { "Node": { "anyOf": [{ "type": "string" }, node] } },
    });
    let refused = contract(document, Format::V22).project(Dialect::Anthropic);
    assert_eq!(refused.lost[0].reason, "anthropic: the schema contains itself");
}

#[test]
fn gemini_gets_recursion_in_optional_members() {
    let tree = |required: Value| {
        contract(
            json!({
                "data": { "type": "object", "properties": { "tree": { "$ref": "#/$defs/Tree" } }, "required": ["tree"] },
                "$defs": { "Tree": {
                    "type": "object",
                    "required": required,
                    "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/Tree" } },
                } },
            }),
            Format::V22,
        )
        .project(Dialect::Gemini)
    };
    let optional = tree(json!(["name"]));
    assert_eq!(optional.dialect, Dialect::Gemini);
    let loss = " $ref projected".to_owned();
    assert!(lost(&optional).contains(&loss));
    assert!(!lost(&with(json!({})).project(Dialect::Gemini)).contains(&loss));
    let required = tree(json!(["next"]));
    assert_eq!(required.dialect, Dialect::JsonObject);
    assert_eq!(required.lost[0].reason, "gemini: the schema contains itself in a required member");
}
