//! Parts that fail, in each position, and compositions that are invalid.

use std::time::Duration;

use cog_json::ToJson as _;
use cog_run::{CancelReason, Cancellation, ModuleRef, RunOptions};

use super::support::{Bench, MAP, Says, answer, code, input, parts, result};

fn chain(first: &str, more: &str) -> String {
    format!(
        "composition:
  timeout_ms: 5000
  requires: [{{name: one}}, {{name: two{first}}}, {{name: three}}{more}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: input, to: two}}
    - {{from: [one.output, two.output], to: three, mapping: {{query: $.one.data.result, extra: $.two.data.result}}}}
    - {{from: three.output, to: output, {MAP}}}"
    )
}

const PARTS: [&str; 3] = ["one", "two", "three"];

fn invalid() -> [Says; 1] {
    [Says::Text("not JSON".to_owned())]
}

#[tokio::test]
async fn required_part_that_fails_ends_the_composition_with_the_finished_parts() {
    for (position, name) in PARTS.iter().enumerate() {
        let bench = Bench::new(&chain("", ""), "", &PARTS, &[(name, &invalid())]);
        let envelope = bench.run().await;
        assert_eq!(code(&envelope), "E3002");
        let error = envelope.error().unwrap();
        assert!(error.message.starts_with(&format!("the part `{name}` failed: E1000")), "{}", error.message);
        let json = cog_json::Value::parse(&envelope.to_json()).unwrap();
        let partial = json.get("partial_data").map_or(0, |partial| partial.len());
        assert_eq!((partial, bench.provider.called().len()), (position, position + 1), "{name}");
        assert_eq!(parts(&envelope).last().unwrap(), &format!("{name} failed"));
        assert_eq!(error.details.as_ref().unwrap().get("part").unwrap().as_str(), Some(*name));
    }
}

#[tokio::test]
async fn optional_part_that_fails_is_absent() {
    let bench = Bench::new(&chain(", optional: true", ""), "", &PARTS, &[("two", &invalid())]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "three");
    assert!(bench.provider.received("three")[0].contains(r#"{"query":"one"}"#));
    assert_eq!(envelope.warnings[0].code.as_str(), "W3002");
    assert_eq!(parts(&envelope), ["one done", "two failed", "three done"]);
}

#[tokio::test]
async fn fallback_takes_the_place_of_a_part_that_fails() {
    let composition = chain(", fallback: spare", ", {name: spare}");
    let bench = Bench::new(&composition, "", &["one", "two", "three", "spare"], &[("two", &invalid())]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "three");
    assert!(bench.provider.received("three")[0].contains(r#""extra":"spare""#));
    assert_eq!(parts(&envelope), ["one done", "two failed", "spare done", "three done"]);
    assert!(bench.provider.received("spare")[0].contains(r#"{"query":"why?"}"#));
    let both: [(&str, &[Says]); 2] = [("two", &invalid()), ("spare", &invalid())];
    let bench = Bench::new(&composition, "", &["one", "two", "three", "spare"], &both);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    assert!(envelope.error().unwrap().message.contains("`spare`"));
}

fn both_at_once(timeout: &str) -> String {
    format!(
        "composition:
  timeout_ms: 3000
  requires: [{{name: one}}, {{name: two{timeout}}}]
  dataflow:
    - {{from: input, to: [one, two]}}
    - {{from: one.output, to: output, {MAP}}}"
    )
}

#[tokio::test(start_paused = true)]
async fn failure_cancels_the_parts_that_run() {
    let replies: [(&str, &[Says]); 2] = [("one", &invalid()), ("two", &[Says::Never])];
    let bench = Bench::new(&both_at_once(""), "", &["one", "two"], &replies);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    assert_eq!(parts(&envelope), ["one failed", "two cancelled"]);
    assert_eq!(bench.provider.open(), 0, "the call to the provider is dropped");
}

#[tokio::test(start_paused = true)]
async fn own_prompt_that_is_late_names_the_limit_that_ended_it() {
    let composition = "composition: {timeout_ms: 3000}";
    let bench = Bench::new(composition, "Read @call:one", &["one"], &[("whole", &[Says::Never])]);
    for (seconds, setting) in [(60, "`composition.timeout_ms` in the manifest"), (1, "--timeout")] {
        let options = RunOptions { timeout: Some(Duration::from_secs(seconds)), ..RunOptions::default() };
        let error = bench.run_with(options).await.error().unwrap().clone();
        let help = format!("Raise {setting}, or request a shorter answer.");
        assert_eq!((error.code.as_str(), error.suggestion), ("E2002", Some(help)));
    }
}

#[tokio::test(start_paused = true)]
async fn parts_and_the_composition_have_time_limits() {
    let replies: [(&str, &[Says]); 1] = [("two", &[Says::Never])];
    let bench = Bench::new(&both_at_once(", timeout_ms: 1000"), "", &["one", "two"], &replies);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    let error = envelope.error().unwrap();
    assert!(error.message.contains("E2002"), "{error:?}");
    let help = "Raise `timeout_ms` of `two` in `composition.requires`, or make the part optional.";
    assert_eq!(error.suggestion.as_deref(), Some(help));
    let called = Bench::new("", "@call:two[timeout=2s]", &["two"], &replies).run().await;
    let help = "Raise `timeout` in the options of `@call:two`, or make the part optional.";
    assert_eq!(called.error().unwrap().suggestion.as_deref(), Some(help));
    let bench = Bench::new(&both_at_once(""), "", &["one", "two"], &replies);
    let options = RunOptions { timeout: Some(Duration::from_secs(1)), ..RunOptions::default() };
    let error = bench.run_with(options).await.error().unwrap().clone();
    assert_eq!(error.suggestion.as_deref(), Some("Raise --timeout, or use faster parts."));
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E2002");
    let help = "Raise `composition.timeout_ms` in the manifest, or use faster parts.";
    assert_eq!(envelope.error().unwrap().suggestion.as_deref(), Some(help));
    assert_eq!(parts(&envelope), ["one done", "two cancelled"]);
    assert!(envelope.to_json().contains(r#""partial_data":{"one":{"#), "{}", envelope.to_json());
    assert_eq!(bench.provider.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_the_parts() {
    let bench = Bench::new(&both_at_once(""), "", &["one", "two"], &[("two", &[Says::Never])]);
    let cancellation = Cancellation::default();
    let later = cancellation.clone();
    let cancel = async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        later.cancel(CancelReason::Cancelled);
    };
    let options = RunOptions { cancellation, ..RunOptions::default() };
    let (envelope, ()) = tokio::join!(bench.run_with(options), cancel);
    assert_eq!(code(&envelope), "E2010");
    assert_eq!(bench.provider.open(), 0);
}

#[tokio::test]
async fn invalid_compositions_are_rejected_before_a_call() {
    let step = "composition: {requires: [{name: part}], dataflow: [{from: input, to: part}, {from: part.output, to: output}]}";
    let bench = Bench::new(step, "", &[], &[]);
    assert_eq!(code(&bench.run().await), "E4006");
    bench.module("part", step.replace("part", "whole").as_str(), "");
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E4004");
    let message = &envelope.error().unwrap().message;
    assert!(message.contains("whole") && message.contains("part"), "{message}");
    let deep = "composition: {max_depth: 2, requires: [{name: part}], dataflow: [{from: input, to: part}, {from: part.output, to: output}]}";
    let bench = Bench::new(deep, "", &["leaf"], &[]);
    bench.module("part", "", "@call:leaf");
    assert_eq!(code(&bench.run().await), "E4005");
    assert!(bench.provider.called().is_empty());
}

#[tokio::test]
async fn cycle_through_a_call_and_a_fallback_is_rejected() {
    let fallback =
        "composition: {requires: [{name: missing, fallback: part}], dataflow: [{from: input, to: missing}]}";
    let bench = Bench::new(fallback, "", &[], &[]);
    bench.module("part", "", "@call:whole");
    assert_eq!(code(&bench.run().await), "E4004");
}

#[tokio::test]
async fn part_that_answers_with_the_name_of_its_parent_is_data() {
    let bench = Bench::new("", "@call:one", &["one"], &[("one", &[result("@call:whole {{whole.ok}}")])]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "whole");
    assert_eq!(bench.provider.called(), ["one", "whole"]);
    assert!(bench.provider.received("whole")[0].contains("@call:whole {{whole.ok}}"));
}

#[tokio::test]
async fn composition_keeps_the_modules_that_it_loaded() {
    let composition = format!(
        "composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: input, to: two}}
    - {{from: two.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &["one", "two"], &[]);
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let mut stream = bench.runtime.stream(&module, input(), RunOptions::default()).unwrap();
    assert!(stream.next().await.is_some());
    bench.module("two", "", "A changed prompt.");
    while stream.next().await.is_some() {}
    assert!(bench.provider.received("two")[0].starts_with("Answer."));
    assert_eq!(answer(&bench.run().await), "two");
    assert!(bench.provider.received("two")[1].starts_with("A changed prompt."));
}
