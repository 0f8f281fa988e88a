use crate::support::{Place, json, settings, snapshot, transcript};

/// A history with a violation of most rules.
const BAD: &str = r#"[
  {"id": "m1", "role": "developer", "content": "Be brief."},
  {"id": "m1", "role": "user", "content": [
    {"type": "text", "text": "a\u0000b"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
    {"type": "video"}]},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"q": 1}}},
    {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{\"q\": [1, 2"}}]},
  {"role": "user", "content": "?"},
  {"role": "tool", "tool_call_id": "a", "content": "1"},
  {"role": "tool", "tool_call_id": "z", "content": "2"}
]"#;

#[test]
fn verify_lists_every_violation() {
    let place = Place::new();
    place.write("h.json", BAD);
    snapshot!(place.cog(["verify", "h.json", "--kind", "messages", "--format", "human"]));
}

#[test]
fn verify_knows_what_a_model_accepts() {
    let place = Place::new();
    let audio = r#"{"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}"#;
    place.write("h.json", format!(r#"[{{"role": "user", "content": [{audio}]}}]"#));
    snapshot!(place.cog(["verify", "h.json", "--model", "anthropic/claude-sonnet-5-5"]));
}

#[test]
fn fix_reports_changes_and_what_is_left() {
    let place = Place::new();
    place.write("h.json", BAD);
    snapshot!(place.cog(["messages", "fix", "h.json"]));
}

#[test]
fn fix_writes_a_report() {
    let place = Place::new();
    let history =
        r#"[{"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "user", "content": "?"}]"#;
    place.write("h.json", history);
    snapshot!(place.cog(["messages", "fix", "h.json", "--report", "r.json", "-o", "f.json"]));
    let report: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(report["changes"][0]["rule"], "result-unknown");
    let fixed = place.read("f.json");
    let again = place.cog(["messages", "fix", "f.json"]).output().unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), fixed);
}

#[test]
fn fix_needs_messages() {
    let place = Place::new();
    place.write("h.json", r#"{"a": 1}"#);
    snapshot!(place.cog(["messages", "fix", "h.json"]));
}

/// A history with what only some formats can hold.
const RICH: &str = r#"[
  {"role": "system", "content": "Be brief."},
  {"role": "user", "id": "m1", "content": [
    {"type": "text", "text": "What is on it?"},
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low", "rotation": 90}}]},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"q\": 1}"}, "signature": "c2ln"}]},
  {"role": "tool", "tool_call_id": "a", "content": "{\"status\":\"error\",\"error_type\":\"X\",\"message\":\"y\"}"},
  {"role": "assistant", "content": "Done."}
]"#;

#[test]
fn convert_writes_the_format_and_lists_losses() {
    let place = Place::new();
    place.write("h.json", RICH);
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "harmony"] {
        let name = format!("convert_to_{format}");
        let transcript = transcript(place.cog(["messages", "convert", "h.json", "--to", format]));
        settings().bind(|| insta::assert_snapshot!(name, transcript));
    }
}

#[test]
fn strict_conversion_fails_if_anything_is_lost() {
    let place = Place::new();
    place.write("h.json", RICH);
    let args =
        ["messages", "convert", "h.json", "--to", "gemini", "--strict", "--report", "r.json", "-o", "o.json"];
    let output = place.cog(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path().join("o.json").exists());
    let report: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(report["losses"][0]["path"], "messages[1].id");
}

#[test]
fn convert_reports_why_a_history_cannot_be_read() {
    let place = Place::new();
    place.write("h.json", r#"{"system": "x", "messages": [{"role": "model"}, {"role": "user"}]}"#);
    snapshot!(place.cog(["messages", "convert", "h.json", "--to", "harmony"]));
}

/// The message of the exercise in the documentation.
#[test]
fn video_frames_of_the_documentation_are_valid() {
    let page = include_str!("../../../../docs/messages.md");
    let (_, example) = page.split_once("<!-- example: video-frames.json -->\n```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let place = Place::new();
    place.write("h.json", format!("[{example}]"));
    let verdict = json(&place.cog(["verify", "h.json", "--kind", "messages"]).output().unwrap());
    assert_eq!(verdict, serde_json::json!({ "valid": true, "kind": "messages", "violations": [] }));
    let message: serde_json::Value = serde_json::from_str(example).unwrap();
    let frames = message["content"].as_array().unwrap().iter().filter(|part| part["type"] == "image_url");
    let times: Vec<f64> =
        frames.map(|frame| frame["video_metadata"]["timestamp_sec"].as_f64().unwrap()).collect();
    assert_eq!(times, [10.0, 11.25, 12.5, 13.75, 15.0]);
}

#[test]
fn documentation_lists_every_rule() {
    let page = include_str!("../../../../docs/messages.md");
    for rule in cog_harmony::rules::RULES {
        let severity = if rule.is_error() { "error" } else { "warning" };
        let row = format!("| `{}` | {severity} | {} |\n", rule.name, rule.requires);
        assert!(page.contains(&row), "{row}");
    }
}
