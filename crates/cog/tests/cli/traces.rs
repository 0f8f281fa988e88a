use cog_testkit::{Mock, Reply};
use serde_json::Value;

use crate::support::{Place, json};

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
