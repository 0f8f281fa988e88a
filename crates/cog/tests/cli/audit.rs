//! The log of each access to context.

use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::Value;

use crate::support::{Place, stderr};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null,
    "_emitted_context": {"session_state": {"step": 7, "password": "canary"}}}"#;

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

fn module(place: &Place, name: &str, manifest: &str) {
    let head = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: []\n{manifest}\n"
    );
    let path = format!("cognitive/modules/{name}");
    place.write(&format!("{path}/module.yaml"), head).write(&format!("{path}/schema.json"), SCHEMA);
    if !manifest.contains("composition") {
        place.write(&format!("{path}/prompt.md"), "Answer $ARGUMENTS.\n");
    }
}

fn place() -> (Place, Mock) {
    let place = Place::new();
    module(&place, "builder", "context: {emits: [{type: session_state, ttl: 60}]}");
    module(&place, "reader", "context: {accepts: [{type: session_state, from_module: builder}]}");
    module(
        &place,
        "both",
        "composition:
  requires: [{name: builder}, {name: reader}]
  dataflow:
    - {from: input, to: builder}
    - {from: input, to: reader}
    - {from: reader.output, to: output, mapping: {result: $.data.result, rationale: $.data.rationale}}",
    );
    let plain = ANSWER.split(",\n    \"_emitted").next().unwrap().to_owned() + "}";
    let replies =
        [Reply::text(ANSWER).when(r#""name":"builder""#), Reply::text(plain).when(r#""name":"reader""#)];
    (place, Mock::start(replies))
}

/// Returns the audit lines of a run: `MODULE MESSAGE SOURCE`.
fn audit(place: &Place, mock: &Mock, args: &[&str]) -> Vec<String> {
    let mut command: Command = place.cog(["run"].into_iter().chain(args.iter().copied()));
    command.args(["--args", "why?", "--log-format", "json"]);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let log = stderr(&command.output().unwrap());
    let context = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let context = context.filter(|line| line["target"] == "cog::context");
    let line = |line: Value| {
        assert!(line["bytes"].as_u64().is_some() && !line.to_string().contains("canary"), "{line}");
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {}", text("module"), text("message"), text("name"), text("source"))
    };
    context.map(line).map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn stored_and_read_context_is_logged() {
    let (place, mock) = place();
    let stored = audit(&place, &mock, &["builder", "--state-dir", "state"]);
    assert_eq!(stored, ["builder context stored session_state"]);
    let read = audit(&place, &mock, &["reader", "--state-dir", "state"]);
    assert_eq!(read, ["reader context read session_state store"]);
}

#[test]
fn context_that_parts_share_is_logged() {
    let (place, mock) = place();
    let lines = audit(&place, &mock, &["both"]);
    let has = |line: &str| lines.iter().any(|found| found == line);
    assert!(
        has("builder context shared session_state") && has("builder context shared previous_result"),
        "{lines:?}"
    );
    assert!(has("reader context read session_state composition"), "{lines:?}");
}

#[test]
fn context_that_cannot_be_stored_is_logged_as_such() {
    let (place, mock) = place();
    place.write("state", "a file, not a directory");
    let lines = audit(&place, &mock, &["builder", "--state-dir", "state"]);
    assert_eq!(lines, ["builder context not stored session_state"]);
}
