//! `cog handoff`, and packets that a run creates or receives.

use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{self, Place, json as parsed, stderr, with_stdin};

/// Compares a command with its snapshot. Times and hashes, which differ from run to run, are replaced.
macro_rules! packet_snapshot {
    ($command:expr) => {{
        let mut settings = support::settings();
        settings.add_filter(r"sha256:[0-9a-f]{64}", "sha256:[HASH]");
        settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[TIMESTAMP]");
        settings.bind(|| insta::assert_snapshot!(support::transcript($command)));
    }};
}

fn example() -> Value {
    json!({
        "protocol": "harmony_handoff_v1",
        "meta": { "source_agent": "planner", "target_agent": "coder", "timestamp": "2024-03-20T10:00:00Z" },
        "context": {
            "primary_objective": "Build a snake game in Python", "status": "in_progress",
            "completed_steps": ["requirements", "choice of Pygame"], "next_immediate_step": "write the game loop",
            "constraints": ["detailed comments", "black background"],
            "artifacts": { "design_doc": "s3://bucket/spec.md", "mockup": { "url": "https://example.com/mockup.png" } },
        },
        "history_summary": "The user first wanted 3D; 2D was agreed.",
    })
}

fn run(place: &Place, args: &[&str]) {
    let output = place.cog(args.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
}

/// A directory with `p1.json` and `p2.json`, which follows it.
fn chain() -> Place {
    let place = Place::new();
    let objective = "Build a snake game";
    run(
        &place,
        &[
            "handoff",
            "new",
            "--from",
            "planner",
            "--to",
            "coder",
            "--objective",
            objective,
            "--constraint",
            "no floats",
            "-o",
            "p1.json",
        ],
    );
    run(
        &place,
        &["handoff", "new", "--parent", "p1.json", "--to", "tester", "--done", "game loop", "-o", "p2.json"],
    );
    place
}

/// Replaces a text in a file.
fn change(place: &Place, file: &str, from: &str, to: &str) {
    let text = place.read(file);
    assert!(text.contains(from), "{text}");
    place.write(file, text.replace(from, to));
}

#[test]
fn first_packet_of_a_chain() {
    let args = [
        "handoff",
        "new",
        "--from",
        "planner",
        "--to",
        "coder",
        "--objective",
        "Build a snake game",
        "--next",
        "write the game loop",
        "--artifact",
        "design_doc=spec.md",
        "--pretty",
    ];
    packet_snapshot!(Place::new().cog(args));
}

#[test]
fn next_packet_follows_its_parent() {
    let place = chain();
    packet_snapshot!(place.cog(["handoff", "new", "--parent", "p1.json", "--to", "tester", "--pretty"]));
}

#[test]
fn changed_objective_creates_no_packet() {
    let place = chain();
    packet_snapshot!(place.cog([
        "handoff",
        "new",
        "--parent",
        "p1.json",
        "--to",
        "tester",
        "--objective",
        "Build a chess game",
    ]));
}

#[test]
fn answer_without_handoff_creates_no_packet() {
    let place = Place::new();
    place.write("plan.json", r#"{"ok": true, "meta": {}, "data": {"steps": []}}"#);
    packet_snapshot!(place.cog(["handoff", "new", "--answer", "plan.json", "--from", "a", "--to", "b"]));
}

#[test]
fn losses_are_listed() {
    let place = Place::new();
    let history = json!([
        { "role": "user", "content": [{ "type": "text", "text": "Look at this" },
            { "type": "image_url", "image_url": { "url": "https://example.com/a.png?sig=secret" } }] },
        { "role": "assistant", "content": null,
            "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "search", "arguments": "{}" } }] },
    ]);
    place.write("history.json", history.to_string());
    packet_snapshot!(place.cog([
        "handoff",
        "new",
        "--from",
        "a",
        "--to",
        "b",
        "--objective",
        "Build it",
        "--history",
        "history.json",
        "--strict",
    ]));
}

#[test]
fn chain_is_checked() {
    let place = chain();
    packet_snapshot!(place.cog(["handoff", "check", "p2.json", "--chain", "p1.json", "--format", "human"]));
}

#[test]
fn changed_packet_is_reported() {
    let place = chain();
    change(&place, "p2.json", "snake", "chess");
    packet_snapshot!(place.cog(["handoff", "check", "p2.json", "--chain", "p1.json"]));
}

#[test]
fn missing_packet_and_artifacts_are_reported() {
    let place = chain();
    run(
        &place,
        &[
            "handoff",
            "new",
            "--parent",
            "p2.json",
            "--to",
            "d",
            "--artifact",
            "code=gone.py",
            "-o",
            "p3.json",
        ],
    );
    packet_snapshot!(place.cog(["handoff", "check", "p3.json", "--chain", "p2.json", "--format", "human"]));
}

#[test]
fn receiver_gets_messages() {
    let place = Place::new();
    place.write("p.json", example().to_string());
    packet_snapshot!(place.cog(["handoff", "apply", "p.json", "--as", "coder", "--pretty"]));
}

#[test]
fn other_agent_gets_no_messages() {
    let place = Place::new();
    place.write("p.json", example().to_string());
    packet_snapshot!(place.cog(["handoff", "apply", "p.json", "--as", "tester"]));
}

#[test]
fn packet_is_shown_as_text() {
    let place = Place::new();
    place.write("p.json", example().to_string());
    packet_snapshot!(place.cog(["handoff", "show", "p.json"]));
}

#[test]
fn invalid_packet_is_not_shown() {
    let place = Place::new();
    place
        .write("p.json", r#"{"protocol": "harmony_handoff_v1", "meta": {"timestamp": "now"}, "context": 1}"#);
    packet_snapshot!(place.cog(["handoff", "show", "p.json"]));
}

/// `cog` with a model that sends this answer.
fn with_model<'a>(place: &Place, mock: &Mock, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = place.cog(args);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command.env("LLM_MODEL", "m");
    command
}

fn reply(data: &Value) -> Reply {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "x" });
    Reply::text(json!({ "ok": true, "meta": meta, "data": data, "error": null }).to_string())
}

fn golden(module: &str) -> Value {
    let text = match module {
        "planner" => include_str!("../../../../modules/planner/tests/case1.expected.json"),
        _ => include_str!("../../../../modules/coder/tests/case1.expected.json"),
    };
    serde_json::from_str::<Value>(text).unwrap()["$example"]["data"].clone()
}

#[test]
fn run_hands_over_through_a_file() {
    let place = Place::new();
    let query = "Build a snake game in Python that runs in the terminal";
    let output = place.cog(["run", "planner", "--args", query, "--handoff-to", "coder"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("the handoff packet is in handoff-coder.json"), "{}", stderr(&output));
    let packet: Value = serde_json::from_str(&place.read("handoff-coder.json")).unwrap();
    assert_eq!(packet, parsed(&output)["_handoff"]);
    assert_eq!(packet["meta"]["source_agent"], "planner");
    run(&place, &["handoff", "check", "handoff-coder.json", "--strict"]);
    run(&place, &["verify", "handoff-coder.json"]);
}

#[test]
fn packet_is_in_the_user_message_only() {
    let place = chain();
    let mock = Mock::start([reply(&golden("coder"))]);
    let output =
        with_model(&place, &mock, ["run", "coder", "p1.json", "--max-attempts", "1"]).output().unwrap();
    // The golden answer drops the constraint of this packet.
    assert_eq!(parsed(&output)["error"]["details"]["violations"][0]["path"], "data.handoff.constraints");
    let messages = &mock.requests()[0].body["messages"].clone();
    let of = |role: &str| {
        let messages = messages.as_array().unwrap().iter().filter(|message| message["role"] == role);
        messages.map(|message| message["content"].to_string()).collect::<String>()
    };
    assert!(of("user").contains("Build a snake game") && of("user").contains("no floats"));
    assert!(!of("system").contains("Build a snake game") && !of("system").contains("no floats"));
}

/// Runs `coder` with a packet that has these artifacts. Returns the envelope and the texts that the model receives.
fn coded(place: &Place, artifacts: &Value) -> (Value, String) {
    let mut packet = example();
    packet["context"]["artifacts"] = artifacts.clone();
    packet["context"]["constraints"] = json!([]);
    place.write("p.json", packet.to_string());
    let mut data = golden("coder");
    data.as_object_mut().unwrap().remove("handoff");
    let mock = Mock::start([reply(&data)]);
    let output = with_model(place, &mock, ["run", "coder", "p.json"]).output().unwrap();
    let sent = mock.requests().first().map(|request| request.body["messages"].to_string());
    (parsed(&output), sent.unwrap_or_default())
}

#[test]
fn text_artifacts_reach_the_module() {
    let place = Place::new();
    place.write("guide/style.md", "Use four spaces.").write("conf.json", "{\"port\": 80}");
    place.write(".env", "KEY=canary-env").write("a.bin", b"\xff\0").write("assets/a.txt", "canary-asset");
    place.write("big.txt", "x".repeat((256 << 10) + 1));
    let artifacts = json!({
        "style": "guide/style.md", "conf": { "path": "conf.json", "media_type": "application/json" },
        "gone": "gone.md", "env": ".env", "binary": "a.bin", "big": "big.txt", "assets": "./assets/",
        "outside": "/etc/hostname", "bucket": "s3://bucket/spec.md",
    });
    let (envelope, sent) = coded(&place, &artifacts);
    assert_eq!(envelope["ok"], true, "{envelope}");
    for text in ["[artifact style: guide/style.md]\\nUse four spaces.", "[artifact conf: conf.json]\\n{"] {
        assert!(sent.contains(text), "{text} in {sent}");
    }
    assert!(!sent.contains("canary"), "{sent}");
    let warnings = envelope["_warnings"].as_array().unwrap();
    let found: Vec<_> = warnings.iter().map(|warning| warning["message"].as_str().unwrap()).collect();
    for (name, why) in [
        ("gone", "not found"),
        ("env", "hidden file"),
        ("binary", "not text in UTF-8"),
        ("big", "262144 bytes"),
        ("outside", ""),
    ] {
        let path = format!("input.context.artifacts.{name} was not read");
        let is_listed = found.iter().any(|message| message.starts_with(&path) && message.contains(why));
        assert!(is_listed, "{name} in {found:?}");
    }
    assert_eq!(warnings.len(), 5, "{found:?}");
    assert!(warnings.iter().all(|warning| warning["code"] == "W4023"), "{found:?}");
    assert_eq!(envelope["meta"]["media_processed"], Value::Null);
}

#[test]
fn at_most_twenty_text_artifacts_are_read() {
    let place = Place::new();
    let files = (0..22).map(|number| (format!("f{number:02}"), format!("f{number:02}.md")));
    let artifacts: serde_json::Map<_, _> = files
        .map(|(name, file)| {
            place.write(&file, "text");
            (name, Value::from(file))
        })
        .collect();
    let (envelope, sent) = coded(&place, &Value::Object(artifacts));
    assert_eq!(sent.matches("[artifact f").count(), 20, "{sent}");
    let warnings = envelope["_warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for (warning, name) in warnings.iter().zip(["f20", "f21"]) {
        let message = warning["message"].as_str().unwrap();
        assert!(message.contains(name) && message.contains("at most 20 text files are read"), "{message}");
    }
}

#[test]
fn text_artifact_that_differs_from_its_hash_is_an_error() {
    let place = Place::new();
    place.write("a.md", "changed");
    let artifact = json!({ "a": { "path": "a.md", "sha256": "0".repeat(64) } });
    let (envelope, sent) = coded(&place, &artifact);
    assert_eq!(envelope["error"]["code"], "E1020", "{envelope}");
    assert!(
        envelope["error"]["message"].as_str().unwrap().contains("input.context.artifacts.a"),
        "{envelope}"
    );
    assert_eq!(sent, "");
}

#[test]
fn changed_packet_is_not_run() {
    let place = chain();
    change(&place, "p1.json", "snake", "chess");
    packet_snapshot!(place.cog(["run", "coder", "p1.json"]));
}

#[test]
fn invalid_packet_is_not_run() {
    let packet = r#"{"protocol": "harmony_handoff_v1", "meta": {"source_agent": "a", "target_agent": " ",
        "timestamp": "2024-03-20T10:00:00Z"}, "context": {"primary_objective": "x", "constraints": [1]}}"#;
    packet_snapshot!(Place::new().cog(["run", "coder", "--input-json", packet]));
}

#[test]
fn module_without_handoff_does_not_hand_over() {
    packet_snapshot!(Place::new().cog(["run", "code-reviewer", "--args", "x = 1", "--handoff-to", "coder"]));
}

#[test]
fn text_is_not_a_packet() {
    packet_snapshot!(Place::new().cog(["run", "coder", "--args", "Build a snake game"]));
}

#[test]
fn packet_is_read_from_stdin() {
    let place = chain();
    for args in [&["run", "coder", "-"][..], &["run", "coder"]] {
        let output = with_stdin(place.cog(args.iter().copied()), &place.read("p1.json"));
        assert_eq!(parsed(&output)["ok"], true, "{}", stderr(&output));
    }
}

/// Runs a line of a shell with `cog` in its path, without a provider.
#[cfg(unix)]
fn shell(place: &Place, line: &str) -> std::process::Output {
    let cog = std::path::Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = std::env::join_paths([cog, "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(place.path()).env_clear().env("HOME", place.path());
    shell.env("PATH", path).env("COG_DETECT_OLLAMA", "off").output().unwrap()
}

#[cfg(unix)]
#[test]
fn example_of_the_documentation_runs() {
    let page = include_str!("../../../../docs/handoff.md");
    let (_, example) = page.split_once("<!-- example: planner-to-coder -->\n```console\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let place = Place::new();
    let mut refused = 0;
    for line in example.lines() {
        let command = line.strip_prefix("$ ").unwrap();
        let (command, remark) = command.split_once("   # ").unwrap_or((command, ""));
        let output = shell(&place, command);
        let is_refused = remark.starts_with("refused: E1001");
        refused += u32::from(is_refused);
        assert_eq!(output.status.code(), Some(i32::from(is_refused)), "{command}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("E1001"), is_refused, "{command}: {}", stderr(&output));
    }
    assert_eq!(refused, 1);
}
