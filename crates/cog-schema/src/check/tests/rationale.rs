use super::*;

#[test]
fn it_is_due_from_v22_on_whatever_the_schema_says() {
    let contract = contract(json!({ "data": { "type": "object" } }), &rules(Tier::Decision));
    for data in
        [json!({}), json!({ "rationale": "" }), json!({ "rationale": "  " }), json!({ "rationale": null })]
    {
        assert_eq!(reported(&check(&contract, data).violations), ["data.rationale rationale E3003"]);
    }
    assert_eq!(
        reported(&check(&contract, json!({ "rationale": 3 })).violations),
        ["data.rationale type E3001"]
    );
}

#[test]
fn the_schema_s_own_demand_has_the_same_code() {
    let contract = data_contract(json!({}), &rules(Tier::Decision));
    assert_eq!(reported(&check(&contract, json!({})).violations), ["data.rationale rationale E3003"]);
}

#[test]
fn older_formats_decide_for_themselves_and_may_give_an_object() {
    let output = json!({ "output": { "type": "object" } });
    let v1 = Rules::from(&Manifest::with_defaults("old", Format::V1, None));
    assert_eq!(check(&contract(output.clone(), &v1), json!({})), DataCheck::default());
    let strict = Rules { require_rationale: true, require_confidence: true, ..v1 };
    let contract = contract(output, &strict);
    assert_eq!(
        reported(&check(&contract, json!({})).violations),
        ["data.rationale rationale E3003", "data.confidence required E3001"]
    );
    let object = json!({ "rationale": { "decisions": ["d"] }, "confidence": 0.5 });
    assert_eq!(check(&contract, object), DataCheck::default());
}
