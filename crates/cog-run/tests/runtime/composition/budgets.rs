//! Budgets and refusals that end a composition.

use cog_run::{Budget, BudgetLimits, RunOptions};
use cog_spec::Chunk;
use serde_json::json;

use super::support::{Bench, Says, answer, code, partial_data};

fn limited(limits: BudgetLimits) -> RunOptions {
    RunOptions { budgets: vec![Budget::new("test", limits)], ..RunOptions::default() }
}

fn details(envelope: &cog_spec::Envelope) -> serde_json::Value {
    envelope.error().unwrap().details.as_ref().unwrap().to_serde()
}

#[tokio::test]
async fn budget_that_is_spent_keeps_the_finished_parts() {
    let envelope = Bench::two(&[])
        .run_with(limited(BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() }))
        .await;
    assert_eq!(code(&envelope), "E4002");
    assert_eq!(partial_data(&envelope), json!({"one": {"result": "one", "rationale": "because"}}));
    assert_eq!(details(&envelope).get("retry_after_ms"), None, "the budget of a run is not full again later");
}

#[tokio::test]
async fn budget_that_is_spent_before_the_own_prompt_keeps_the_finished_parts() {
    let bench = Bench::new("", "Read @call:one", &["one"], &[]);
    let envelope =
        bench.run_with(limited(BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() })).await;
    assert_eq!((code(&envelope), bench.provider.called().len()), ("E4002", 1));
    assert_eq!(partial_data(&envelope), json!({"one": {"result": "one", "rationale": "because"}}));
}

#[tokio::test]
async fn stream_that_a_budget_ends_can_be_resumed() {
    let options = limited(BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() });
    let chunks = Bench::two(&[]).stream_that_resumes(options).await;
    let Some(Chunk::Error { recovery, .. }) = chunks.last() else { panic!("{chunks:?}") };
    assert!(recovery.is_some(), "the parts that are done need not run again");
}

#[tokio::test]
async fn stream_whose_part_of_a_part_is_late_can_be_resumed() {
    let bench = Bench::new("", "@call:middle", &["leaf", "late"], &[("late", &[Says::Never])]);
    bench.module("middle", "", "@call:leaf @call:late[timeout=20ms]");
    let chunks = bench.stream_that_resumes(RunOptions::default()).await;
    let Some(Chunk::Error { recovery, error, .. }) = chunks.last() else { panic!("{chunks:?}") };
    assert_eq!((error.code.as_str(), recovery.is_some()), ("E3002", true));
}

#[tokio::test]
async fn unknown_price_of_a_part_has_its_own_code() {
    let bench = Bench::two(&[]);
    let envelope =
        bench.run_with(limited(BudgetLimits { max_cost: Some(1.0), ..BudgetLimits::default() })).await;
    assert_eq!(code(&envelope), "E4002");
    let message = &envelope.error().unwrap().message;
    assert!(
        message.starts_with("the part `one` cannot run: ") && message.contains("script/one"),
        "{message}"
    );
    assert_eq!(details(&envelope), json!({"reason": "unknown_price"}));
    assert!(bench.provider.called().is_empty());
}

#[tokio::test]
async fn refused_attempt_has_the_failure_of_the_one_before() {
    let invalid = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
        "data": {"rationale": "because"}, "error": null}"#;
    let bench = Bench::new("", "Answer.", &[], &[("whole", &[Says::Text(invalid.to_owned())])]);
    let envelope =
        bench.run_with(limited(BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() })).await;
    assert_eq!((code(&envelope), bench.provider.called().len()), ("E4002", 1));
    assert_eq!(partial_data(&envelope), json!({"rationale": "because"}));
    let details = details(&envelope);
    assert_eq!((&details["limit"], &details["failed"]["code"]), (&json!("max_calls"), &json!("E3001")));
    assert!(details["failed"]["message"].as_str().unwrap().contains("result"), "{details}");
    let envelope =
        bench.run_with(limited(BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() })).await;
    assert_eq!(
        (code(&envelope), envelope.warnings.len()),
        ("E3001", 0),
        "the second attempt was the last one"
    );
    let valid = Bench::new("", "Answer.", &[], &[]);
    let envelope =
        valid.run_with(limited(BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() })).await;
    assert_eq!((answer(&envelope).as_str(), envelope.warnings.len()), ("whole", 0));
}
