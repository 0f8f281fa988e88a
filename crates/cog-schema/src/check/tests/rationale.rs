use super::*;

#[test]
fn rationale_is_required_since_v22() {
    let contract = contract(json!({ "data": { "type": "object" } }), &rules(Tier::Decision));
    for data in
        [json!({}), json!({ "rationale": "" }), json!({ "rationale": "  " }), json!({ "rationale": null })]
    {
        assert_eq!(lines(&check(&contract, data).violations), ["data.rationale rationale E3003"]);
    }
    assert_eq!(lines(&check(&contract, json!({ "rationale": 3 })).violations), ["data.rationale type E3001"]);
}

#[test]
fn rationale_required_by_the_schema_has_the_same_code() {
    let contract = data_contract(json!({}), &rules(Tier::Decision));
    assert_eq!(lines(&check(&contract, json!({})).violations), ["data.rationale rationale E3003"]);
}

#[test]
fn older_formats_can_omit_it_or_use_an_object() {
    let output = json!({ "output": { "type": "object" } });
    let v1 = Rules::from(&Manifest::with_defaults("old", Format::V1, None));
    assert_eq!(check(&contract(output.clone(), &v1), json!({})), DataCheck::default());
    let strict = Rules { require_rationale: true, require_confidence: true, ..v1 };
    let contract = contract(output, &strict);
    assert_eq!(
        lines(&check(&contract, json!({})).violations),
        ["data.rationale rationale E3003", "data.confidence required E3001"]
    );
    let object = json!({ "rationale": { "decisions": ["d"] }, "confidence": 0.5 });
    assert_eq!(check(&contract, object), DataCheck::default());
}
