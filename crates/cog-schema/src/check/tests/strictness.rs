use super::*;

fn with(strictness: Strictness, properties: Value, data: Value) -> DataCheck {
    let rules = Rules { strictness, ..rules(Tier::Decision) };
    check(&data_contract(properties, &rules), data)
}

fn nested() -> (Value, Value) {
    let properties = json!({ "list": { "type": "array", "items": { "properties": { "a": {} } } } });
    (properties, json!({ "rationale": "r", "more": 1, "list": [{ "a": 1 }, { "b": 2 }] }))
}

#[test]
fn high_rejects_undefined_fields() {
    let (properties, data) = nested();
    let check = with(Strictness::High, properties, data);
    assert_eq!(
        lines(&check.violations),
        ["data.more additionalProperties E3001", "data.list[1].b additionalProperties E3001"]
    );
}

#[test]
fn medium_lists_undefined_fields_and_low_ignores_them() {
    let (properties, data) = nested();
    let medium = with(Strictness::Medium, properties.clone(), data.clone());
    assert_eq!(
        (medium.violations, medium.unknown),
        (vec![], vec!["data.more".into(), "data.list[1].b".into()])
    );
    assert_eq!(with(Strictness::Low, properties, data), DataCheck::default());
}

#[test]
fn schema_is_enforced_at_every_strictness() {
    let rules = Rules { strictness: Strictness::Low, ..rules(Tier::Exploration) };
    let schema = json!({ "data": { "properties": { "rationale": {} }, "additionalProperties": false } });
    let check = check(&contract(schema, &rules), json!({ "rationale": "r", "more": 1 }));
    assert_eq!(lines(&check.violations), ["data.more additionalProperties E3001"]);
}

#[test]
fn patterns_references_and_branches_define_fields() {
    let document = json!({
        "data": {
            "allOf": [{ "$ref": "#/definitions/base" }, { "oneOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} }, "required": ["b"] }] }],
        },
        "definitions": { "base": { "properties": { "rationale": {} }, "patternProperties": { "^x-": {} } } },
    });
    let contract = contract(document, &rules(Tier::Decision));
    let check = check(&contract, json!({ "rationale": "r", "x-1": 1, "b": 1, "c": 1 }));
    assert_eq!((lines(&check.violations).len(), check.unknown), (1, vec!["data.c".to_owned()]));
}

#[test]
fn object_without_defined_fields_is_open() {
    let properties =
        json!({ "free": { "type": "object" }, "map": { "additionalProperties": { "type": "integer" } } });
    let data = json!({ "rationale": "r", "free": { "a": 1 }, "map": { "b": 2 } });
    assert_eq!(with(Strictness::High, properties, data), DataCheck::default());
}

#[test]
fn fields_of_meta_are_known_in_the_data_of_older_formats_only() {
    let data =
        json!({ "rationale": "r", "a": 1, "confidence": 1, "risk": "low", "explain": "e", "other": 1 });
    let unknown = |format| {
        let manifest = Manifest::with_defaults("test", format, Some(Tier::Decision));
        let rules = Rules { strictness: Strictness::Medium, ..Rules::from(&manifest) };
        check(&data_contract(json!({ "a": {} }), &rules), data.clone()).unknown
    };
    assert_eq!(unknown(Format::V21), ["data.other"]);
    assert_eq!(unknown(Format::V22), ["data.confidence", "data.risk", "data.explain", "data.other"]);
}

#[test]
fn data_without_a_schema_is_an_object_since_v22() {
    let v1 = Rules::from(&Manifest::with_defaults("old", Format::V1, None));
    for (document, rules, expected) in [
        (json!({}), &rules(Tier::Decision), vec!["data type E3001"]),
        (json!({}), &v1, vec![]),
        (json!({ "data": { "type": "array" } }), &rules(Tier::Decision), vec![]),
        (json!({ "data": { "type": "string" } }), &rules(Tier::Decision), vec!["data type E3001"]),
        (json!({ "data": { "required": ["a"] } }), &rules(Tier::Decision), vec![]),
        (json!({ "data": { "maxItems": 0 } }), &rules(Tier::Decision), vec!["data maxItems E3001"]),
    ] {
        assert_eq!(
            lines(&check(&contract(document.clone(), rules), json!([1])).violations),
            expected,
            "{document}"
        );
    }
}
