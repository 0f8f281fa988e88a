//! The context that the parts of a composition share.

use cog_run::{
    ModuleRef, RunInput, RunOptions,
    sessions::{ResumeFrom, RunSpec, SessionSettings, Sessions, StartFrom},
};

use super::support::{Bench, MAP, Says, answer, code, result, session_of};

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

/// Returns a reply that emits this context.
fn emitting_all(emitted: &str) -> Says {
    let Says::Text(text) = emitting("\"a\"", "{}") else { panic!() };
    Says::Text(text.replace(r#"{"session_state": {}}"#, emitted))
}

#[tokio::test]
async fn composition_emits_what_its_parts_emit_of_the_types_that_it_declares() {
    let both = "context: {emits: [{type: session_state}, {type: user_profile}]}";
    let first = emitting_all(r#"{"session_state": {"step": 1}, "user_profile": {"name": "Ada"}}"#);
    let second = emitting_all(r#"{"session_state": {"step": 2}}"#);
    let composition = "composition:
  requires: [{name: one}, {name: two}]
  dataflow:
    - {from: input, to: one}
    - {from: input, to: two}";
    let output = format!("{composition}\n    - {{from: one.output, to: output, {MAP}}}");
    let early = format!("{composition}\n  routing: [{{next: null}}]");
    let state = "context: {emits: [{type: session_state}]}";
    let forked = "context: {mode: fork, emits: [{type: session_state}]}";
    let bench = Bench::new("", "", &[], &[("one", &[first]), ("two", &[second])]);
    bench.module("one", both, "Answer.");
    bench.module("two", both, "Answer.");
    let emitted = async |manifest: &str| {
        bench.module("whole", manifest, "");
        let envelope = bench.run().await;
        answer(&envelope);
        envelope.emitted_context.map_or_else(|| "none".to_owned(), |emitted| emitted.to_string())
    };
    let later = r#"{"session_state":{"step":2}}"#;
    assert_eq!(emitted(&format!("{state}\n{output}")).await, later);
    assert_eq!(emitted(&format!("{forked}\n{output}")).await, later);
    assert_eq!(emitted(&format!("{state}\n{early}")).await, later);
    assert_eq!(
        emitted(&format!("{both}\n{output}")).await,
        r#"{"session_state":{"step":2},"user_profile":{"name":"Ada"}}"#
    );
    assert_eq!(emitted(&output).await, "none");
}

#[tokio::test]
async fn parts_see_only_what_the_whole_accepts() {
    let accepts = "{type: user_profile, fields: [name]}, {type: conversation_history, max_turns: 1}";
    let all = "context: {accepts: [{type: user_profile}, {type: conversation_history}]}";
    let composition = format!(
        "context: {{accepts: [{accepts}]}}
composition:
  requires: [{{name: one}}]
  dataflow: [{{from: input, to: one}}, {{from: one.output, to: output, {MAP}}}]"
    );
    let bench = Bench::new(&composition, "", &[], &[]);
    bench.module("one", all, "Answer.");
    let input = r#"{"query": "why?", "_context": {"user_profile": {"name": "Ada", "city": "Lausanne"},
        "conversation_history": [{"role": "user", "content": "first"}, {"role": "user", "content": "second"}]}}"#;
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let input = RunInput::Json(cog_json::Value::parse(input).unwrap());
    assert!(bench.runtime.run(&module, input, RunOptions::default()).await.is_ok());
    let received = &bench.provider.received("one")[0];
    assert!(received.contains("Ada") && received.contains("second"), "{received}");
    assert!(!received.contains("Lausanne") && !received.contains("first"), "{received}");
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
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let spec = RunSpec::new("whole", cog_json::Value::parse(r#"{"query": "why?"}"#).unwrap());
    let session = sessions.prepare(&bench.runtime, &module, spec, session_of("ada")).unwrap().start();
    let id = session.id().to_owned();
    let mut subscriber = session.follow(StartFrom::Beginning);
    bench.read_until(&mut subscriber, "two", 1).await;
    drop((subscriber, session));
    let from = ResumeFrom::default();
    let mut resumed =
        sessions.resume(&bench.runtime, &id, "ada", from, RunOptions::default(), Box::new(())).await.unwrap();
    while resumed.next().await.is_some() {}
    assert_eq!(bench.provider.called(), ["one", "two", "two"]);
    let received = bench.provider.received("two");
    assert!(received[0].contains(r#""step":7"#), "{}", received[0]);
    assert_eq!(received[0], received[1]);
}
