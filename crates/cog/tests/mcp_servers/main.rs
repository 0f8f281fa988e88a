//! MCP servers of other people, as their registries have them: one call of each, over every wire form.
//!
//! `cargo xtask mcp-servers` installs them. `COG_TEST_MCP_SERVERS` is the search path of their programs.

#![expect(
    clippy::disallowed_methods,
    reason = "modules, settings and files of servers that are written here"
)]

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

const MANIFEST: &str = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
    policies: { tools_allowed: true, side_effects: allow }\ntools: { policy: allow_by_default }\n";

const PAGE: &str =
    "<html><head><title>A page</title></head><body><h1>Hello</h1><p>It says 42.</p></body></html>";

/// A server, and one call of it.
struct Case {
    server: &'static str,
    /// The settings of the server.
    settings: String,
    tool: &'static str,
    arguments: Value,
    /// What the result has.
    expected: &'static str,
}

/// The servers. Their files are in this directory, and a page is at this URL.
fn cases(place: &Path, page: &str) -> Vec<Case> {
    let path = |name: &str| place.join(name).display().to_string();
    let browser =
        ["--headless", "--isolated", "--no-sandbox", "--executable-path", &chromium()].map(str::to_owned);
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["likes tea"] });
    vec![
        case(
            "everything",
            program("mcp-server-everything", &[]),
            "get-sum",
            json!({ "a": 2, "b": 3 }),
            "2 and 3 is 5",
        ),
        case(
            "files",
            program("mcp-server-filesystem", &[path("files")]),
            "read_text_file",
            json!({ "path": path("files/a.txt") }),
            "hello from a file",
        ),
        case(
            "memory",
            program("mcp-server-memory", &[])
                + &format!("env = {{ MEMORY_FILE_PATH = {} }}\n", json!(path("memory.jsonl"))),
            "create_entities",
            json!({ "entities": [entity] }),
            "likes tea",
        ),
        case(
            "thinking",
            program("mcp-server-sequential-thinking", &[]),
            "sequentialthinking",
            json!({ "thought": "First.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 }),
            "thoughtHistoryLength",
        ),
        case(
            "browser",
            program("playwright-mcp", &browser),
            "browser_navigate",
            json!({ "url": page }),
            "Page Title: A page",
        ),
        case(
            "time",
            program("mcp-server-time", &[]),
            "convert_time",
            json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            "T21:00:00+09:00",
        ),
        case(
            "git",
            program("mcp-server-git", &[]),
            "git_status",
            json!({ "repo_path": path("repo") }),
            "No commits yet",
        ),
        case(
            "fetch",
            program(
                "mcp-server-fetch",
                &["--allow-private-ips".to_owned(), "--ignore-robots-txt".to_owned()],
            ),
            "fetch",
            json!({ "url": page, "raw": true }),
            "It says 42.",
        ),
        case(
            "sqlite",
            program("mcp-server-sqlite", &["--db-path".to_owned(), path("a.db")]),
            "read_query",
            json!({ "query": "SELECT 6 * 7 AS answer" }),
            "'answer': 42",
        ),
        case(
            "calculator",
            program("mcp-server-calculator", &[]),
            "calculate",
            json!({ "expression": "6 * 7" }),
            "42",
        ),
    ]
}

fn case(
    server: &'static str,
    settings: String,
    tool: &'static str,
    arguments: Value,
    expected: &'static str,
) -> Case {
    Case { server, settings, tool, arguments, expected }
}

/// Returns the settings of a server that is a program.
fn program(name: &str, args: &[String]) -> String {
    format!("command = {}\nargs = {}\n", json!(name), json!(args))
}

fn servers_path() -> String {
    let path = std::env::var("COG_TEST_MCP_SERVERS");
    let path = path.unwrap_or_else(|_| panic!("set COG_TEST_MCP_SERVERS, as `cargo xtask mcp-servers` does"));
    format!("{path}:/usr/local/bin:/usr/bin:/bin")
}

/// Returns the path of the browser, which Playwright's server needs.
fn chromium() -> String {
    let found = ["/usr/bin/chromium", "/usr/local/bin/chromium", "/snap/bin/chromium"].map(PathBuf::from);
    let found = found.iter().find(|path| path.exists()).expect("chromium is installed");
    found.display().to_string()
}

/// Serves one page until the test ends. Returns its URL.
fn page() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{PAGE}", PAGE.len());
            });
        }
    });
    format!("http://{address}/")
}

/// Creates the files of the servers, a module that may call every tool, and the settings.
fn place() -> (TempDir, Vec<Case>) {
    let place = tempfile::tempdir().unwrap();
    let cases = cases(place.path(), &page());
    let settings: String = cases
        .iter()
        .map(|case| {
            format!("[mcp.{}]\nrequired = true\nstartup_timeout = \"2m\"\n{}", case.server, case.settings)
        })
        .collect();
    for (path, text) in [
        ("m/module.yaml", MANIFEST),
        ("m/prompt.md", "Answer this: $ARGUMENTS\n"),
        ("m/schema.json", SCHEMA),
        ("files/a.txt", "hello from a file\n"),
        (".config/cog/config.toml", &settings),
    ] {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let created = Command::new("git").args(["init", "--quiet", "repo"]).current_dir(place.path()).status();
    assert!(created.unwrap().success());
    (place, cases)
}

fn cog(place: &TempDir, args: &[&str], variables: &[(&str, String)]) -> Output {
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
    Command::new(env!("CARGO_BIN_EXE_cog"))
        .args(args)
        .current_dir(place.path())
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("HOME", place.path())
        .env("PATH", servers_path())
        .envs(variables)
        .output()
        .unwrap()
}

fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let text = serde_json::from_str(&text);
    text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the schema of the tool with this name in a request, and the text of its result, as this wire form has them.
fn schema_and_result(wire: Wire, body: &Value, name: &str) -> (Value, String) {
    let list = |pointer: &str| body.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let (tools, schema) = match wire {
        Wire::OpenAi | Wire::Ollama => {
            (list("/tools").iter().map(|tool| tool["function"].clone()).collect(), "parameters")
        }
        Wire::Anthropic => (list("/tools"), "input_schema"),
        Wire::Gemini => (list("/tools/0/functionDeclarations"), "parametersJsonSchema"),
        _ => (list("/tools"), "parameters"),
    };
    let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{wire:?} {name}"));
    (tool[schema].clone(), result(wire, &list, name))
}

/// Returns the text of the result of the only call of a tool.
fn result(wire: Wire, list: &impl Fn(&str) -> Vec<Value>, name: &str) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // The id of the call, by which the result is found.
    let parts = |member: &str| -> Vec<Value> {
        let messages = list(if wire == Wire::Gemini { "/contents" } else { "/messages" });
        let parts = messages.iter().filter_map(|message| message[member].as_array().cloned());
        parts.flatten().collect()
    };
    match wire {
        Wire::OpenAi => {
            let call = parts("tool_calls").into_iter().find(|call| call["function"]["name"] == name).unwrap();
            let is_result = |message: &&Value| message["tool_call_id"] == call["id"];
            text(&list("/messages").iter().find(is_result).unwrap()["content"])
        }
        Wire::OpenAiResponses => {
            let items = list("/input");
            let call = items.iter().find(|item| item["name"] == name).unwrap();
            let is_result =
                |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call["call_id"];
            text(&items.iter().find(is_result).unwrap()["output"])
        }
        Wire::Anthropic => {
            let parts = parts("content");
            let call = parts.iter().find(|part| part["name"] == name).unwrap();
            text(&parts.iter().find(|part| part["tool_use_id"] == call["id"]).unwrap()["content"])
        }
        Wire::Gemini => {
            let parts = parts("parts");
            let result = parts.iter().find(|part| part["functionResponse"]["name"] == name).unwrap();
            text(&result["functionResponse"]["response"])
        }
        _ => {
            let messages = list("/messages");
            text(&messages.iter().find(|message| message["tool_name"] == name).unwrap()["content"])
        }
    }
}

#[test]
fn result_of_each_server_reaches_the_model_in_each_wire_form() {
    let (place, cases) = place();
    let calls: Vec<(String, String)> = cases
        .iter()
        .map(|case| (format!("{}__{}", case.server, case.tool), case.arguments.to_string()))
        .collect();
    for wire in Wire::ALL {
        // A memory that has the entity says nothing about it.
        let _ = std::fs::remove_file(place.path().join("memory.jsonl"));
        let calls =
            Reply::tool_calls(calls.iter().map(|(name, arguments)| (name.as_str(), arguments.as_str())));
        let mock = Mock::start([calls, Reply::text(ANSWER)]);
        let (provider, model) = match wire {
            Wire::Anthropic => ("ANTHROPIC", "claude-sonnet-4-5"),
            Wire::Gemini => ("GEMINI", "gemini-2.5-pro"),
            Wire::Ollama => ("OLLAMA", "qwen3"),
            _ => ("OPENAI", "gpt-4.1"),
        };
        let base = if wire == Wire::Ollama { "OLLAMA_HOST" } else { &format!("{provider}_BASE_URL") };
        let key = format!("{provider}_API_KEY");
        let mut variables = vec![(base, mock.base_url(wire)), (key.as_str(), "none".to_owned())];
        variables.extend(wire.protocol_setting().map(|protocol| ("OPENAI_PROTOCOL", protocol.to_owned())));
        let args = ["run", "./m", "--provider", wire.provider(), "--model", model, "--args", "why?"];
        let output = cog(&place, &args, &variables);
        let envelope = json_of(&output);
        assert_eq!(envelope["ok"], true, "{wire:?}: {envelope}");
        let body = mock.requests().last().unwrap().body.clone();
        for case in &cases {
            let name = format!("{}__{}", case.server, case.tool);
            let (schema, result) = schema_and_result(wire, &body, &name);
            for key in case.arguments.as_object().unwrap().keys() {
                assert!(schema["properties"].get(key).is_some(), "{wire:?} {name} {key}: {schema}");
            }
            let succeeded = result.contains("success") && result.contains(case.expected);
            assert!(succeeded, "{wire:?} {name}: {result}");
        }
    }
}

#[test]
fn schemas_of_each_server_are_listed_for_each_vendor() {
    let (place, cases) = place();
    let listed = json_of(&cog(&place, &["mcp", "tools"], &[]));
    let listed = listed.as_array().unwrap();
    for case in &cases {
        let prefix = format!("{}__", case.server);
        let tools: Vec<_> =
            listed.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with(&prefix)).collect();
        assert!(!tools.is_empty(), "{prefix}");
        for tool in tools {
            for vendor in ["openai_strict", "anthropic", "gemini", "llamacpp", "json_schema"] {
                let schema = &tool["schemas"][vendor]["schema"];
                assert_eq!(schema["type"], "object", "{vendor}: {tool}");
            }
        }
    }
    let called = cog(&place, &["mcp", "call", "calculator", "calculate", r#"{"expression": "6 * 7"}"#], &[]);
    assert_eq!(json_of(&called), json!({ "status": "success", "result": "42" }));
}
