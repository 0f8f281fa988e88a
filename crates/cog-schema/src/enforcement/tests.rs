use serde_json::json;

use super::*;

fn lost(schema: &Value) -> Vec<String> {
    let losses = Enforcement::by_engine("llamacpp").unwrap().losses(schema);
    losses.into_iter().map(|loss| format!("{} {}", loss.pointer, loss.keyword)).collect()
}

/// The probes, with the name of the feature that each measures.
fn probes() -> Vec<(String, Value)> {
    let probes: Value = serde_json::from_str(include_str!("../../probes.json")).unwrap();
    let probe = |probe: &Value| (probe["feature"].as_str().unwrap().to_owned(), probe["schema"].clone());
    probes.as_array().unwrap().iter().map(probe).collect()
}

#[test]
fn every_probe_has_the_feature_that_it_measures() {
    for (name, schema) in probes() {
        let features: Vec<String> =
            constraints(&schema, "").iter().map(|one| feature(one).to_owned()).collect();
        assert!(name == "ref" || features.contains(&name), "{name}: {features:?}");
    }
}

#[test]
fn every_probe_was_measured() {
    let names: Vec<String> = probes().into_iter().map(|(name, _)| name).collect();
    let measured: Vec<&str> = llamacpp::LLAMACPP.features.iter().map(|row| row.feature).collect();
    assert_eq!(measured, names);
}

#[test]
fn feature_depends_on_the_form_of_a_keyword() {
    for (keyword, value, expected) in [
        ("$ref", json!("https://example.com/a"), "ref"),
        ("additionalProperties", json!({}), "map"),
        ("additionalProperties", json!(false), "closed_object"),
        ("items", json!([{}]), "tuple"),
        ("items", json!({}), "items"),
        ("maxItems", json!(1_000), "max_items"),
        ("maxItems", json!(1_001), "large_max_items"),
        ("maxLength", json!(1_000), "max_length"),
        ("maxLength", json!(1_001), "large_max_length"),
        ("pattern", json!("^a$"), "pattern"),
        ("pattern", json!("^a"), "pattern_unanchored"),
        ("pattern", json!("a$"), "pattern_unanchored"),
        ("contains", json!({}), "contains"),
    ] {
        let schema = json!({ keyword: value });
        let constraint = Constraint {
            path: String::new(),
            pointer: String::new(),
            keyword,
            value: &value,
            schema: &schema,
        };
        assert_eq!(feature(&constraint), expected, "{schema}");
    }
}

#[test]
fn llamacpp_ignores_bounds_of_numbers_but_not_of_integers() {
    let bounded = |kind| json!({ "properties": { "n": { "type": kind, "minimum": 0 } } });
    assert_eq!(lost(&bounded("number")), ["/properties/n minimum"]);
    assert_eq!(lost(&bounded("integer")), [""; 0]);
}

#[test]
fn llamacpp_ignores_some_patterns() {
    let pattern_lost = |pattern: &str| lost(&json!({ "type": "string", "pattern": pattern }));
    assert_eq!(pattern_lost("^[0-9]{2}$"), [""; 0]);
    for ignored in ["[0-9]", "^(?=a)ab$", "^\\d{2}$"] {
        assert_eq!(pattern_lost(ignored), [" pattern"], "{ignored}");
    }
}

#[test]
fn losses_say_what_was_measured() {
    let losses = Enforcement::by_engine("llamacpp").unwrap().losses(&json!({ "uniqueItems": true }));
    assert!(losses[0].reason.starts_with("llamacpp does not enforce it: "), "{}", losses[0].reason);
    let unknown = Enforcement::by_engine("llamacpp").unwrap().losses(&json!({ "contentEncoding": "base64" }));
    assert_eq!(unknown[0].reason, "whether llamacpp enforces it was not measured");
}

#[test]
fn one_violation_in_ten_answers_is_tolerated() {
    let is_lost = |valid, invalid, is_refused| {
        let features = vec![Measured { feature: "unique_items", valid, invalid, is_refused }].leak();
        let engine = Enforcement { engine: "test", version: "1", date: "2026-11-22", features };
        !engine.losses(&json!({ "uniqueItems": true })).is_empty()
    };
    assert!(!is_lost(9, 1, false) && is_lost(8, 2, false));
    assert!(is_lost(0, 0, false) && is_lost(10, 0, true));
}
