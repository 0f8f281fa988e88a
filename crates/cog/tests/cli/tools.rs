use std::process::{Command, Output};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json, settings, stderr, transcript};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// Returns a place with a module that may call another one.
fn place() -> Place {
    let place = Place::new();
    for (path, more) in [
        ("cognitive/modules/helper", ""),
        ("m", "policies: { tools_allowed: true }\ntools: { allowed: [helper] }\n"),
    ] {
        let name = path.rsplit('/').next().unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n{more}"
        );
        place.write(&format!("{path}/module.yaml"), manifest);
        place.write(&format!("{path}/prompt.md"), "Answer this: $ARGUMENTS\n");
        place.write(&format!("{path}/schema.json"), SCHEMA);
    }
    place
}

fn calling(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    calling_over(Wire::OpenAi, place, mock, args)
}

fn calling_over(wire: Wire, place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    let (key, base) = match wire.provider() {
        "openai" => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        "anthropic" => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        "gemini" => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
        _ => ("OLLAMA_API_KEY", "OLLAMA_HOST"),
    };
    command.env("LLM_PROVIDER", wire.provider()).env(key, "none").env(base, mock.base_url(wire));
    if let Some(protocol) = wire.protocol_setting() {
        command.env("OPENAI_PROTOCOL", protocol);
    }
    command.env("COG_TOOLS_CONFIRM", "helper");
    command
}

fn run(place: &Place, mock: &Mock, args: &[&str]) -> Output {
    calling(place, mock, args).output().unwrap()
}

/// Returns the mock of a model that calls the tool and then answers.
fn mock() -> Mock {
    let call = Reply::tool_calls([("helper", r#"{"query": "how?"}"#)]);
    Mock::start([call, Reply::text(ANSWER), Reply::text(ANSWER)])
}

fn id_of(output: &Output) -> String {
    json(output)["error"]["details"]["halted"]["id"].as_str().unwrap().to_owned()
}

fn code(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1));
    json(output)["error"]["code"].clone()
}

#[test]
fn run_continues_in_another_process_after_a_confirmation() {
    let (place, mock) = (place(), mock());
    let halted = run(&place, &mock, &["run", "./m", "--args", "why?"]);
    assert_eq!(code(&halted), "E4007");
    let id = id_of(&halted);
    assert!(stderr(&halted).contains(&format!("cog run --continue {id} --confirm YES")));
    assert_eq!(id_of(&run(&place, &mock, &["run", "--continue", &id])), id, "it stays halted");
    let continued = run(&place, &mock, &["run", "--continue", &id, "--confirm", "YES"]);
    assert_eq!(json(&continued)["data"]["result"], "fine", "{}", stderr(&continued));
    assert_eq!(mock.requests().len(), 3);
    assert_eq!(code(&run(&place, &mock, &["run", "--continue", &id, "--confirm", "YES"])), "E4014");
}

#[test]
fn continued_run_hands_over_to_the_agent_of_the_halted_run() {
    let place = place();
    let rationale = r#""rationale": {"type": "string"}}}}"#;
    let handoff = r##""rationale": {"type": "string"}, "handoff": {"$ref": "#/$defs/Handoff"}}}}"##;
    place.write("m/schema.json", SCHEMA.replace(rationale, handoff));
    let packet =
        r#""handoff": {"primary_objective": "Ship it", "constraints": [], "artifacts": []}, "result""#;
    let call = Reply::tool_calls([("helper", r#"{"query": "how?"}"#)]);
    let mock = Mock::start([call, Reply::text(ANSWER), Reply::text(ANSWER.replace(r#""result""#, packet))]);
    let id = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?", "--handoff-to", "coder"]));
    let continued = run(&place, &mock, &["run", "--continue", &id, "--confirm", "YES"]);
    assert_eq!(json(&continued)["_handoff"]["meta"]["target_agent"], "coder", "{}", stderr(&continued));
    assert!(place.read("handoff-coder.json").contains("Ship it"));
}

#[test]
fn run_continues_with_its_model_and_module_in_another_directory() {
    let (place, mock) = (place(), mock());
    let halted = run(&place, &mock, &["run", "./m", "--args", "why?", "--model", "gpt-4.1-mini"]);
    let id = id_of(&halted);
    let mut elsewhere = calling(&place, &mock, &["run", "--continue", &id, "--confirm", "YES"]);
    elsewhere
        .current_dir(place.path().join("m"))
        .env("COGNITIVE_MODULES_PATH", place.path().join("cognitive/modules"));
    let continued = elsewhere.output().unwrap();
    assert_eq!(json(&continued)["data"]["result"], "fine", "{}", stderr(&continued));
    assert!(stderr(&continued).contains("model gpt-4.1-mini (the earlier run)"), "{}", stderr(&continued));
    assert_eq!(mock.requests().last().unwrap().body["model"], "gpt-4.1-mini");
}

/// Returns the body of the last request.
fn last_request(mock: &Mock) -> String {
    mock.requests().last().unwrap().body.to_string()
}

#[test]
fn run_over_each_protocol_continues_in_another_process() {
    for wire in Wire::ALL {
        let place = place();
        place.write(
            "cognitive/modules/look/module.yaml",
            place.read("cognitive/modules/helper/module.yaml").replace("helper", "look"),
        );
        place.write("cognitive/modules/look/prompt.md", "Look.\n");
        place.write("cognitive/modules/look/schema.json", SCHEMA);
        place.write("m/module.yaml", place.read("m/module.yaml").replace("[helper]", "[helper, look]"));
        let looked = ANSWER.replace("fine", "looked at it");
        let calls = [("look", r#"{"query": "where?"}"#), ("helper", r#"{"query": "how?"}"#)];
        let calls = Reply::tool_calls(calls).reasoning("I need both.");
        let mock = Mock::start([calls, Reply::text(looked), Reply::text(ANSWER), Reply::text(ANSWER)]);
        let halted = calling_over(wire, &place, &mock, &["run", "./m", "--args", "why?"]).output().unwrap();
        let id = id_of(&halted);
        let args = ["run", "--continue", &id, "--confirm", "YES"];
        let continued = calling_over(wire, &place, &mock, &args).output().unwrap();
        assert_eq!(json(&continued)["data"]["result"], "fine", "{wire:?}: {}", stderr(&continued));
        assert_eq!(mock.requests().len(), 4, "{wire:?}");
        let request = last_request(&mock);
        for part in ["looked at it", "Nothing was unclear", "where?", "how?"] {
            assert!(request.contains(part), "{wire:?}: {part}: {request}");
        }
    }
}

#[test]
fn continued_run_is_logged_without_an_input_of_its_own() {
    let (place, mock) = (place(), mock());
    let run = |args: &[&str]| {
        let mut command = calling(&place, &mock, args);
        command.env("COG_LOGS_CONTENTS", "true").output().unwrap()
    };
    let id = id_of(&run(&["run", "./m", "--args", "why?"]));
    assert!(run(&["run", "--continue", &id, "--confirm", "YES"]).status.success());
    let replayed = run(&["logs", "replay"]);
    assert!(stderr(&replayed).contains("is not stored"), "{}", stderr(&replayed));
}

#[test]
fn denied_call_is_reported_to_the_model() {
    let (place, mock) = (place(), mock());
    let id = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?"]));
    let continued = run(&place, &mock, &["run", "./m", "--continue", &id, "--deny"]);
    assert!(continued.status.success(), "{}", stderr(&continued));
    let messages = mock.requests()[1].body["messages"].clone();
    let content = messages[3]["content"].as_str().unwrap();
    assert!(content.contains("the user denied this call"), "{content}");
}

/// Continues a run in a process whose settings require no confirmation.
fn proceed(place: &Place, mock: &Mock, id: &str, decision: &[&str]) -> Output {
    let args = [&["run", "--continue", id][..], decision].concat();
    calling(place, mock, &args).env_remove("COG_TOOLS_CONFIRM").output().unwrap()
}

#[test]
fn denied_call_is_not_executed_under_settings_that_require_no_confirmation() {
    let (place, mock) = (place(), mock());
    let id = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?"]));
    let continued = proceed(&place, &mock, &id, &["--deny"]);
    assert!(continued.status.success(), "{}", stderr(&continued));
    assert_eq!(mock.requests().len(), 2, "the helper has no request");
    assert!(last_request(&mock).contains("the user denied this call"), "{}", last_request(&mock));
}

#[test]
fn denied_call_that_the_model_repeats_is_halted_again() {
    let call = || Reply::tool_calls([("helper", r#"{"query": "how?"}"#)]);
    let (place, mock) = (place(), Mock::start([call(), call(), Reply::text(ANSWER)]));
    let first = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?"]));
    let second = proceed(&place, &mock, &first, &["--deny"]);
    assert_eq!(code(&second), "E4007");
    assert_eq!(mock.requests().len(), 2, "the helper has no request");
    assert!(proceed(&place, &mock, &id_of(&second), &["--deny"]).status.success());
}

#[test]
fn confirmation_of_one_call_leaves_the_other_halted_under_other_settings() {
    let calls = Reply::tool_calls([
        ("helper", r#"{"query": "the first"}"#),
        ("helper", r#"{"query": "the second"}"#),
        ("helper", r#"{"query": "the third"}"#),
    ]);
    let helped = Reply::text(ANSWER);
    let (place, mock) = (place(), Mock::start([calls, helped.clone(), helped, Reply::text(ANSWER)]));
    let first = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?"]));
    let second = proceed(&place, &mock, &first, &["--confirm", "YES"]);
    assert_eq!(code(&second), "E4007");
    assert_eq!(json(&second)["error"]["details"]["halted"]["arguments"]["query"], "the second");
    assert_eq!(mock.requests().len(), 2);
    assert!(last_request(&mock).contains("the first"), "{}", last_request(&mock));
    let third = proceed(&place, &mock, &id_of(&second), &["--deny"]);
    assert_eq!(json(&third)["error"]["details"]["halted"]["arguments"]["query"], "the third");
    assert_eq!(mock.requests().len(), 2, "the second call was denied");
    let end = proceed(&place, &mock, &id_of(&third), &["--confirm", "YES"]);
    assert_eq!(json(&end)["data"]["result"], "fine", "{}", stderr(&end));
    assert_eq!(mock.requests().len(), 4);
}

/// The SHA-256 of `{"query": "how?"}`.
const ARGUMENTS_SHA256: &str = "d270ffc522f016ede7f9b690a639f68f2d2790e86322e4e8c1217ad4af19b197";

#[test]
fn calls_and_decisions_are_lines_of_the_log_without_contents() {
    for (decision, name, status) in
        [(&["--confirm", "YES"][..], "confirmed", "success"), (&["--deny"], "denied", "E4007")]
    {
        let (place, mock) = (place(), mock());
        let halted = run(&place, &mock, &["run", "./m", "--args", "why?", "-v"]);
        let line = |output: &Output, status: &str| {
            let text = stderr(output);
            let line = text.lines().find(|line| line.contains("tool called") && line.contains("helper"));
            let line = line.unwrap_or_else(|| panic!("{text}")).to_owned();
            let hash = format!("arguments_sha256=\"{ARGUMENTS_SHA256}\"");
            assert!(line.contains(&hash) && line.contains(&format!("status=\"{status}\"")), "{line}");
            assert!(!line.contains("how?"), "{line}");
            line
        };
        assert!(!line(&halted, "halted").contains("decision"), "nobody has decided");
        let id = id_of(&halted);
        let args = [&["run", "--continue", &id, "-v"], decision].concat();
        let continued = run(&place, &mock, &args);
        let continued = line(&continued, status);
        assert!(continued.contains(&format!("decision=\"{name}\"")), "{continued}");
    }
}

#[test]
fn calls_and_decisions_are_in_the_log_of_runs() {
    for has_contents in [false, true] {
        let (place, mock) = (place(), mock());
        let run = |args: &[&str]| {
            let mut command = calling(&place, &mock, args);
            command.env("COG_LOGS_CONTENTS", has_contents.to_string()).output().unwrap()
        };
        let id = id_of(&run(&["run", "./m", "--args", "why?"]));
        assert!(run(&["run", "--continue", &id, "--deny"]).status.success());
        let entries = json(&place.cog(["logs", "--format", "json"]).output().unwrap());
        let mut calls = [&entries[1]["calls"][0], &entries[0]["calls"][0]].map(Value::clone);
        for call in &mut calls {
            let time = call.as_object_mut().unwrap().remove("time").unwrap();
            assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
        }
        let mut halted = json!({
            "tool": "helper", "id": calls[0]["id"], "result": "halted", "arguments_sha256": ARGUMENTS_SHA256
        });
        let mut denied = json!({
            "tool": "helper", "id": calls[0]["id"], "result": "E4007", "decision": "denied",
            "arguments_sha256": ARGUMENTS_SHA256
        });
        if has_contents {
            halted["arguments"] = json!(r#"{"query": "how?"}"#);
            denied["arguments"] = json!(r#"{"query": "how?"}"#);
        }
        assert_eq!(calls, [halted, denied]);
        let shown = crate::support::stdout(&place.cog(["logs", "show"]).output().unwrap());
        let arguments = match has_contents {
            true => r#"{"query": "how?"}"#.to_owned(),
            false => format!("arguments sha256:{ARGUMENTS_SHA256}"),
        };
        assert!(shown.contains(&format!("  helper  E4007 (denied)  {arguments}\n")), "{shown}");
    }
}

#[test]
fn changed_module_is_refused_with_what_changed() {
    let (place, mock) = (place(), mock());
    let id = id_of(&run(&place, &mock, &["run", "./m", "--args", "why?"]));
    place.write("m/prompt.md", "Something different: $ARGUMENTS\n");
    let refused = run(&place, &mock, &["run", "--continue", &id, "--confirm", "YES"]);
    assert_eq!(code(&refused), "E4014");
    assert_eq!(json(&refused)["error"]["details"]["changed"], json!(["prompt"]));
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn stream_of_a_halted_run_ends_with_the_error() {
    let (place, mock) = (place(), mock());
    place.write("m/module.yaml", place.read("m/module.yaml") + "response: { mode: both }\n");
    let halted = run(&place, &mock, &["run", "./m", "--args", "why?", "--stream"]);
    let chunks = crate::support::stdout(&halted);
    let chunks: Vec<Value> = chunks.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(chunks.last().unwrap()["error"]["details"]["halted"]["tool"], "helper");
    let stages: Vec<_> = chunks.iter().filter_map(|chunk| chunk.get("progress")).collect();
    assert_eq!(stages.len(), 1, "{chunks:?}");
    assert_eq!((&stages[0]["stage"], &stages[0]["tool"]), (&json!("tool_result"), &json!("helper")));
}

/// A server on standard input and output, whose tool returns whether its arguments are those of [`NUMBERS`].
const SERVER: &str = r#"
PATH=/usr/bin:/bin
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}' ;;
    *'"arguments":{"acct":12345678901234567890123,"amount":100.00}'*) result='{"content":[],"structuredContent":{"exact":98765432109876543210987,"paid":[1.50]}}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"changed"}]}' ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const NUMBERS: &str = r#"{"acct":12345678901234567890123,"amount":100.00}"#;

/// Returns a place whose module may call the tool of a server.
#[cfg(unix)]
fn bank() -> Place {
    let place = place();
    place.write("server.sh", SERVER);
    let script = place.path().join("server.sh");
    let settings = format!("[mcp.bank]\ncommand = \"/bin/sh\"\nargs = [{script:?}]\n");
    place.write(".config/cog/config.toml", settings);
    let manifest = place
        .read("m/module.yaml")
        .replace("tools_allowed: true", "tools_allowed: true, side_effects: allow");
    place.write("m/module.yaml", manifest.replace("[helper]", "[bank__pay]"));
    place
}

#[cfg(unix)]
#[test]
fn render_and_test_offer_the_tools_of_servers() {
    let place = bank();
    let mock = Mock::start([Reply::text(ANSWER)]);
    let rendered = run(&place, &mock, &["render", "./m", "--args", "why?"]);
    assert!(json(&rendered)["request"].to_string().contains("bank__pay"), "{}", stderr(&rendered));
    assert_eq!(mock.requests().len(), 0);
    place.write("m/tests/one.input.json", r#"{"query": "why?"}"#);
    let expected = r#"{"result": "fine", "rationale": "Nothing was unclear."}"#;
    place.write("m/tests/one.expected.json", expected);
    let tested = run(&place, &mock, &["test", "./m", "--provider", "openai"]);
    assert!(tested.status.success(), "{}", stderr(&tested));
    assert!(last_request(&mock).contains("bank__pay"));
}

#[cfg(unix)]
#[test]
fn numbers_reach_a_server_and_the_model_as_they_were_written() {
    let place = bank();
    let mock = Mock::start([Reply::tool_calls([("bank__pay", NUMBERS)]), Reply::text(ANSWER)]);
    let output = run(&place, &mock, &["run", "./m", "--args", "why?"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let result = last_request(&mock);
    let expected = r#"{\"status\":\"success\",\"exact\":98765432109876543210987,\"paid\":[1.50]}"#;
    assert!(result.contains(expected), "{result}");
}

#[test]
fn unknown_id_is_an_error() {
    let (place, mock) = (place(), mock());
    let mut settings = settings();
    settings.add_filter(r"http://127\.0\.0\.1:\d+", "[MOCK]");
    settings.bind(|| {
        let unknown = calling(&place, &mock, &["run", "--continue", "halt_1", "--deny"]);
        insta::assert_snapshot!("unknown_halted_run", transcript(unknown));
        let alone = calling(&place, &mock, &["run", "./m", "--confirm", "YES"]);
        insta::assert_snapshot!("confirm_requires_continue", transcript(alone));
    });
}
