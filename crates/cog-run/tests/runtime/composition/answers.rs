//! What the runtime does with the answers of the parts.

use cog_run::RunOptions;
use cog_spec::{Chunk, PartStatus, Risk, WarningCode};

use super::support::{Bench, MAP, Says, answer, code, partial_data, parts, result};

const PROMPT: &str = "Part: @call:part($ARGUMENTS) Risk: {{part.meta.risk}} Input: $INPUT";

/// Returns a module whose part `part` gives its answer.
fn answered_by_its_part(says: Says) -> Bench {
    let composition = "composition:
  requires: [{name: part}]
  dataflow:
    - {from: input, to: part}
    - {from: part.output, to: output, mapping: {result: $.data.result, rationale: $.data.more}}";
    Bench::new(composition, "", &["part"], &[("part", &[says])])
}

fn part_with_more(more: &str) -> Says {
    Says::Text(format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}},
            "data": {{"result": "fine", "rationale": "because", "more": {more}}}, "error": null}}"#
    ))
}

#[tokio::test]
async fn results_take_the_place_of_calls_and_are_not_expanded() {
    let bench = Bench::new("", PROMPT, &["part"], &[("part", &[result("$INPUT")])]);
    assert_eq!(answer(&bench.run().await), "whole");
    let own = &bench.provider.received("whole")[0];
    let expected = r#"Part: {"result":"$INPUT","rationale":"because"} Risk: low Input: {"query":"why?"}"#;
    assert!(own.starts_with(expected), "{own}");
}

#[tokio::test]
async fn answer_has_the_usage_the_risk_and_the_reports_of_its_parts() {
    let risky = [Says::Result("x".to_owned(), 0.95, "high")];
    let invalid = [Says::Text("not JSON".to_owned())];
    let replies: [(&str, &[Says]); 2] = [("part", &risky), ("other", &invalid)];
    let prompt = format!("{PROMPT} @call:other[optional]");
    let envelope = Bench::new("", &prompt, &["part", "other"], &replies).run().await;
    assert_eq!(envelope.meta.risk.level(), Risk::High);
    assert_eq!(envelope.meta.confidence, Some(0.9), "the confidence is the one of the own prompt");
    assert_eq!(parts(&envelope), ["part done", "other failed"]);
    assert_eq!(envelope.meta.runtime.parts[0].status, PartStatus::Done);
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(30));
    assert_eq!(envelope.warnings[0].code, WarningCode::OptionalPartFailed);
}

#[tokio::test]
async fn explicit_risk_is_the_one_of_the_module() {
    let risky = [Says::Result("x".to_owned(), 0.95, "high")];
    let bench = Bench::new("meta: {risk_rule: explicit}", PROMPT, &["part"], &[("part", &risky)]);
    assert_eq!(bench.run().await.meta.risk.level(), Risk::Low);
}

#[tokio::test]
async fn answer_of_the_parts_is_checked_like_a_reply() {
    let bench = answered_by_its_part(part_with_more("\"text\""));
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "fine");
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("composition/parts"));
    assert_eq!(envelope.usage().and_then(|usage| usage.uncounted_calls), None, "no model was called");
    let bench = answered_by_its_part(part_with_more("7"));
    let envelope = bench.run_with(RunOptions { max_attempts: Some(3), ..RunOptions::default() }).await;
    assert_eq!(code(&envelope), "E3001");
    assert_eq!(envelope.meta.runtime.attempts, None, "the parts do not run again");
    assert_eq!(bench.provider.called(), ["part"]);
}

#[tokio::test(start_paused = true)]
async fn failed_parts_end_the_run_with_the_answers_of_the_others() {
    let composition = format!(
        "composition:
  timeout_ms: 5000
  requires: [{{name: a}}, {{name: b, timeout_ms: 1000}}]
  dataflow:
    - {{from: input, to: a}}
    - {{from: input, to: b}}
    - {{from: a.output, to: output, {MAP}}}"
    );
    for (says, is_interrupted) in [(Says::Text("not JSON".to_owned()), false), (Says::Never, true)] {
        let bench = Bench::new(&composition, "", &["a", "b"], &[("b", &[says])]);
        let chunks =
            bench.stream_that_resumes(RunOptions { max_attempts: Some(1), ..RunOptions::default() }).await;
        assert_eq!(bench.provider.called(), ["a", "b"]);
        assert!(
            matches!(&chunks[1], Chunk::Progress(progress) if progress.part.is_some()),
            "{:?}",
            chunks[1]
        );
        let Some(Chunk::Error { recovery, .. }) = chunks.last() else { panic!("{chunks:?}") };
        assert_eq!(recovery.is_some(), is_interrupted);
        let envelope = cog_answer::fold(chunks);
        assert_eq!(parts(&envelope), ["a done", "b failed"]);
        assert_eq!(partial_data(&envelope)["a"]["result"], "a");
        assert_eq!(
            envelope.usage().map(|usage| usage.output_tokens),
            Some(if is_interrupted { 1 } else { 2 })
        );
    }
}
