use std::process::{Command, Output};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json, settings, stderr, transcript};

const MANIFEST: &str = "name: tutor\nversion: 1.0.0\nresponsibility: Answer questions\ntier: decision\nexcludes: \
                        [guessing]\n";

const ACCEPTS: &str =
    "context: { accepts: [{ type: conversation_history, max_turns: 2 }, { type: user_profile }] }\n";

const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"],
        "properties": {"query": {"type": "string"}, "style": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

fn place() -> Place {
    let place = Place::new();
    add_module(&place, "tutor", ACCEPTS);
    place
}

fn add_module(place: &Place, path: &str, context: &str) {
    place.write(&format!("{path}/module.yaml"), format!("{MANIFEST}{context}"));
    place.write(&format!("{path}/prompt.md"), "Answer the question.\n");
    place.write(&format!("{path}/schema.json"), SCHEMA);
}

/// Returns the data of the answer with this number.
fn data(number: usize) -> String {
    format!(r#"{{"result":"answer {number}","rationale":"It follows."}}"#)
}

/// Returns a mock whose answers have numbers, from 1.
fn mock() -> Mock {
    let meta = r#"{"confidence": 0.9, "risk": "low", "explain": "Fine."}"#;
    let reply = |number| Reply::text(format!(r#"{{"ok": true, "meta": {meta}, "data": {}}}"#, data(number)));
    Mock::start((1..=6).map(reply))
}

fn command(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    command.env("OPENAI_API_KEY", "sk-canary-1").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command.env("COG_LOGS_CONTENTS", "true");
    command
}

fn run(place: &Place, mock: &Mock, args: &[&str]) -> Output {
    let output = command(place, mock, args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Returns `_context` that the model received last.
fn context(mock: &Mock) -> Value {
    let body = mock.requests().last().unwrap().body.clone();
    let message = body["messages"][1]["content"].as_str().unwrap();
    serde_json::from_str::<Value>(message).unwrap()["_context"].clone()
}

fn user(content: &str) -> Value {
    json!({ "role": "user", "content": content })
}

fn assistant(number: usize) -> Value {
    json!({ "role": "assistant", "content": data(number) })
}

/// A snapshot in which the IDs of logged runs are replaced.
fn snapshot(name: &str, command: Command) {
    let mut settings = settings();
    settings.add_filter(r"`[2-9a-z]{8}`", "`[ID]`");
    settings.bind(|| insta::assert_snapshot!(name, transcript(command)));
}

#[test]
fn conversation_continues_with_the_last_turns() {
    let (place, mock) = (place(), mock());
    run(&place, &mock, &["run", "./tutor", "--args", "one"]);
    assert_eq!(context(&mock), Value::Null);
    let second = run(&place, &mock, &["run", "-c", "./tutor", "--args", "two"]);
    assert_eq!(json(&second)["data"]["result"], "answer 2");
    assert_eq!(context(&mock), json!({ "conversation_history": [user("one"), assistant(1)] }));
    run(&place, &mock, &["run", "-c", "--args", "three"]);
    let turns = [user("one"), assistant(1), user("two"), assistant(2)];
    assert_eq!(context(&mock), json!({ "conversation_history": turns }));
    run(&place, &mock, &["run", "--continue-last", "--args", "four"]);
    let turns = [user("two"), assistant(2), user("three"), assistant(3)];
    assert_eq!(context(&mock), json!({ "conversation_history": turns }));
}

#[test]
fn conversation_keeps_its_other_context_and_its_model() {
    let (place, mock) = (place(), mock());
    let first = r#"{"query": "one", "style": "short", "_context": {"user_profile": {"name": "Ada"}}}"#;
    run(&place, &mock, &["run", "tutor", "--input-json", first, "--model", "m1"]);
    run(&place, &mock, &["run", "-c", "--input-json", r#"{"query": "two"}"#]);
    let history = [user(r#"{"query":"one","style":"short"}"#), assistant(1)];
    let expected = json!({ "conversation_history": history, "user_profile": { "name": "Ada" } });
    assert_eq!(context(&mock), expected);
    assert_eq!(mock.requests()[1].body["model"], "m1");
    let other = r#"{"query": "three", "_context": {"user_profile": {"name": "Grace"}}}"#;
    run(&place, &mock, &["run", "-c", "--input-json", other, "--model", "m2"]);
    assert_eq!(context(&mock)["user_profile"]["name"], "Grace");
    assert_eq!(context(&mock)["conversation_history"][2], user("two"));
    assert_eq!(mock.requests()[2].body["model"], "m2");
}

#[test]
fn failed_runs_and_other_modules_are_not_continued() {
    let (place, mock) = (place(), mock());
    add_module(&place, "other/tutor", ACCEPTS);
    run(&place, &mock, &["run", "./tutor", "--args", "one"]);
    run(&place, &mock, &["run", "./other/tutor", "--args", "of another module"]);
    let invalid = command(&place, &mock, &["run", "./tutor", "--input-json", "{}"]).output().unwrap();
    assert!(!invalid.status.success());
    run(&place, &mock, &["run", "-c", "./tutor", "--args", "two"]);
    assert_eq!(context(&mock), json!({ "conversation_history": [user("one"), assistant(1)] }));
}

#[test]
fn conversation_streams() {
    let (place, mock) = (place(), mock());
    run(&place, &mock, &["run", "./tutor", "--args", "one"]);
    let chunks = run(&place, &mock, &["run", "-c", "--args", "two", "--stream"]);
    assert!(!chunks.stdout.is_empty());
    assert_eq!(context(&mock)["conversation_history"][0], user("one"));
}

#[test]
fn module_must_accept_a_conversation() {
    let (place, mock) = (place(), mock());
    add_module(&place, "plain", "");
    snapshot("module_without_history", command(&place, &mock, &["run", "-c", "./plain", "--args", "two"]));
    assert!(mock.requests().is_empty());
}

#[test]
fn conversation_needs_a_logged_run_with_contents() {
    let (place, mock) = (place(), mock());
    let again = ["run", "-c", "./tutor", "--args", "two"];
    snapshot("no_run_to_continue", command(&place, &mock, &again));
    let mut first = command(&place, &mock, &["run", "./tutor", "--args", "one"]);
    assert!(first.env_remove("COG_LOGS_CONTENTS").output().unwrap().status.success());
    snapshot("run_to_continue_has_no_contents", command(&place, &mock, &again));
    let off = command(&place, &mock, &again).env("COG_LOGS_ENABLED", "off").output().unwrap();
    assert_eq!(json(&off)["error"]["code"], "E1006");
    assert!(stderr(&off).contains("runs are not logged"), "{}", stderr(&off));
}

#[test]
fn input_cannot_have_a_history_of_its_own() {
    let (place, mock) = (place(), mock());
    run(&place, &mock, &["run", "./tutor", "--args", "one"]);
    let input = r#"{"query": "two", "_context": {"conversation_history": []}}"#;
    snapshot("two_histories", command(&place, &mock, &["run", "-c", "./tutor", "--input-json", input]));
    snapshot(
        "two_ways_to_continue",
        command(&place, &mock, &["run", "-c", "--continue", "halt_1", "--deny"]),
    );
}
