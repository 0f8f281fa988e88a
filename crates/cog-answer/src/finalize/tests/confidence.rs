//! The measured confidence of an answer, and its gate.

use std::sync::Arc;

use cog_spec::{BelowGate, CalibrationReport, EvidenceMap, FinishReason, GateRule, LogisticMap, OnViolation};

use super::*;
use crate::{CalibrationInForce, ConfidenceRules, Uncalibrated};

const REPORT: CalibrationReport =
    CalibrationReport { cases: 40, accuracy: 0.875, interval: [0.732, 0.9581], stale: false };

/// A model that states too much: 0.9 is right in one of two answers.
const MAP: LogisticMap = LogisticMap { intercept: -2.197_224_577_336_219_6, slope: 1.0 };

fn calibrated(evidence: &str, threshold: Option<f64>) -> ConfidenceRules {
    ConfidenceRules {
        calibration: Ok(CalibrationInForce {
            map: EvidenceMap::of(evidence, MAP),
            threshold,
            report: REPORT,
        }),
        gate: Some(GateRule { accuracy: 0.8, risk: 0.1 }),
        below: BelowGate::Review,
    }
}

fn gated(tier: Tier, confidence: ConfidenceRules) -> AnswerRules {
    AnswerRules { confidence: Some(Arc::new(confidence)), ..rules(manifest(tier), &schema(json!({}))) }
}

fn stating(confidence: f64) -> Value {
    reply(json!({ "meta": { "confidence": confidence } }))
}

#[test]
fn calibration_replaces_the_confidence_and_keeps_it_as_evidence() {
    let meta = answer(&gated(Tier::Decision, calibrated("stated", Some(0.9))), &stating(0.9))["meta"].clone();
    assert_eq!((&meta["confidence"], &meta["confidence_source"]), (&json!(0.5), &json!("calibrated")));
    assert_eq!(meta["evidence"], json!({ "stated": 0.9 }));
    assert_eq!(meta["calibration"], serde_json::to_value(REPORT).unwrap());
    assert_eq!(meta["gate"], json!({ "accuracy": 0.8, "threshold": 0.5, "passed": true }));
}

#[test]
fn answer_below_the_threshold_is_reviewed_or_refused() {
    let rules = calibrated("stated", Some(0.91));
    let reviewed = answer(&gated(Tier::Decision, rules.clone()), &stating(0.9));
    assert_eq!((&reviewed["ok"], &reviewed["meta"]["gate"]["passed"]), (&json!(true), &json!(false)));
    assert_eq!(warnings(&reviewed), ["W2002"]);
    let refused =
        answer(&gated(Tier::Decision, ConfidenceRules { below: BelowGate::Fail, ..rules }), &stating(0.9));
    assert_eq!(
        (&refused["error"]["code"], &refused["partial_data"]["result"]),
        (&json!("E2001"), &json!("fine"))
    );
    assert_eq!(refused["error"]["details"]["gate"]["passed"], false);
    assert_eq!(refused["error"]["details"]["meta"]["confidence"], 0.9, "as the model stated it");
}

#[test]
fn what_is_not_measured_passes_no_gate() {
    let report = Some(CalibrationReport { stale: true, ..REPORT });
    let stale = Uncalibrated { reason: "it was edited".to_owned(), report };
    let rules = ConfidenceRules { calibration: Err(stale), ..calibrated("stated", None) };
    let found = answer(&gated(Tier::Decision, rules), &stating(1.0));
    assert_eq!(warnings(&found), ["W2003", "W2002"]);
    let meta = &found["meta"];
    assert_eq!((&meta["confidence"], &meta["confidence_source"]), (&json!(1.0), &json!("stated")));
    assert_eq!((&meta["calibration"]["stale"], &meta["gate"]["passed"]), (&json!(true), &json!(false)));
    assert_eq!(meta["gate"]["threshold"], Value::Null);
}

#[test]
fn evidence_that_is_absent_is_not_zero() {
    let found = answer(&gated(Tier::Decision, calibrated("logprob", Some(0.0))), &stating(0.9));
    assert_eq!(warnings(&found), ["W2003", "W2002"]);
    assert_eq!(
        (&found["meta"]["confidence"], &found["meta"]["gate"]["passed"]),
        (&json!(0.9), &json!(false))
    );
}

#[test]
fn threshold_that_cannot_be_promised_accepts_nothing() {
    let found = answer(&gated(Tier::Decision, calibrated("stated", None)), &stating(1.0));
    assert_eq!(
        (&found["meta"]["gate"]["threshold"], &found["meta"]["gate"]["passed"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(warnings(&found), ["W2002"]);
}

#[test]
fn tier_exec_compares_the_measured_confidence() {
    let without_gate = |map| ConfidenceRules {
        calibration: Ok(CalibrationInForce {
            map: EvidenceMap::of("stated", map),
            threshold: None,
            report: REPORT,
        }),
        gate: None,
        below: BelowGate::Review,
    };
    let unsure = answer(&gated(Tier::Exec, without_gate(MAP)), &stating(0.95));
    assert_eq!(unsure["error"]["code"], "E2001");
    let better = LogisticMap { intercept: 3.0, slope: 1.0 };
    let sure = answer(&gated(Tier::Exec, without_gate(better)), &stating(0.7));
    assert_eq!(sure["ok"], true, "{sure}");
    let measured = AnswerRules { is_calibration: true, ..tier(Tier::Exec) };
    assert_eq!(answer(&measured, &stating(0.1))["ok"], true, "the answer is one of a calibration");
}

#[test]
fn run_without_a_gate_has_no_further_members() {
    let meta = answer(&tier(Tier::Decision), &stating(0.9))["meta"].clone();
    for key in ["confidence_source", "calibration", "gate", "evidence"] {
        assert_eq!(meta.get(key), None, "{key}");
    }
}

#[test]
fn bad_answers_are_asked_of_the_next_provider() {
    let next = ConfidenceRules { below: BelowGate::Next, ..calibrated("stated", Some(0.95)) };
    let below_gate = AnswerRules { has_next: true, ..gated(Tier::Decision, next) };
    let escalating = AnswerRules { has_next: true, escalates: true, ..tier(Tier::Exec) };
    for (rules, reply, code) in [
        (&below_gate, stating(0.9), "E2001"),
        (&escalating, stating(0.5), "E2001"),
        (&escalating, reply(json!({ "data": { "result": 1 } })), "E3001"),
        (&escalating, reply(json!({ "meta": { "risk": "high" } })), "E3006"),
    ] {
        let found = answer(rules, &reply);
        assert_eq!(found["meta"]["fallbacks"][0]["code"], code, "{found}");
        assert_eq!(
            (&found["meta"]["fallbacks"][0]["provider"], &found["meta"]["attempts"]),
            (&json!("p"), &json!(2))
        );
    }
    // Each provider has all its attempts.
    let mut retrying = escalating.clone();
    retrying.response.on_violation = Some(OnViolation::Retry);
    let text = reply(json!({ "data": { "result": 1 } })).to_string();
    // An attempt that is stopped early has less partial data, so the parts are looked at one by one.
    for size in [1, text.len()] {
        let found = envelope(fold(chunks(&retrying, &text, size, Some(FinishReason::Stop))));
        assert_eq!((&found["error"]["code"], &found["meta"]["attempts"]), (&json!("E3001"), &json!(4)));
    }
}

#[test]
fn errors_of_the_model_and_good_answers_are_not_escalated() {
    let escalating = AnswerRules { has_next: true, escalates: true, ..tier(Tier::Decision) };
    let error = json!({ "ok": false, "meta": { "confidence": 0.9, "risk": "low", "explain": "No." },
        "error": { "code": "E2001", "message": "I am not sure." } });
    for reply in [stating(0.9), error] {
        assert_eq!(answer(&escalating, &reply)["meta"].get("fallbacks"), None);
    }
    let not_asked = AnswerRules { has_next: true, ..tier(Tier::Exec) };
    assert_eq!(answer(&not_asked, &stating(0.1))["meta"].get("fallbacks"), None);
}
