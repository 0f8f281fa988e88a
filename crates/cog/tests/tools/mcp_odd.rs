//! Modules that call tools of servers that do what servers should not do.

#![expect(clippy::disallowed_methods, reason = "modules and settings that are written here")]

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::{ANSWER, SCHEMA, python, script};

/// The settings of a server in this mode.
fn server(name: &str, mode: &str, more: &str) -> String {
    let (command, script) = (json!(python()), json!(script("mcp_odd.py")));
    format!("[mcp.{name}]\ncommand = {command}\nargs = [{script}, \"{mode}\"]\n{more}\n")
}

/// Creates a module that may call every tool, and the settings.
fn place(settings: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
         policies: { tools_allowed: true, side_effects: allow }\ntools: { policy: allow_by_default }\n",
    );
    write("m/prompt.md", "Answer this: $ARGUMENTS\n");
    write("m/schema.json", SCHEMA);
    write("home/.config/cog/config.toml", settings);
    place
}

fn cog(place: &TempDir, mock: &Mock, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
        let name = wire.provider().to_uppercase();
        command.env(format!("{name}_API_KEY"), "k").env(format!("{name}_BASE_URL"), mock.base_url(wire));
    }
    command
        .args(args)
        .current_dir(place.path())
        .env("COG_DETECT_OLLAMA", "off")
        .env("HOME", place.path().join("home"))
        .output()
        .unwrap()
}

const MODELS: [(&str, &str); 3] =
    [("openai", "gpt-4.1"), ("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-pro")];

fn run(place: &TempDir, mock: &Mock, (provider, model): (&str, &str)) -> Value {
    let output =
        cog(place, mock, &["run", "./m", "--provider", provider, "--model", model, "--args", "why?"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let text = serde_json::from_str(&text);
    text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs the module with a model that makes the calls of each round. Returns the envelope and the content of the last results.
fn results(settings: &str, rounds: &[&[(&str, &str)]]) -> (Value, Vec<Value>, Mock) {
    let replies = rounds.iter().map(|calls| Reply::tool_calls(calls.iter().copied()));
    let mock = Mock::start(replies.chain([Reply::text(ANSWER)]));
    let envelope = run(&place(settings), &mock, MODELS[0]);
    assert_eq!(envelope["ok"], true, "{envelope}");
    let requests = mock.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results = results.map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap());
    (envelope, results.collect(), mock)
}

/// Returns the definitions of the tools that a model receives.
fn definitions(settings: &str, model: (&str, &str)) -> (Value, Vec<Value>) {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let envelope = run(&place(settings), &mock, model);
    assert_eq!(envelope["ok"], true, "{envelope}");
    let body = &mock.requests()[0].body;
    let list = match model.0 {
        "gemini" => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    let list = list.as_array().unwrap().iter();
    (envelope, list.map(|tool| tool.get("function").unwrap_or(tool).clone()).collect())
}

#[test]
fn nothing_that_a_caller_may_send_is_lost() {
    for model in MODELS {
        let (_, definitions) = definitions(&server("odd", "schemas", ""), model);
        assert_eq!(definitions.len(), 5, "{definitions:?}");
        let schema = |index: usize| {
            let tool = &definitions[index];
            ["parameters", "input_schema", "parametersJsonSchema"]
                .iter()
                .find_map(|key| tool.get(key))
                .unwrap()
        };
        let headers = &schema(0)["properties"]["headers"];
        assert_eq!(headers["additionalProperties"]["type"], "string", "{} {headers}", model.0);
        let where_ = schema(2).to_string();
        assert!(where_.contains("additionalProperties\":{\"$ref\""), "{} {where_}", model.0);
        assert!(!schema(3).to_string().contains("(?!") && !schema(4).to_string().contains("nope"));
        for index in [0, 2, 4] {
            assert_eq!(definitions[index].get("strict"), None, "{} {index}", model.0);
        }
    }
}

#[test]
fn arguments_are_checked_in_the_draft_of_the_schema() {
    let calls = [
        ("odd__crop", r#"{"box": [1, 2]}"#),
        ("odd__crop", r#"{"box": [1, 2, 3]}"#),
        ("odd__remind", r#"{"at": "P1D", "n": 1}"#),
    ];
    let (_, results, _) = results(&server("odd", "schemas", ""), &[&calls]);
    assert_eq!(results[0]["result"], "ran crop");
    assert_eq!(results[1]["code"], "E1001", "{}", results[1]);
    assert_eq!(results[2]["result"], "ran remind");
}

#[test]
fn strict_tools_stay_within_the_limits_of_the_vendor() {
    let many = |count: &str| server("odd", "many", &format!("env = {{ COUNT = \"{count}\" }}"));
    let (envelope, definitions) = definitions(&many("30"), MODELS[1]);
    let strict = definitions.iter().filter(|tool| tool["strict"] == true).count();
    assert_eq!(strict, 11, "24 optional parameters, of which the answer has one or two");
    let warnings = envelope["_warnings"].to_string();
    assert!(warnings.contains("W4015") && warnings.contains("19 of 30 tools"), "{warnings}");
    let mock = Mock::start([Reply::text(ANSWER)]);
    let refused = run(&place(&many("129")), &mock, MODELS[0]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("129 tools") && message.contains("at most 128"), "{message}");
    assert!(mock.requests().is_empty());
}

#[test]
fn name_that_a_vendor_refuses_is_an_error_before_the_call() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let place = place(&server("7zip", "order", ""));
    let refused = run(&place, &mock, MODELS[2]);
    assert!(refused["error"]["message"].as_str().unwrap().contains("7zip__"), "{refused}");
    assert!(mock.requests().is_empty());
    assert_eq!(run(&place, &mock, MODELS[0])["ok"], true);
}

#[test]
fn results_reach_the_model_complete_and_once() {
    let calls = [
        ("odd__image", "{}"),
        ("odd__mistyped", "{}"),
        ("odd__error", "{}"),
        ("odd__text_too", "{}"),
        ("odd__big", "{}"),
        ("odd__rpc_error", "{}"),
    ];
    let (envelope, results, mock) = results(&server("odd", "values", ""), &[&calls]);
    let body = mock.requests()[1].body.to_string();
    assert_eq!(body.matches("data:image/png;base64,").count(), 2, "each image once, by its content");
    assert_eq!(body.matches("iVBORw0KGgo").count(), 2);
    assert!(results[0].to_string().contains("bytes of base64]"), "{}", results[0]);
    assert!(results[1]["left_out"][0].as_str().unwrap().contains("image/svg+xml"), "{}", results[1]);
    assert!(envelope["_warnings"].to_string().contains("image/svg+xml"), "{}", envelope["_warnings"]);
    let message = results[2]["message"].as_str().unwrap();
    assert!(message.contains("\n  File \"a.py\"\n") && message.ends_with("the reason"), "{message}");
    assert_eq!(results[2]["details"]["code"], "QUOTA");
    assert_eq!(results[3]["text"], "row 3 was skipped");
    assert!(body.contains(r#"\"rows\":12345678901234567890123"#));
    let big = results[4]["result"].as_str().unwrap();
    assert!(
        big.starts_with("first\n") && big.ends_with("\nlast") && big.len() < (1 << 20) + 200,
        "{}",
        big.len()
    );
    assert_eq!(
        (&results[5]["message"], &results[5]["details"]["data"]["hint"]),
        (&json!("bad\nparams"), &json!("use y"))
    );
}

#[test]
fn reply_that_cannot_be_read_ends_its_call_at_once() {
    let calls = [
        ("odd__surrogate", "{}"),
        ("odd__version", "{}"),
        ("odd__batch", "{}"),
        ("odd__huge", "{}"),
        ("odd__fine", "{}"),
    ];
    let (_, results, _) = results(&server("odd", "replies", ""), &[&calls]);
    for (index, expected) in [(0, "hex escape"), (1, "jsonrpc"), (3, "16 MiB")] {
        let message = results[index]["message"].as_str().unwrap_or_else(|| panic!("{}", results[index]));
        assert!(message.contains("cannot be read") && message.contains(expected), "{message}");
    }
    assert_eq!((&results[2]["result"], &results[4]["result"]), (&json!("in a batch"), &json!("ran fine")));
}

#[test]
fn calls_that_change_something_run_in_the_order_of_the_model() {
    let calls = [
        ("odd__append", r#"{"x": "first", "delay": 0.3}"#),
        ("odd__append", r#"{"x": "second"}"#),
        ("odd__show", "{}"),
    ];
    let (_, results, _) = results(&server("odd", "order", ""), &[&calls]);
    assert_eq!(results[2]["result"], "first second");
}

#[test]
fn tools_that_appear_during_a_run_can_be_called() {
    let rounds: [&[(&str, &str)]; 2] = [&[("odd__grow", "{}")], &[("odd__new", "{}"), ("odd__old", "{}")]];
    let (_, results, mock) = results(&server("odd", "changing", ""), &rounds);
    let offered = mock.requests()[1].body["tools"].to_string();
    assert!(offered.contains("odd__new") && !offered.contains("odd__old"), "{offered}");
    assert_eq!(results[1]["result"], "ran new");
    assert_eq!(results[2]["code"], "E1006");
}

#[test]
fn tool_that_is_gone_between_the_list_and_the_call_is_no_longer_offered() {
    let (_, results, mock) = results(&server("odd", "vanishing", ""), &[&[("odd__gone", "{}")]]);
    assert_eq!(results[0]["message"], "Unknown tool: gone", "{}", results[0]);
    let requests = mock.requests();
    let offered = |number: usize| requests[number].body["tools"].to_string();
    assert!(offered(0).contains("odd__gone"), "{}", offered(0));
    assert!(offered(1).contains("odd__stays") && !offered(1).contains("odd__gone"), "{}", offered(1));
}

#[test]
fn servers_that_do_not_know_the_current_revision_are_used() {
    for mode in ["crash", "mute"] {
        for more in ["", "protocol = \"initialize\""] {
            let (_, results, _) = results(&server("odd", mode, more), &[&[("odd__a", "{}")]]);
            assert_eq!(results[0]["result"], "ran a", "{mode} {more}");
        }
    }
}

#[test]
fn server_that_is_down_costs_only_its_own_tools() {
    let settings = server("broken", "broken", "") + &server("odd", "order", "");
    let (envelope, results, mock) = results(&settings, &[&[("odd__show", "{}")]]);
    assert_eq!(results[0]["status"], "success");
    assert!(!mock.requests()[0].body["tools"].to_string().contains("broken__"));
    let warnings = envelope["_warnings"].to_string();
    assert!(warnings.contains("W4017") && warnings.contains("ModuleNotFoundError"), "{warnings}");
    let mock = Mock::start([Reply::text(ANSWER)]);
    let refused = run(&place(&server("broken", "broken", "required = true")), &mock, MODELS[0]);
    assert_eq!(refused["error"]["code"], "E4001", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("ModuleNotFoundError"), "{refused}");
}

#[test]
fn operator_decides_about_the_tools_of_a_server() {
    let settings = server("odd", "order", "allow = [\"app*\"]\nconfirm = [\"append\"]\n")
        + "[tools]\nconfirm = [\"odd__apend\", \"od__x\"]\n";
    let place = place(&settings);
    let mock = Mock::start([Reply::tool_calls([("odd__append", r#"{"x": "a"}"#)]), Reply::text(ANSWER)]);
    let output =
        cog(&place, &mock, &["run", "./m", "--provider", "openai", "--model", "gpt-4.1", "--args", "why?"]);
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "E4007", "{envelope}");
    assert!(!envelope.to_string().contains("--confirm"), "an agent reads it");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--confirm YES") && stderr.contains("`od__x`"), "{stderr}");
    assert!(envelope["_warnings"].to_string().contains("odd__apend"), "{envelope}");
    let offered = mock.requests()[0].body["tools"].to_string();
    assert!(offered.contains("odd__append") && !offered.contains("odd__show"), "{offered}");
}

#[test]
fn servers_start_at_the_same_time() {
    // Each waits for the others.
    let met = tempfile::tempdir().unwrap();
    let more = format!("env = {{ MET = {} }}", json!(met.path()));
    let servers: String = (0..8).map(|number| server(&format!("s{number}"), "together", &more)).collect();
    let (envelope, results, _) = results(&servers, &[&[("s0__a", "{}"), ("s7__a", "{}")]]);
    assert_eq!(results[1]["result"], "ran a", "{envelope}");
}

#[test]
fn tools_are_listed_and_called_on_the_command_line() {
    let mock = Mock::start([]);
    let settings = server("odd", "values", "confirm = [\"big\"]") + &server("more", "schemas", "");
    let place = place(&settings);
    let json = |args: &[&str]| {
        let output = cog(&place, &mock, args);
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{text}")))
    };
    let (code, listed) = json(&["mcp", "tools"]);
    assert_eq!((code, listed.as_array().unwrap().len()), (Some(0), 11));
    let get = &json(&["mcp", "tools", "more"]).1[0];
    assert_eq!((&get["name"], &get["schemas"]["anthropic"]["strict"]), (&json!("more__get"), &json!(false)));
    assert!(get["tokens"].as_u64().unwrap() > 10, "{get}");
    let big = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "odd__big").unwrap();
    assert_eq!((&big["confirmed"], &big["effects"]), (&json!(true), &json!([])));
    let (code, result) = json(&["mcp", "call", "odd", "text_too"]);
    assert_eq!((code, &result["text"]), (Some(0), &json!("row 3 was skipped")));
    let (code, result) = json(&["mcp", "call", "odd", "rpc_error", "{}"]);
    assert_eq!((code, &result["error_type"]), (Some(1), &json!("McpError")));
    let (code, result) = json(&["mcp", "call", "more", "crop", r#"{"box": [1, 2, 3]}"#]);
    assert_eq!((code, &result["code"]), (Some(1), &json!("E1001")));
}

/// Calls tools on the command line. Returns what a model would receive, and the messages.
fn call(place: &TempDir, server: &str, tool: &str) -> (Value, String) {
    let output = cog(place, &Mock::start([]), &["mcp", "call", server, tool, "{}"]);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout);
    (serde_json::from_str(&text).unwrap_or_else(|_| panic!("{tool}: {text} {messages}")), messages)
}

#[test]
fn values_of_any_kind_reach_the_model_as_they_are() {
    let place = place(&server("odd", "more_values", ""));
    let image = "note: and media of 118 bytes";
    let success = |result: &str| json!({ "status": "success", "result": result });
    for (tool, expected, media) in [
        ("twice_a_key", success(r#"{"a":1,"a":2}"#), ""),
        ("array", success("[1,2,3]"), ""),
        ("null", success("null"), ""),
        ("nan", success(r#"{"a": NaN}"#), ""),
        ("control", success("a\0b\u{1b}[31mred"), ""),
        ("empty", success(""), ""),
        ("own_status", json!({ "status": "rendered" }), ""),
        ("own_error", json!({ "status": "success", "result": { "status": "error", "rows": 0 } }), ""),
        ("no_content", success(""), ""),
        ("two_texts", success("one\ntwo"), image),
        ("struct_array", json!({ "status": "success", "result": [1] }), ""),
        ("link", success("Report: file:///r.txt (Q3, text/plain)"), ""),
        ("pdf", success(""), "note: and media of 12 bytes"),
        ("video", success("file:///a.mp4: 4 bytes of base64"), ""),
        ("data_url", success(""), image),
    ] {
        let (result, messages) = call(&place, "odd", tool);
        assert_eq!(result, expected, "{tool}");
        assert!(
            messages.contains(media) && messages.contains("media") != media.is_empty(),
            "{tool}: {messages}"
        );
    }
    let (error, messages) = call(&place, "odd", "error_image");
    assert_eq!((&error["status"], &error["message"]), (&json!("error"), &json!("see the screenshot")));
    assert!(messages.contains(image), "{messages}");
    let (audio, _) = call(&place, "odd", "audio");
    assert!(
        audio["left_out"][0].as_str().unwrap().contains("unknown type"),
        "four bytes are no audio: {audio}"
    );
}

#[test]
fn numbers_of_any_size_are_not_changed() {
    let place = place(&server("odd", "more_values", ""));
    for (tool, expected) in [
        ("integers", r#""id":12345678901234567890123,"n":9007199254740993"#),
        ("decimals", r#""price":0.10,"e":1e400,"z":-0.0,"x":1.0"#),
    ] {
        let output = cog(&place, &Mock::start([]), &["mcp", "call", "odd", tool]);
        let text = String::from_utf8_lossy(&output.stdout).replace(' ', "");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn requests_of_a_server_are_answered() {
    let place = place(&server("odd", "requests", ""));
    for (tool, expected) in [
        ("sampling", "-32601"),
        ("elicitation", r#"{"action": "decline"}"#),
        ("roots", r#"{"roots": []}"#),
        ("ping", "the client says {}"),
        ("unknown", "-32601"),
        ("log", "ran log"),
        ("progress", "ran progress"),
    ] {
        let (result, _) = call(&place, "odd", tool);
        assert!(result["result"].as_str().unwrap().contains(expected), "{tool}: {result}");
    }
}

#[test]
fn server_asks_the_model_of_the_run_if_the_operator_allows_it() {
    let settings = server("odd", "requests", "sampling = true\nroots = [\"data\"]");
    let place = place(&settings);
    let manifest = place.path().join("m/module.yaml");
    let streaming = std::fs::read_to_string(&manifest).unwrap() + "response: { mode: both }\n";
    std::fs::write(manifest, streaming).unwrap();
    let mock = Mock::start([
        Reply::tool_calls([("odd__sampling", "{}"), ("odd__roots", "{}"), ("odd__progress", "{}")]),
        Reply::text("from the model"),
        Reply::text(ANSWER),
    ]);
    let args = ["run", "./m", "--provider", "openai", "--model", "gpt-4.1", "--args", "why?", "--stream"];
    let output = cog(&place, &mock, &args);
    let chunks = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{chunks} {}", String::from_utf8_lossy(&output.stderr));
    let requests = mock.requests();
    assert_eq!(requests.len(), 3);
    let asked = &requests[1].body;
    assert_eq!(asked["messages"].as_array().unwrap().len(), 1, "{asked}");
    assert!(asked["messages"][0].to_string().contains("hi"), "{asked}");
    assert_eq!((&asked["model"], asked.get("tools")), (&json!("gpt-4.1"), None), "the model of the run");
    let limit = asked.get("max_tokens").or(asked.get("max_completion_tokens"));
    assert_eq!(limit, Some(&json!(10)), "the limit of the server");
    let results = requests[2].body["messages"].to_string();
    assert!(results.contains("from the model") && results.contains("endTurn"), "{results}");
    assert!(results.contains("file:///") && results.contains("/home/.config/cog/data/"), "{results}");
    assert!(chunks.contains("1 of 3: reading"), "{chunks}");
    let last: Value = serde_json::from_str(chunks.lines().last().unwrap()).unwrap();
    let usage = &last["usage"];
    assert_eq!(usage["input_tokens"], 33, "each of three replies reports 11 tokens: {usage}");
}

/// Python gives the command a terminal, and types.
#[cfg(unix)]
#[test]
fn person_at_a_terminal_is_asked_for_input() {
    let place = place(&server("odd", "requests", ""));
    let spawn = "import pty, sys; pty.spawn(sys.argv[1:])";
    for (typed, expected) in
        [("y\nAda\n", r#"\"action\": \"accept\", \"content\": {\"n\": \"Ada\"}"#), ("n\n", "decline")]
    {
        let mut command = Command::new(python());
        command.args(["-c", spawn, env!("CARGO_BIN_EXE_cog"), "mcp", "call", "odd", "elicitation"]);
        command.current_dir(place.path()).env("HOME", place.path().join("home")).env("TERM", "xterm");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let shown = String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned();
        assert!(shown.contains("`odd` asks: Name?"), "{shown}");
        assert!(shown.replace(['\r', '\n'], "").contains(expected), "{shown}");
    }
}

#[test]
fn names_of_arguments_are_those_of_the_tool_for_each_vendor() {
    let place = place(&server("odd", "more_schemas", ""));
    let arguments = r#"{"a_b": "1", "_x": "2", "_": "3"}"#;
    let mock = Mock::start([Reply::tool_calls([("odd__weird", arguments)]), Reply::text(ANSWER)]);
    let envelope = run(&place, &mock, MODELS[1]);
    assert_eq!(envelope["ok"], true, "{envelope}");
    let requests = mock.requests();
    let tools = requests[0].body["tools"].as_array().unwrap().iter();
    let weird = tools.clone().find(|tool| tool["name"] == "odd__weird").unwrap();
    let names: Vec<_> = weird["input_schema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a_b", "_x", "_"]);
    let received = requests[1].body["messages"].to_string();
    assert!(["a b", "$x", "ö"].iter().all(|name| received.contains(name)), "{received}");
}

#[test]
fn two_hundred_tools_are_offered_where_the_vendor_takes_them() {
    let (_, definitions) = definitions(&server("odd", "many", "env = { COUNT = \"200\" }"), MODELS[1]);
    assert_eq!(definitions.len(), 200);
}

#[test]
fn servers_that_start_themselves_come_to_an_end() {
    let program = json!(env!("CARGO_BIN_EXE_cog"));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("home/.config/cog/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let settings = format!("[mcp.self]\ncommand = {program}\nargs = [\"mcp\", \"serve\"]\n");
    std::fs::write(path, settings).unwrap();
    let output = cog(&place, &Mock::start([]), &["mcp", "tools"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!listed.as_array().unwrap().is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn noise_around_replies_is_skipped() {
    let calls = [
        ("odd__garbage", "{}"),
        ("odd__wrong_id", "{}"),
        ("odd__twice", "{}"),
        ("odd__split", "{}"),
        ("odd__late", "{}"),
    ];
    let (_, results, _) = results(&server("odd", "noise", ""), &[&calls]);
    let results: Vec<_> = results.iter().map(|result| result["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["ran garbage", "ran wrong_id", "the first", "héllo", "ran late"]);
}

#[test]
fn names_that_vendors_refuse_are_replaced_or_named() {
    let place = place(&server("odd", "names", ""));
    let output = cog(&place, &Mock::start([]), &["mcp", "tools"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut names: Vec<_> =
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["odd__", "odd__-dash", "odd__9lives", "odd___n_", "odd__a_b"]);
    let messages = String::from_utf8_lossy(&output.stderr);
    for name in ["a.b", "a b", &"x".repeat(70)] {
        assert!(messages.contains(&format!("`{name}` cannot be called")), "{name}: {messages}");
    }
    assert_eq!(call(&place, "odd", "a_b").0["result"], "ran a_b", "the name that needs no replacement wins");
}

#[test]
fn schemas_of_any_kind_are_offered_to_each_vendor() {
    for model in MODELS {
        let (_, definitions) = definitions(&server("odd", "more_schemas", ""), model);
        let names: Vec<_> =
            definitions.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        for name in
            ["one_of", "untyped", "any", "allof", "weird", "deep", "enum", "no_items", "nullable", "map"]
        {
            assert!(names.contains(&format!("odd__{name}")), "{} {name}: {names:?}", model.0);
        }
        let text = json!(definitions).to_string();
        assert!(text.contains("value-1199") && text.contains("^S_"), "{}: {text}", model.0);
    }
}

#[test]
fn list_of_tools_has_all_pages_and_an_end() {
    let place = place(&(server("odd", "pages", "") + &server("endless", "endless", "")));
    let listed = |name: &str| -> Vec<String> {
        let output = cog(&place, &Mock::start([]), &["mcp", "tools", name]);
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("odd").len(), 31);
    assert_eq!(listed("endless"), ["endless__a"]);
}

#[test]
fn server_that_is_down_does_not_hide_the_tools_of_the_others() {
    let place = place(&(server("broken", "broken", "") + &server("odd", "order", "")));
    let output = cog(&place, &Mock::start([]), &["mcp", "tools"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), listed[1]["name"].as_str()), (Some(1), Some("odd__show")));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError"));
}
