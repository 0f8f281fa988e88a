//! The context that the parts of a composition share.

use cog_run::sessions::{After, ResumeFrom, RunSpec, SessionOptions, SessionSettings, Sessions};

use crate::support::{Bench, MAP, Says, answer, code, result};

const EMITS: &str = "context: {emits: [{type: session_state}]}";
const ACCEPTS: &str = "context: {accepts: [{type: session_state}, {type: previous_result}]}";

/// Returns a reply with this result, which emits this context.
fn emitting(result: &str, emitted: &str) -> Says {
    Says::Text(format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}},
            "data": {{"result": {result}, "rationale": "because"}}, "error": null,
            "_emitted_context": {{"session_state": {emitted}}}}}"#
    ))
}

/// A composition whose second part accepts what the first one emits.
fn two(replies: &[(&str, &[Says])]) -> Bench {
    let composition = format!(
        "composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: input, to: two}}
    - {{from: two.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &[], replies);
    bench.module("one", EMITS, "Answer.");
    bench.module("two", ACCEPTS, "Answer.");
    bench
}

#[tokio::test]
async fn secrets_of_a_part_are_masked_for_the_next_one() {
    let one = emitting(r#"{"password": "hunter-2"}"#, r#"{"api_key": "of-the-user", "step": 7}"#);
    let bench = two(&[("one", &[one])]);
    assert_eq!(answer(&bench.run().await), "two");
    let received = &bench.provider.received("two")[0];
    assert!(received.contains(r#""step":7"#) && received.contains(r#""previous_result""#), "{received}");
    assert!(!received.contains("hunter-2") && !received.contains("of-the-user"), "{received}");
}

#[tokio::test]
async fn part_that_emits_too_much_context_fails() {
    let large = format!("\"{}\"", "x".repeat(10 << 20));
    let bench = two(&[("one", &[emitting("\"a\"", &large)])]);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    let message = &envelope.error().unwrap().message;
    assert!(message.starts_with("the part `one` failed: ") && message.len() < 1_000, "{}", message.len());
    assert_eq!(bench.provider.called(), ["one"]);
}

#[tokio::test]
async fn part_after_an_interruption_receives_the_context_of_those_before() {
    let one = emitting("\"a\"", r#"{"step": 7}"#);
    let bench = two(&[("one", &[one]), ("two", &[Says::Never, result("the end")])]);
    let sessions = Sessions::open(SessionSettings::default()).unwrap();
    let module = bench.runtime.load_name("whole").unwrap();
    let spec = RunSpec::new("whole", cog_json::Value::parse(r#"{"query": "why?"}"#).unwrap());
    let session = sessions.start(&bench.runtime, &module, spec, SessionOptions::new("ada")).unwrap();
    let id = session.id().to_owned();
    let mut subscriber = session.follow(After::Start);
    while !bench.provider.called().contains(&"two".to_owned()) {
        subscriber.next().await.unwrap();
    }
    drop((subscriber, session));
    let from = ResumeFrom::default();
    let mut resumed =
        sessions.resume(&bench.runtime, &id, "ada", from, Vec::new(), Box::new(())).await.unwrap();
    while resumed.next().await.is_some() {}
    assert_eq!(bench.provider.called(), ["one", "two", "two"]);
    let received = bench.provider.received("two");
    assert!(received[0].contains(r#""step":7"#), "{}", received[0]);
    assert_eq!(received[0], received[1]);
}
