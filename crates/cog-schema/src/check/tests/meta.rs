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

fn told_of(document: Value, rules: &Rules, meta: Value) -> Vec<String> {
    reported(&contract(document, rules).check_meta(Tree::from(meta).node()))
}

#[test]
fn the_specification_s_rules_hold_with_and_without_a_schema() {
    for document in [schema(), json!({})] {
        let reported = |meta| {
            let mut reported = told_of(document.clone(), &rules(Tier::Decision), meta);
            reported.sort();
            reported
        };
        assert_eq!(reported(json!({ "confidence": 1, "risk": "none", "explain": "é".repeat(280) })), [""; 0]);
        assert_eq!(
            reported(json!({ "confidence": 1.01, "risk": "hgih", "explain": "é".repeat(281) })),
            ["meta.confidence maximum E3001", "meta.explain maxLength E3001", "meta.risk enum E3005"]
        );
        assert_eq!(
            reported(json!({})),
            ["meta.confidence required E3001", "meta.explain required E3001", "meta.risk required E3001"]
        );
        assert_eq!(reported(json!(1)), ["meta type E3001"]);
    }
}

#[test]
fn the_runtime_s_keys_are_not_the_schema_s_business() {
    let mut meta = json!({ "confidence": 0.5, "risk": "low", "explain": "e" });
    for key in cog_spec::RUNTIME_KEYS {
        meta[*key] = json!([]);
    }
    assert_eq!(told_of(schema(), &rules(Tier::Decision), meta.clone()), [""; 0]);
    meta["own"] = json!(1);
    assert_eq!(told_of(schema(), &rules(Tier::Decision), meta), ["meta.own additionalProperties E3001"]);
}

#[test]
fn risk_may_be_an_object_where_enums_are_extensible_except_in_tier_exec() {
    let meta = json!({ "confidence": 0.95, "risk": { "custom": "legal", "reason": "r" }, "explain": "e" });
    assert_eq!(told_of(schema(), &rules(Tier::Decision), meta.clone()), [""; 0]);
    assert_eq!(told_of(schema(), &rules(Tier::Exec), meta.clone()), ["meta.risk extensible_enum E3005"]);
    let mut strict = rules(Tier::Decision);
    strict.enums.strategy = EnumStrategy::Strict;
    assert_eq!(told_of(json!({}), &strict, meta), ["meta.risk extensible_enum E3005"]);
}
