//! Named checks, and the checks of a program.

use std::sync::Arc;

use cog_rules::Checks;
use cog_spec::{CheckRule, CheckSeverity, Progress};

use super::*;

/// The plain module with a list of items, their total, and these checks.
fn with_checks(checks: &[(&str, &str)]) -> AnswerRules {
    let item = json!({ "type": "object", "properties": { "amount": { "type": "number" } } });
    let more = json!({ "items": { "type": "array", "items": item }, "total": { "type": "number" } });
    let mut rules = rules(manifest(Tier::Decision), &schema(more));
    let compiled = checks.iter().map(|(name, that)| CheckRule {
        name: (*name).to_owned(),
        that: Some((*that).to_owned()),
        severity: if name.starts_with("note") { CheckSeverity::Warning } else { CheckSeverity::Error },
        ..CheckRule::default()
    });
    let compiled: Vec<CheckRule> = compiled.collect();
    let (checks, findings) = Checks::compile(&compiled, Some(&rules.contract));
    assert_eq!(findings, []);
    rules.checks = Arc::new(checks);
    rules
}

fn summed() -> AnswerRules {
    with_checks(&[("sum", "sum($.data.items[*].amount) == $.data.total")])
}

/// A reply whose total is 3 too high, followed by a result.
const WRONG: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"items": [{"amount": 1}, {"amount": 2}], "total": 6, "result": "fine", "rationale": "r"}}"#;

fn violations(chunks: &[Chunk]) -> Vec<String> {
    let lines = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Progress(progress) => progress.violation.as_ref(),
        _ => None,
    });
    lines.map(|violation| format!("{} {}", violation.path, violation.rule)).collect()
}

#[test]
fn failed_check_names_itself_its_paths_and_its_values() {
    let failed = answer_text(&summed(), WRONG);
    let error = &failed["error"];
    assert_eq!(error["code"], "E3006");
    assert_eq!(error["details"]["check"], "sum");
    assert_eq!(error["details"]["paths"], json!(["data.items[*].amount", "data.total"]));
    assert_eq!(error["details"]["values"][2], json!({ "path": "data.total", "value": 6 }));
    assert_eq!(failed["partial_data"]["total"], 6);
}

#[test]
fn check_runs_when_the_last_value_that_it_reads_is_complete() {
    let chunks = chunks(&summed(), WRONG, 1, Some(FinishReason::Stop));
    assert_eq!(violations(&chunks), ["data.items[*].amount check:sum"], "once");
    let at = |found: &dyn Fn(&Chunk) -> bool| chunks.iter().position(found).unwrap();
    let reported = at(&|chunk| matches!(chunk, Chunk::Progress(Progress { violation: Some(_), .. })));
    let result = at(&|chunk| matches!(chunk, Chunk::Delta { field, .. } if field == "data.result"));
    assert!(reported < result, "before the next field");
}

#[test]
fn failed_check_stops_the_model_and_the_retry_is_told_why() {
    for (mode, is_early) in [(Some(OnViolation::Retry), true), (None, false)] {
        let mut rules = summed();
        rules.response.on_violation = mode;
        let (mut assembler, first) = Assembler::new(rules);
        let mut out = vec![first];
        let step = assembler.event(ModelEvent::Text(WRONG.to_owned()), Duration::ZERO, &mut out);
        assert_eq!(step == Step::Stop, is_early);
        if !is_early {
            let _ = assembler.event(ModelEvent::Finished(FinishReason::Stop), Duration::ZERO, &mut out);
        }
        let Finish::Again(mut again, correction) = assembler.finish(Duration::ZERO, &mut out) else {
            panic!("no retry")
        };
        let told = "- `data.items[*].amount` (check:sum): `sum($.data.items[*].amount) == $.data.total` is not true \
                    (`sum($.data.items[*].amount)` is 3, and `$.data.total` is 6)";
        assert!(correction.feedback.contains(told), "{}", correction.feedback);
        let right = WRONG.replace("\"total\": 6", "\"total\": 3");
        for event in [ModelEvent::Text(right), ModelEvent::Finished(FinishReason::Stop)] {
            let _ = again.event(event, Duration::ZERO, &mut out);
        }
        assert!(matches!(again.finish(Duration::ZERO, &mut out), Finish::Ended));
        check_stream(&out);
        assert_eq!(envelope(fold(out))["data"]["total"], 3);
    }
}

#[test]
fn answer_with_a_warning_is_accepted() {
    let rules = with_checks(&[("note_sum", "sum($.data.items[*].amount) == $.data.total")]);
    let answer = answer_text(&rules, WRONG);
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["_warnings"][0]["code"], "W3011");
}

#[test]
fn meta_is_known_to_a_check_at_the_end() {
    let rules = with_checks(&[("sure", "$.meta.confidence < 0.9 || $.data.total == 3")]);
    let failed = answer_text(&rules, WRONG);
    assert_eq!(failed["error"]["details"]["paths"], json!(["meta.confidence", "data.total"]));
    assert_eq!(answer_text(&rules, &WRONG.replace("0.9,", "0.8,"))["ok"], true);
    let (_, findings) = Checks::compile(
        &[CheckRule { that: Some("$.meta.confidense > 0".to_owned()), ..CheckRule::default() }],
        Some(&rules.contract),
    );
    assert!(!findings[0].is_warning, "{findings:?}");
}

#[test]
fn program_rejects_what_the_module_accepts() {
    let mut rules = with_checks(&[("sum", "$.data.total == 6")]);
    rules.response.on_violation = None;
    let judged = |rules: &AnswerRules, text: &str| {
        let (mut assembler, first) = Assembler::new(rules.clone());
        let mut out = vec![first];
        for event in [ModelEvent::Text(text.to_owned()), ModelEvent::Finished(FinishReason::Stop)] {
            let _ = assembler.event(event, Duration::ZERO, &mut out);
        }
        (assembler.close(false).judge(), out)
    };
    let found = || [("data.total".to_owned(), "it is even".to_owned())];
    let (reply, mut out) = judged(&rules, WRONG);
    assert_eq!(reply.accepted().and_then(|data| data.get("total")?.as_u64()), Some(6));
    let Finish::Again(_, correction) = reply.reject(found()).finish(Duration::ZERO, &mut out) else {
        panic!("no retry")
    };
    assert!(correction.feedback.contains("- `data.total` (check): it is even"), "{}", correction.feedback);
    // What the module rejects is not shown to the program, and its own reason stays.
    let (reply, _) = judged(&rules, &WRONG.replace("\"total\": 6", "\"total\": 7"));
    assert_eq!(reply.accepted(), None);
    let Finish::Again(_, correction) = reply.reject(found()).finish(Duration::ZERO, &mut Vec::new()) else {
        panic!("no retry")
    };
    assert!(correction.feedback.contains("check:sum") && !correction.feedback.contains("it is even"));
}
