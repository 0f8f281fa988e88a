use super::*;

fn insight(mapping: bool) -> Value {
    if mapping { json!({ "text": "t", "suggested_mapping": "data.x" }) } else { json!({ "text": "t" }) }
}

fn data(insights: Value) -> Value {
    json!({ "rationale": "r", "extensions": { "insights": insights } })
}

#[test]
fn insights_are_allowed_in_a_closed_schema() {
    let closed = json!({ "data": { "type": "object", "properties": { "rationale": {} }, "additionalProperties": false } });
    for strictness in [Strictness::High, Strictness::Medium, Strictness::Low] {
        let contract = contract(closed.clone(), &Rules { strictness, ..rules(Tier::Decision) });
        assert_eq!(check(&contract, data(json!([insight(true)]))), DataCheck::default());
        let check =
            check(&contract, json!({ "rationale": "r", "extensions": { "insights": [], "other": 1 } }));
        assert!(lines(&check.violations).contains(&"data.extensions additionalProperties E3001".to_owned()));
    }
}

#[test]
fn insights_are_rejected_if_overflow_is_disabled() {
    for document in
        [json!({}), json!({ "data": { "properties": { "rationale": {} }, "additionalProperties": false } })]
    {
        let contract = contract(document, &rules(Tier::Exec));
        let check = check(&contract, data(json!([insight(true)])));
        assert_eq!(lines(&check.violations), ["data.extensions.insights overflow E3004"]);
    }
}

#[test]
fn mapping_is_required_unless_the_manifest_disables_it() {
    let contract = data_contract(json!({}), &rules(Tier::Decision));
    let violations = check(&contract, data(json!([insight(false), 3]))).violations;
    assert_eq!(
        lines(&violations),
        [
            "data.extensions.insights[0].suggested_mapping required E3001",
            "data.extensions.insights[1] type E3001"
        ]
    );
    let mut rules = rules(Tier::Decision);
    rules.overflow.require_suggested_mapping = false;
    let lenient = data_contract(json!({}), &rules);
    assert_eq!(check(&lenient, data(json!([insight(false)]))).violations, []);
}

#[test]
fn excess_insights_are_a_violation_in_tier_exec_only() {
    let many = data(Value::Array(vec![insight(true); 6]));
    let decision = check(&data_contract(json!({}), &rules(Tier::Decision)), many.clone());
    let excess = decision.excess_insights.unwrap();
    assert_eq!((decision.violations, excess.found, excess.max), (vec![], 6, 5));
    let mut exec = rules(Tier::Exec);
    (exec.overflow.enabled, exec.overflow.max_items) = (true, 2);
    let exec = check(&data_contract(json!({}), &exec), many);
    assert_eq!(lines(&exec.violations), ["data.extensions.insights overflow E3004"]);
}

#[test]
fn schema_checks_the_other_extensions_without_the_insights() {
    let rules = rules(Tier::Decision);
    let other = json!({ "extensions": {
        "properties": { "other": { "type": "string" } },
        "required": ["other"],
        "additionalProperties": false,
    } });
    let contract = data_contract(other, &rules);
    let with = |other: Value| {
        let extensions = json!({ "insights": [insight(true)], "other": other });
        lines(&check(&contract, json!({ "rationale": "r", "extensions": extensions })).violations)
    };
    assert_eq!(with(json!("x")), [""; 0]);
    assert_eq!(with(json!(1)), ["data.extensions.other type E3001"]);
}

#[test]
fn only_insights_are_allowed_beside_the_schema() {
    let extra = json!({ "insights": [insight(true)], "other": 1 });
    let inner = |key: &str| json!({ key: { "properties": { "a": {} } } });
    let items = json!({ "items": { "properties": { "text": {}, "suggested_mapping": {} } } });
    let more = json!({ "text": "t", "suggested_mapping": "m", "more": 1 });
    for (properties, data, expected) in [
        (json!({}), json!({ "extensions": extra }), vec!["data.extensions.other"]),
        (inner("extensions"), json!({ "extensions": extra }), vec!["data.extensions.other"]),
        (inner("other"), json!({ "other": { "insights": [] } }), vec!["data.other.insights"]),
        (
            json!({ "extensions": { "properties": { "insights": items } } }),
            json!({ "extensions": { "insights": [more] } }),
            vec!["data.extensions.insights[0].more"],
        ),
    ] {
        let rules = Rules { strictness: Strictness::High, ..rules(Tier::Decision) };
        let mut data = data;
        data["rationale"] = json!("r");
        let violations = check(&data_contract(properties, &rules), data).violations;
        assert!(violations.iter().all(|one| one.rule == "additionalProperties"), "{violations:?}");
        assert_eq!(violations.into_iter().map(|one| one.path).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn empty_list_of_insights_is_an_unknown_field_if_overflow_is_disabled() {
    let rules = Rules { strictness: Strictness::High, ..rules(Tier::Exec) };
    let contract = data_contract(json!({ "extensions": { "properties": { "a": {} } } }), &rules);
    let violations = |insights: Value| lines(&check(&contract, data(insights)).violations);
    assert_eq!(violations(json!([])), ["data.extensions.insights additionalProperties E3001"]);
    assert_eq!(violations(json!([1])), ["data.extensions.insights overflow E3004"]);
}
