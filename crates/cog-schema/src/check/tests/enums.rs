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
fn a_word_of_the_model_s_own_is_counted() {
    let check = with(EnumStrategy::Extensible, json!({ "custom": "naming", "reason": "none fits" }));
    assert_eq!(check.violations, []);
    assert_eq!((check.custom[0].path.as_str(), check.custom[0].word.as_str()), ("data.kind", "naming"));
}

#[test]
fn strict_refuses_the_object_even_there() {
    let check = with(EnumStrategy::Strict, json!({ "custom": "naming", "reason": "none fits" }));
    assert_eq!(reported(&check.violations), ["data.kind extensible_enum E3005"]);
}

#[test]
fn a_bare_unknown_word_is_never_wrapped() {
    for strategy in [EnumStrategy::Strict, EnumStrategy::Extensible] {
        let check = with(strategy, json!("styel"));
        assert_eq!(reported(&check.violations), ["data.kind enum E3005"]);
        assert_eq!(check.violations[0].suggestion.as_deref(), Some("Did you mean `style`?"));
    }
}

#[test]
fn the_word_has_at_most_32_characters_and_a_reason() {
    let of =
        |word: String| with(EnumStrategy::Extensible, json!({ "custom": word, "reason": "r" })).violations;
    assert_eq!(of("é".repeat(32)), []);
    assert_eq!(reported(&of("é".repeat(33))), ["data.kind.custom maxLength E3001"]);
    let check = with(EnumStrategy::Extensible, json!({ "custom": "naming" }));
    assert_eq!(reported(&check.violations), ["data.kind.reason required E3001"]);
}

#[test]
fn another_type_is_told_as_such() {
    let check = with(EnumStrategy::Extensible, json!(7));
    assert_eq!(reported(&check.violations), ["data.kind type E3001"]);
    assert_eq!(check.violations[0].message, "found 7; allowed: a string or an object");
}

#[test]
fn the_manifest_may_rename_the_tag() {
    let mut rules = rules(Tier::Decision);
    rules.enums.unknown_tag = "other".to_owned();
    let contract = data_contract(extensible("other"), &rules);
    let check = check(&contract, json!({ "rationale": "r", "kind": { "other": "naming", "reason": "r" } }));
    assert_eq!((check.violations.len(), check.custom.len()), (0, 1));
}

#[test]
fn a_plain_enum_is_closed() {
    let properties = json!({ "kind": { "enum": ["bug"] } });
    let contract = data_contract(properties, &rules(Tier::Decision));
    let check = check(&contract, json!({ "rationale": "r", "kind": { "custom": "x", "reason": "y" } }));
    assert_eq!(reported(&check.violations), ["data.kind enum E3005"]);
}
