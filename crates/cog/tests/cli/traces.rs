use cog_testkit::{Mock, Reply};
use serde_json::Value;

use crate::support::{Place, json, stderr, stdout, with_stdin};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

/// Returns a place with a module.
fn place() -> Place {
    let place = Place::new();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n";
    place.write("m/module.yaml", manifest);
    place.write("m/prompt.md", "Answer this: $ARGUMENTS\n");
    place.write(
        "m/schema.json",
        r#"{"input": {"type": "object", "properties": {"query": {"type": "string"}}},
            "data": {"type": "object", "required": ["result", "rationale"],
            "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#,
    );
    place
}

fn messages(place: &Place) -> Vec<Value> {
    serde_json::from_str(&place.read("trace.json")).unwrap()
}

#[test]
fn trace_of_a_run_is_valid_and_contains_no_key() {
    let (place, mock) = (place(), Mock::start([Reply::text(ANSWER)]));
    let mut command = place.cog(["run", "m", "--args", "secret-key-123456 is here", "--trace", "trace.json"]);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "secret-key-123456");
    command.env("OPENAI_BASE_URL", mock.base_url(cog_testkit::Wire::OpenAi));
    let envelope = json(&command.output().unwrap());
    assert_eq!(envelope["ok"], true, "{envelope}");
    let messages = messages(&place);
    assert_eq!(messages.last().unwrap()["role"], "assistant");
    assert!(messages.iter().all(|message| message["metadata"]["session_id"].is_string()));
    let tokens = &messages.last().unwrap()["metadata"]["token_usage"];
    assert_eq!(tokens["prompt_tokens"], envelope["meta"]["usage"]["input_tokens"]);
    assert!(!place.read("trace.json").contains("secret-key-123456"));
    let verdict = json(&place.cog(["verify", "trace.json", "--kind", "messages"]).output().unwrap());
    assert_eq!(verdict["valid"], true, "{verdict}");
}

#[cfg(unix)]
#[test]
fn trace_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = place();
    let run = ["run", "m", "--args", "x", "--provider", "offline", "--trace", "trace.json"];
    assert!(place.cog(run).output().unwrap().status.success());
    let mode = std::fs::metadata(place.path().join("trace.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A run with two tools: one is halted. The cost of the last reply is unknown, and the texts are hostile.
const TRACE: &str = include_str!("traces/tools.json");

/// Compares the transcript with the snapshot, with all times: they are those of the file.
fn snapshot_of(name: &str, command: &mut std::process::Command) {
    snapshot_text(name, &crate::support::transcript(command));
}

fn snapshot_text(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn trace_is_shown_as_text() {
    let place = Place::new();
    place.write("t.json", TRACE);
    snapshot_of("trace_as_text", &mut place.cog(["trace", "show", "t.json"]));
}

#[test]
fn trace_is_shown_as_json() {
    let place = Place::new();
    place.write("t.json", TRACE);
    snapshot_of("trace_as_json", &mut place.cog(["trace", "show", "t.json", "--format", "json"]));
}

#[test]
fn trace_is_shown_as_a_page_that_loads_nothing() {
    let place = Place::new();
    place.write("t.json", TRACE);
    let args = ["trace", "show", "t.json", "--format", "html", "-o", "t.html"];
    assert!(place.cog(args).output().unwrap().status.success());
    let page = place.read("t.html");
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.add_filter(r"(?s)<style>.*</style>", "<style>…</style>");
    settings.bind(|| insta::assert_snapshot!("trace_as_html", page));
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("src="), "{page}");
}

#[test]
fn trace_without_metadata_has_unknown_figures() {
    let place = Place::new();
    let history = r#"[{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]"#;
    let output = with_stdin(place.cog(["trace", "show", "-"]), history);
    snapshot_text("trace_without_metadata", &stdout(&output));
}

#[test]
fn other_file_is_an_error() {
    let place = Place::new();
    place.write("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").write("envelope.json", r#"{"ok": true}"#);
    place.write("role.json", r#"[{"role": "robot", "content": "Hi."}]"#);
    for (name, file) in [
        ("trace_of_an_image", "image.png"),
        ("trace_of_an_envelope", "envelope.json"),
        ("trace_of_another_role", "role.json"),
        ("trace_of_no_file", "missing.json"),
    ] {
        snapshot_of(name, &mut place.cog(["trace", "show", file]));
    }
}

#[test]
fn trace_of_many_messages_is_shown() {
    let place = Place::new();
    let message =
        r#"{"role": "assistant", "content": "a", "created_at": 5, "metadata": {"model_version": "m"}}"#;
    place.write("t.jsonl", [message; 100_000].join("\n"));
    let text = place.cog(["trace", "show", "t.jsonl"]).output().unwrap();
    assert!(text.status.success(), "{}", stderr(&text));
    assert_eq!(stdout(&text).lines().filter(|line| line.contains("assistant m")).count(), 100_000);
}
