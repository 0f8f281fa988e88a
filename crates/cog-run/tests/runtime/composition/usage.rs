//! The tokens of parts that have no answer.

use std::time::Duration;

use cog_run::{CancelReason, Cancellation, RunOptions};
use cog_spec::Envelope;

use super::support::{Bench, MAP, Says, code, parts, result};

fn invalid() -> [Says; 1] {
    [Says::Text("not JSON".to_owned())]
}

fn at_once() -> String {
    format!(
        "composition:
  timeout_ms: 3000
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: [one, two]}}
    - {{from: one.output, to: output, {MAP}}}"
    )
}

/// Asserts that a run has more than the known tokens, because those of one call that was lost are estimated.
fn assert_one_is_estimated(envelope: &Envelope, known: u64) {
    let (tokens, uncounted) = tokens(envelope);
    assert!(tokens > known, "{tokens}");
    assert_eq!(uncounted, Some(1));
}

/// Returns the tokens of the input, and the number of calls whose tokens were not counted.
fn tokens(envelope: &Envelope) -> (u64, Option<u32>) {
    let usage = envelope.usage().unwrap_or_else(|| panic!("{:?}", envelope.error()));
    (usage.input_tokens, usage.uncounted_calls)
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_parts_count() {
    let replies: [(&str, &[Says]); 2] = [("one", &invalid()), ("two", &[Says::Never])];
    let bench = Bench::new(&at_once(), "", &["one", "two"], &replies);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    assert_one_is_estimated(&envelope, 10);
    let each: Vec<_> = envelope.meta.runtime.parts.iter().map(|part| part.usage.clone().unwrap()).collect();
    assert_eq!((each[0].input_tokens, each[1].uncounted_calls), (10, Some(1)));
    assert_eq!(envelope.meta.runtime.parts[1].error, None, "it did not fail");
}

#[tokio::test(start_paused = true)]
async fn optional_part_that_fails_counts() {
    let composition = at_once().replace("{name: two}", "{name: two, optional: true}");
    let bench = Bench::new(&composition, "", &["one", "two"], &[("two", &invalid())]);
    assert_eq!(tokens(&bench.run().await), (20, None));
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_cancelled_part_count() {
    let replies: [(&str, &[Says]); 2] =
        [("one", &[Says::Late(Duration::from_secs(1), String::new())]), ("other", &[Says::Never])];
    let bench = Bench::new(&at_once(), "", &["one", "leaf", "other"], &replies);
    bench.module("two", "", "@call:leaf @call:other");
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E2002");
    assert_one_is_estimated(&envelope, 20);
    assert_eq!(parts(&envelope), ["one done", "two cancelled", "two/leaf done", "two/other cancelled"]);
    assert_eq!(bench.provider.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_cancelled_run_count() {
    let bench =
        Bench::new(&at_once(), "", &["one", "two"], &[("one", &[result("a")]), ("two", &[Says::Never])]);
    let cancellation = Cancellation::default();
    let later = cancellation.clone();
    let cancel = async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        later.cancel(CancelReason::Cancelled);
    };
    let options = RunOptions { cancellation, ..RunOptions::default() };
    let (envelope, ()) = tokio::join!(bench.run_with(options), cancel);
    assert_eq!(code(&envelope), "E2010");
    assert_one_is_estimated(&envelope, 10);
    assert_eq!(parts(&envelope), ["one done", "two cancelled"]);
}
