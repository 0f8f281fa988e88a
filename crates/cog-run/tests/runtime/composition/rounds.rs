//! How rounds end, and which of them counts.

use std::time::Duration;

use cog_run::{Budget, BudgetLimits, RunOptions};
use cog_spec::{Envelope, WarningCode};

use super::support::{Bench, Says, answer, code};

/// A writer and a critic, whose result is a number.
fn rounds(more: &str) -> String {
    format!(
        "composition:
  pattern: iterative
  timeout_ms: 3000
  requires: [{{name: writer}}, {{name: critic}}]
  dataflow:
    - {{from: input, to: writer}}
    - {{from: writer.output, to: critic, mapping: {{query: $.data.result}}}}
    - {{from: writer.output, to: output, mapping: {{result: $.data.result, rationale: $.data.rationale}}}}
  iteration: {{from: critic.output, until: $.data.result == 10, max_rounds: 3{more}}}"
    )
}

const BEST: &str = ", best: $.data.result";

fn wrote(text: &str, confidence: f64) -> Says {
    Says::Result(text.to_owned(), confidence, "low")
}

fn judged(score: u32) -> Says {
    let answer = serde_json::json!({"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
        "data": {"result": score, "rationale": "because"}});
    Says::Text(answer.to_string())
}

fn bench(more: &str, scores: &[Says]) -> Bench {
    let drafts = [wrote("one", 0.2), wrote("two", 0.6), wrote("three", 0.7)];
    Bench::new(&rounds(more), "", &["writer", "critic"], &[("writer", &drafts), ("critic", scores)])
}

/// Returns the messages of the warnings about rounds.
fn ended(envelope: &Envelope) -> Vec<&str> {
    let warnings = envelope.warnings.iter().filter(|warning| warning.code == WarningCode::RoundsEnded);
    warnings.map(|warning| warning.message.as_str()).collect()
}

#[tokio::test]
async fn rounds_that_reach_their_maximum_are_a_warning() {
    let envelope = bench("", &[judged(1), judged(8), judged(5)]).run().await;
    assert_eq!((answer(&envelope).as_str(), envelope.meta.confidence), ("three", Some(0.7)));
    let expected = "The rounds ended after `max_rounds` (3) before `until` was true: the last one counts.";
    assert_eq!(ended(&envelope), [expected]);
}

#[tokio::test]
async fn confidence_is_that_of_the_last_round() {
    let envelope = bench("", &[judged(1), judged(10)]).run().await;
    assert_eq!((answer(&envelope).as_str(), envelope.meta.confidence), ("two", Some(0.6)));
    assert!(
        ended(&envelope).is_empty() && !envelope.meta.explain.contains("critic,"),
        "{}",
        envelope.meta.explain
    );
}

#[tokio::test]
async fn best_round_counts_if_the_manifest_says_so() {
    let envelope = bench(BEST, &[judged(1), judged(8), judged(5)]).run().await;
    assert_eq!((answer(&envelope).as_str(), envelope.meta.confidence), ("two", Some(0.6)));
    assert!(ended(&envelope)[0].ends_with("before `until` was true: round 2 is the best."));
    let accepted = bench(BEST, &[judged(20), judged(10)]).run().await;
    assert_eq!((answer(&accepted).as_str(), ended(&accepted).len()), ("two", 0), "`until` was true");
}

#[tokio::test]
async fn budget_that_ends_the_rounds_leaves_the_best_one() {
    let limits = BudgetLimits { max_calls: Some(4), ..BudgetLimits::default() };
    let options = || RunOptions { budgets: vec![Budget::new("test", limits)], ..RunOptions::default() };
    let scores = [judged(8), judged(5)];
    let envelope = bench(BEST, &scores).run_with(options()).await;
    assert_eq!((answer(&envelope).as_str(), envelope.meta.confidence), ("one", Some(0.2)));
    assert!(
        ended(&envelope)[0].starts_with("The rounds ended early: the part `writer[3]` cannot run"),
        "{:?}",
        ended(&envelope)
    );
    assert_eq!(code(&bench("", &scores).run_with(options()).await), "E4002", "without `best`");
}

#[tokio::test(start_paused = true)]
async fn time_limit_that_ends_the_rounds_leaves_the_best_one() {
    let late = Says::Late(Duration::from_secs(60), "late".to_owned());
    let envelope = bench(BEST, &[judged(8), late.clone()]).run().await;
    assert_eq!(answer(&envelope), "one", "{:?}", envelope.error());
    assert!(ended(&envelope)[0].contains("took longer than 3s"), "{:?}", ended(&envelope));
    assert_eq!(code(&bench("", &[judged(8), late.clone()]).run().await), "E2002", "without `best`");
    assert_eq!(code(&bench(BEST, &[late]).run().await), "E2002", "no round has ended");
}
