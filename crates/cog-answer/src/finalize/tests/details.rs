//! What the error, the warnings and the repairs of an answer contain.

use cog_spec::{Dialect, Risk};

use super::*;

/// Returns the path and the rule of each violation.
fn violations(envelope: &Value) -> Vec<String> {
    let violations = envelope["error"]["details"]["violations"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    violations.iter().map(|one| format!("{} {}", text(one, "path"), text(one, "rule"))).collect()
}

#[test]
fn data_that_are_no_object_are_one_violation() {
    for (text, expected) in [
        (r#"{"ok": true, "data": [1]}"#, "data type"),
        (r#"{"ok": true, "data": null}"#, "data required"),
        (r#"{"ok": true}"#, "data required"),
    ] {
        assert_eq!(violations(&answer_text(&plain(), text)), [expected], "{text}");
    }
    let unwrapping = with(|manifest| manifest.compat.runtime_auto_wrap = false);
    assert_eq!(violations(&answer_text(&unwrapping, r#"{"result": 7}"#)), ["ok required"]);
}

#[test]
fn fields_of_meta_are_known_in_bare_data_only() {
    let data = json!({ "result": "r", "rationale": "y", "confidence": 0.9, "risk": "low", "explain": "e" });
    assert_eq!(warnings(&answer(&plain(), &data)), [] as [&str; 0]);
    let mut more = data.clone();
    more["extra"] = json!(1);
    assert_eq!(warnings(&answer(&plain(), &more)), ["W3007"]);
    assert_eq!(warnings(&answer(&plain(), &reply(json!({ "data": { "risk": "low" } })))), ["W3007"]);
}

#[test]
fn number_of_further_invalid_citations_is_named() {
    let rules = rules(manifest(Tier::Exec), &schema(json!({ "citation_map": {} })));
    let map = json!({ "a": { "source_type": "pdf_document", "source_id": "doc" } });
    let message = |result: &str| {
        let data = json!({ "result": result, "citation_map": map });
        answer(&rules, &reply(json!({ "data": data })))["error"]["message"].as_str().unwrap().to_owned()
    };
    let two = message("<cite id=\"b\"/>");
    assert!(two.ends_with("(and 1 more)"), "{two}");
    let one = message("<cite id=\"a\"/><cite id=\"b\"/>");
    assert!(!one.contains("more)"), "{one}");
}

#[test]
fn risk_that_stays_equal_is_not_lowered() {
    let changes = json!({ "changes": { "type": "array", "items": { "type": "object" } } });
    let rules = rules(manifest(Tier::Decision), &schema(changes));
    let equal = json!({ "meta": { "risk": "high" }, "data": { "changes": [{ "risk": "high" }] } });
    assert_eq!(warnings(&answer(&rules, &reply(equal))), [] as [&str; 0]);
}

#[test]
fn parts_of_a_composition_raise_the_risk_unless_the_module_states_it() {
    let custom = json!({ "custom": "x", "reason": "y" });
    for (rule, own, parts, expected) in [
        (RiskRule::MaxChangesRisk, json!("low"), Some(Risk::High), json!("high")),
        (RiskRule::MaxChangesRisk, json!("high"), Some(Risk::Low), json!("high")),
        (RiskRule::MaxChangesRisk, custom.clone(), Some(Risk::High), custom),
        (RiskRule::MaxChangesRisk, json!("low"), None, json!("low")),
        (RiskRule::Explicit, json!("low"), Some(Risk::High), json!("low")),
    ] {
        let mut rules = with(|manifest| manifest.risk_rule = rule);
        rules.parts_risk = parts;
        let envelope = answer(&rules, &reply(json!({ "meta": { "risk": own } })));
        assert_eq!(envelope["meta"]["risk"], expected, "{rule} {own} {parts:?}");
    }
}

#[test]
fn strict_run_refuses_a_repaired_error_of_the_model() {
    let mut strict = plain();
    strict.strict = true;
    let error = json!({ "code": "E2006", "message": "Which one?" });
    let meta = json!({ "confidence": 0.6, "risk": "medium", "explain": "No." });
    let complete = answer(&strict, &json!({ "ok": false, "meta": meta, "error": error }));
    assert_eq!(complete["error"]["code"], "E2006");
    let repaired = answer(&strict, &json!({ "ok": false, "error": error }));
    assert_eq!(repaired["error"]["code"], "E3001");
    assert_eq!(repaired["error"]["details"]["repairs"][0]["rule"], "fill_confidence");
}

#[test]
fn error_with_no_valid_code_is_reported_as_the_model_wrote_it() {
    let mut schema = schema(json!({}));
    schema["error"] = json!({ "properties": { "code": { "enum": ["E2007"] } } });
    let rules = rules(manifest(Tier::Decision), &schema);
    let error = json!({ "code": "BEHAVIOR_CHANGE_REQUIRED", "message": "No." });
    let message = answer(&rules, &json!({ "ok": false, "error": error }))["error"]["message"].to_string();
    assert!(message.contains("found `BEHAVIOR_CHANGE_REQUIRED`"), "{message}");
}

#[test]
fn violation_of_the_data_as_a_whole_changes_no_partial_data() {
    let mut schema = schema(json!({}));
    schema["data"]["minProperties"] = json!(9);
    let rules = rules(manifest(Tier::Decision), &schema);
    let envelope = answer(&rules, &reply(json!({})));
    assert_eq!(violations(&envelope), ["data minProperties"]);
    assert_eq!(envelope["partial_data"], reply(json!({}))["data"]);
    let both = answer(&rules, &reply(json!({ "data": { "result": 7 } })));
    assert_eq!(both["partial_data"], json!({ "rationale": "It was asked." }));
}

#[test]
fn repairs_of_bare_data_have_paths_in_data() {
    let output = json!({ "type": "object", "required": ["n"] });
    let old =
        rules(Manifest::with_defaults("old", Format::V21, None), &json!({ "input": {}, "output": output }));
    for text in ["```json\n{'n': [True]}\n```", "```json\n{'m': [True]}\n```", "{'m': [True], \"n"] {
        let repairs = repairs(&answer_text(&old, text));
        assert!(repairs.iter().any(|one| one.starts_with("python_literal data.")), "{repairs:?}");
        let mut fences = repairs.iter().filter(|one| one.starts_with("code_fence"));
        assert!(fences.all(|one| one == "code_fence "), "{repairs:?}");
    }
    let enveloped = repairs(&answer_text(&old, "{'ok': True, 'data': {'n"));
    assert!(enveloped.contains(&"python_literal ok".to_owned()), "{enveloped:?}");
}

#[test]
fn second_object_after_text_is_found_at_the_end() {
    let one = reply(json!({}));
    let envelope = answer_text(&plain(), &format!("First: {one} or second: {one}"));
    assert_eq!(envelope["error"]["details"]["reason"], "several_objects");
}

#[test]
fn wrapped_reply_is_the_answer() {
    let mut rules = plain();
    rules.dialect = Dialect::OpenAiStrict;
    let text = json!({ "envelope": reply(json!({})) }).to_string();
    assert_eq!(answer_text(&rules, &text)["data"], reply(json!({}))["data"]);
}

#[test]
fn error_has_the_origin_of_what_reports_it() {
    let origin = |envelope: &Value| envelope["error"]["details"]["origin"].clone();
    let meta = json!({ "confidence": 0.6, "risk": "medium", "explain": "No." });
    let reported = |error: &Value| answer(&plain(), &json!({ "ok": false, "meta": meta, "error": error }));
    let error =
        json!({ "code": "E4001", "message": "No stock.", "details": { "origin": "runtime", "shelf": 7 } });
    let of_model = reported(&error);
    assert_eq!(of_model["error"]["details"], json!({ "origin": "model", "shelf": 7 }));
    let word = json!({ "code": "PARSE_ERROR", "message": "No." });
    let of_model = reported(&word);
    assert_eq!(of_model["error"]["details"], json!({ "origin": "model", "legacy_code": "PARSE_ERROR" }));
    let of_runtime = answer(&plain(), &reply(json!({ "data": { "result": 7 } })));
    assert_eq!(origin(&of_runtime), "runtime");
    let unknown = json!({ "code": "NOBODYS_CODE", "message": "No." });
    let of_runtime = reported(&unknown);
    assert_eq!((&of_runtime["error"]["code"], origin(&of_runtime)), (&json!("E3001"), json!("runtime")));
}
