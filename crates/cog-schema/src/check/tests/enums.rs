use super::*;

fn extensible(tag: &str) -> Value {
    let object = json!({
        "type": "object",
        "required": [tag, "reason"],
        "properties": { tag: { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } },
    });
    json!({ "kind": { "oneOf": [{ "type": "string", "enum": ["bug", "style"] }, object] } })
}

fn with(strategy: EnumStrategy, kind: Value) -> DataCheck {
    let mut rules = rules(Tier::Decision);
    rules.enums.strategy = strategy;
    check(&data_contract(extensible("custom"), &rules), json!({ "rationale": "r", "kind": kind }))
}

#[test]
fn custom_value_is_accepted() {
    let check = with(EnumStrategy::Extensible, json!({ "custom": "naming", "reason": "none fits" }));
    assert_eq!(check.violations, []);
}

#[test]
fn strict_strategy_rejects_custom_values() {
    let check = with(EnumStrategy::Strict, json!({ "custom": "naming", "reason": "none fits" }));
    assert_eq!(lines(&check.violations), ["data.kind extensible_enum E3005"]);
}

#[test]
fn unlisted_string_is_never_converted() {
    for strategy in [EnumStrategy::Strict, EnumStrategy::Extensible] {
        let check = with(strategy, json!("styel"));
        assert_eq!(lines(&check.violations), ["data.kind enum E3005"]);
        assert_eq!(check.violations[0].suggestion.as_deref(), Some("Did you mean `style`?"));
    }
}

#[test]
fn custom_value_has_at_most_32_characters_and_a_reason() {
    let violations =
        |value: String| with(EnumStrategy::Extensible, json!({ "custom": value, "reason": "r" })).violations;
    assert_eq!(violations("é".repeat(32)), []);
    assert_eq!(lines(&violations("é".repeat(33))), ["data.kind.custom maxLength E3001"]);
    let check = with(EnumStrategy::Extensible, json!({ "custom": "naming" }));
    assert_eq!(lines(&check.violations), ["data.kind.reason required E3001"]);
}

#[test]
fn wrong_type_is_reported() {
    let check = with(EnumStrategy::Extensible, json!(7));
    assert_eq!(lines(&check.violations), ["data.kind type E3001"]);
    assert_eq!(check.violations[0].message, "found 7; allowed: a string or an object");
}

#[test]
fn manifest_can_rename_the_tag() {
    let mut rules = rules(Tier::Decision);
    rules.enums.unknown_tag = "other".to_owned();
    let contract = data_contract(extensible("other"), &rules);
    let violations = |value: String| {
        check(&contract, json!({ "rationale": "r", "kind": { "other": value, "reason": "r" } })).violations
    };
    assert_eq!(violations("naming".to_owned()), []);
    assert_eq!(lines(&violations("é".repeat(33))), ["data.kind.other maxLength E3001"]);
}

#[test]
fn enum_without_alternative_is_closed() {
    let properties = json!({ "kind": { "enum": ["bug"] } });
    let contract = data_contract(properties, &rules(Tier::Decision));
    let check = check(&contract, json!({ "rationale": "r", "kind": { "custom": "x", "reason": "y" } }));
    assert_eq!(lines(&check.violations), ["data.kind enum E3005"]);
}

#[test]
fn custom_value_and_reason_are_strings_even_if_the_schema_does_not_say_so() {
    let kind = json!({ "kind": { "oneOf": [{ "enum": ["bug"] }, { "required": ["custom", "reason"] }] } });
    let contract = data_contract(kind, &rules(Tier::Decision));
    for (custom, reason, expected) in [
        (json!("naming"), json!("r"), vec![]),
        (json!(7), json!("r"), vec!["data.kind.custom type E3001"]),
        (json!("naming"), json!(7), vec!["data.kind.reason type E3001"]),
        (json!("é".repeat(33)), json!("r"), vec!["data.kind.custom maxLength E3001"]),
    ] {
        let data = json!({ "rationale": "r", "kind": { "custom": custom, "reason": reason } });
        assert_eq!(lines(&check(&contract, data).violations), expected, "{custom} {reason}");
    }
}
