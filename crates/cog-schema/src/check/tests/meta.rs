use super::*;

fn schema() -> Value {
    json!({ "meta": {
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": {
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
            "explain": { "type": "string", "maxLength": 280 },
        },
        "additionalProperties": false,
    } })
}

fn violations(document: Value, rules: &Rules, meta: Value) -> Vec<String> {
    lines(&contract(document, rules).check_meta(Tree::from(meta).node()))
}

#[test]
fn rules_of_the_specification_apply_with_and_without_a_schema() {
    for document in [schema(), json!({})] {
        let sorted = |meta| {
            let mut sorted = violations(document.clone(), &rules(Tier::Decision), meta);
            sorted.sort();
            sorted
        };
        assert_eq!(sorted(json!({ "confidence": 1, "risk": "none", "explain": "é".repeat(280) })), [""; 0]);
        assert_eq!(
            sorted(json!({ "confidence": 1.01, "risk": "hgih", "explain": "é".repeat(281) })),
            ["meta.confidence maximum E3001", "meta.explain maxLength E3001", "meta.risk enum E3005"]
        );
        assert_eq!(
            sorted(json!({})),
            ["meta.confidence required E3001", "meta.explain required E3001", "meta.risk required E3001"]
        );
        assert_eq!(sorted(json!(1)), ["meta type E3001"]);
    }
}

#[test]
fn keys_of_the_runtime_are_not_checked() {
    let mut meta = json!({ "confidence": 0.5, "risk": "low", "explain": "e" });
    for key in cog_spec::RUNTIME_KEYS {
        meta[*key] = json!([]);
    }
    assert_eq!(violations(schema(), &rules(Tier::Decision), meta.clone()), [""; 0]);
    meta["own"] = json!(1);
    assert_eq!(violations(schema(), &rules(Tier::Decision), meta), ["meta.own additionalProperties E3001"]);
}

#[test]
fn custom_risk_needs_extensible_enums_and_not_tier_exec() {
    let meta = json!({ "confidence": 0.95, "risk": { "custom": "legal", "reason": "r" }, "explain": "e" });
    assert_eq!(violations(json!({}), &rules(Tier::Decision), meta.clone()), [""; 0]);
    assert_eq!(violations(schema(), &rules(Tier::Exec), meta.clone()), ["meta.risk extensible_enum E3005"]);
    let mut strict = rules(Tier::Decision);
    strict.enums.strategy = EnumStrategy::Strict;
    assert_eq!(violations(json!({}), &strict, meta), ["meta.risk extensible_enum E3005"]);
}

#[test]
fn schema_that_names_risk_decides_whether_it_may_be_an_object() {
    let meta = json!({ "confidence": 0.95, "risk": { "custom": "legal", "reason": "r" }, "explain": "e" });
    let words = violations(schema(), &rules(Tier::Decision), meta.clone());
    assert!(!words.is_empty());
    assert!(words.iter().all(|one| one.starts_with("meta.risk ") && one.ends_with(" E3005")), "{words:?}");
    let mut either = schema();
    let object = json!({ "type": "object", "required": ["custom", "reason"] });
    either["meta"]["properties"]["risk"] = json!({ "oneOf": [{ "enum": ["none", "low"] }, object] });
    assert_eq!(violations(either, &rules(Tier::Decision), meta), [""; 0]);
}

#[test]
fn refused_custom_risk_says_which_rule_refuses_it() {
    let meta =
        Tree::from(json!({ "confidence": 1, "risk": { "custom": "c", "reason": "r" }, "explain": "e" }));
    for (tier, strategy, expected) in [
        (
            Tier::Exec,
            EnumStrategy::Extensible,
            Some("tier exec allows only `none`, `low`, `medium` or `high`"),
        ),
        (Tier::Exec, EnumStrategy::Strict, Some("tier exec allows only `none`, `low`, `medium` or `high`")),
        (
            Tier::Decision,
            EnumStrategy::Strict,
            Some("`enums.strategy: strict` allows only the values of the enum"),
        ),
        (Tier::Decision, EnumStrategy::Extensible, None),
    ] {
        let mut rules = rules(tier);
        rules.enums.strategy = strategy;
        let found = contract(json!({}), &rules).check_meta(meta.node());
        let message = found.first().map(|one| one.message.strip_prefix("found an object; ").unwrap());
        assert_eq!(message, expected, "{tier:?} {strategy:?}");
    }
}

#[test]
fn confidence_is_from_0_to_1() {
    for (confidence, expected) in [
        (json!(0), vec![]),
        (json!(1.0), vec![]),
        (json!(-0.1), vec!["meta.confidence minimum E3001"]),
        (json!(1.1), vec!["meta.confidence maximum E3001"]),
        (json!("1"), vec!["meta.confidence type E3001"]),
    ] {
        let meta = json!({ "confidence": confidence, "risk": "low", "explain": "e" });
        assert_eq!(violations(json!({}), &rules(Tier::Decision), meta), expected, "{confidence}");
    }
}
