//! Modules that call tools of a real MCP server, made with the official Python SDK, over both transports.
//!
//! `cargo xtask test` installs the SDK. `COG_TEST_PYTHON` is a Python interpreter with the package `mcp`.

#![expect(clippy::disallowed_methods, reason = "modules and settings that are written here")]

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

pub(crate) const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

pub(crate) fn python() -> String {
    #[expect(clippy::disallowed_methods, reason = "the interpreter that the tests use")]
    std::env::var("COG_TEST_PYTHON").unwrap_or_else(|_| {
        panic!("set COG_TEST_PYTHON to a Python with the package `mcp`, as `cargo xtask test` does")
    })
}

fn server_script() -> String {
    script("mcp_server.py")
}

pub(crate) fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(name).display().to_string()
}

/// Creates a directory with a module that may call these tools, and with settings.
fn directory(allowed: &str, settings: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let manifest = format!(
        "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
         policies: {{ tools_allowed: true, network: allow }}\ntools: {{ allowed: [{allowed}] }}\n"
    );
    let manifest = match settings.contains("# side effects") {
        true => manifest.replace("network: allow", "network: allow, side_effects: allow"),
        false => manifest,
    };
    write("m/module.yaml", &manifest);
    write("m/prompt.md", "Answer this: $ARGUMENTS\n");
    write("m/schema.json", SCHEMA);
    write("home/.config/cog/config.toml", settings);
    directory
}

fn stdio() -> String {
    let (command, script) = (json!(python()), json!(server_script()));
    format!("[mcp.py]\ncommand = {command}\nargs = [{script}, \"stdio\"]\nenv = {{ EXTRA = \"1\" }}\n")
}

fn run(directory: &TempDir, mock: &Mock) -> Output {
    run_within("60s", directory, mock)
}

/// Runs the module with this time limit of a call, which includes a restart of the server.
fn run_within(limit: &str, directory: &TempDir, mock: &Mock) -> Output {
    let args = ["run", "./m", "--provider", "openai", "--model", "gpt-4.1", "--args", "why?", "-v"];
    cog(&args, limit, directory, mock)
}

fn cog(args: &[&str], limit: &str, directory: &TempDir, mock: &Mock) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cog"))
        .args(args)
        .current_dir(directory.path())
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("COG_TOOLS_CALL_TIMEOUT", limit)
        .env("HOME", directory.path().join("home"))
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("OPENAI_API_KEY", "sk-canary")
        .env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi))
        .output()
        .unwrap()
}

/// Runs the module with a model that makes these calls at once. Returns the definitions and the content of the results.
fn results(directory: &TempDir, calls: &[(&str, &str)]) -> (Value, Vec<Value>) {
    results_of_rounds(directory, &[calls])
}

/// Runs the module with a model that makes the calls of each round at once.
fn results_of_rounds(directory: &TempDir, rounds: &[&[(&str, &str)]]) -> (Value, Vec<Value>) {
    let replies = rounds.iter().map(|calls| Reply::tool_calls(calls.iter().copied()));
    let mock = Mock::start(replies.chain([Reply::text(ANSWER)]));
    let hangs = rounds.iter().any(|calls| calls.iter().any(|(name, _)| name.ends_with("hang")));
    let output = run_within(if hangs { "10s" } else { "60s" }, directory, &mock);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\n{}", String::from_utf8_lossy(&output.stdout));
    (mock.requests()[0].body["tools"].clone(), last_results(&mock))
}

/// Returns the content of the results in the last request.
fn last_results(mock: &Mock) -> Vec<Value> {
    let requests = mock.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap()).collect()
}

fn names(definitions: &Value) -> Vec<&str> {
    let definitions = definitions.as_array().unwrap().iter();
    definitions.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn tools_are_called_over_stdio() {
    let directory = directory("py__add, py__fail, py__variables, py__delete", &stdio());
    let calls = [
        ("py__add", r#"{"a": 2, "b": 3}"#),
        ("py__fail", r#"{"reason": "no such page"}"#),
        ("py__add", r#"{"a": "x"}"#),
        ("py__variables", "{}"),
        ("py__delete", r#"{"path": "a"}"#),
    ];
    let (definitions, results) = results(&directory, &calls);
    assert_eq!(names(&definitions), ["py__add", "py__fail", "py__variables"], "side effects are denied");
    assert_eq!(definitions[0]["function"]["description"], "Adds two numbers.");
    assert_eq!(results[0], json!({ "status": "success", "result": 5 }));
    assert_eq!((&results[1]["status"], &results[1]["error_type"]), (&json!("error"), &json!("ToolError")));
    assert_eq!(results[1]["message"], "Error executing tool fail", "the SDK hides the exception");
    assert_eq!(results[2]["code"], "E1001", "{}", results[2]);
    let variables = results[3]["result"].to_string();
    assert!(variables.contains("EXTRA") && variables.contains("PATH"), "{variables}");
    assert!(!variables.contains("OPENAI"), "{variables}");
    assert_eq!(results[4]["code"], "E4007", "{}", results[4]);
}

#[test]
fn tools_of_a_part_are_called() {
    let directory = directory("py__add", &stdio());
    let place = directory.path();
    std::fs::create_dir_all(place.join("cognitive/modules")).unwrap();
    std::fs::rename(place.join("m"), place.join("cognitive/modules/part")).unwrap();
    let manifest = std::fs::read_to_string(place.join("cognitive/modules/part/module.yaml")).unwrap();
    let (of_part, rest) =
        (manifest.replace("name: m", "name: part"), manifest.split("policies").next().unwrap());
    std::fs::write(place.join("cognitive/modules/part/module.yaml"), of_part).unwrap();
    std::fs::create_dir(place.join("m")).unwrap();
    std::fs::write(place.join("m/module.yaml"), rest).unwrap();
    std::fs::write(place.join("m/prompt.md"), "Answer with this: @call:part($ARGUMENTS)\n").unwrap();
    std::fs::write(place.join("m/schema.json"), SCHEMA).unwrap();
    let mock = Mock::start([
        Reply::tool_calls([("py__add", r#"{"a": 2, "b": 3}"#)]),
        Reply::text(ANSWER),
        Reply::text(ANSWER),
    ]);
    // The part is found by name in the working directory, which nobody has trusted.
    let args =
        ["run", "./m", "--provider", "openai", "--model", "gpt-4.1", "--args", "why?", "-v", "--trust"];
    let output = cog(&args, "60s", &directory, &mock);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = mock.requests()[1].body["messages"].to_string();
    assert!(results.contains(r#"\"result\":5"#), "{results}");
}

#[test]
fn hostile_results_are_errors_for_the_model() {
    let allowed = "py__hang, py__binary, py__large, py__image, py__add";
    let directory = directory(allowed, &stdio());
    let calls = [
        ("py__hang", "{}"),
        ("py__binary", "{}"),
        ("py__large", r#"{"megabytes": 100}"#),
        ("py__large", r#"{"megabytes": 2}"#),
        ("py__add", r#"{"a": 1, "b": 1}"#),
    ];
    let (_, results) = results(&directory, &calls);
    assert_eq!(results[0]["code"], "E2002", "{}", results[0]);
    assert!(results[1]["left_out"][0].as_str().unwrap().starts_with("image/png"), "{}", results[1]);
    assert_eq!(results[2]["status"], "error");
    assert!(results[2].to_string().len() < 4000);
    assert!(results[3]["result"].as_str().unwrap().contains("bytes are left out here"));
    assert_eq!(results[4]["result"], 2, "the connection stays open");
}

#[test]
fn dead_server_is_an_error_for_the_model() {
    let directory = directory("py__die", &stdio());
    let (_, results) = results(&directory, &[("py__die", "{}")]);
    assert_eq!(results[0]["status"], "error", "{}", results[0]);
    assert_eq!(results[0]["error_type"], "ServerUnavailable", "{}", results[0]);
}

#[test]
fn dead_server_is_started_again_and_a_call_without_effects_repeated() {
    let directory = directory("py__die_once, py__add", &stdio());
    let marker = json!({ "marker": directory.path().join("marker") }).to_string();
    let (_, results) = results(&directory, &[("py__die_once", &marker), ("py__add", r#"{"a": 1, "b": 1}"#)]);
    assert_eq!(results[0], json!({ "status": "success", "result": "alive" }));
    assert_eq!(results[1]["result"], 2, "a call of the same round: {}", results[1]);
}

#[test]
fn call_with_side_effects_is_not_repeated_and_the_next_one_reaches_a_new_server() {
    let directory = directory("py__crash, py__add", &format!("# side effects\n{}", stdio()));
    let add = ("py__add", r#"{"a": 1, "b": 1}"#);
    let rounds = [[("py__crash", "{}")], [add], [("py__crash", "{}")], [add]];
    let rounds: Vec<&[(&str, &str)]> = rounds.iter().map(<[_; 1]>::as_slice).collect();
    let (_, results) = results_of_rounds(&directory, &rounds);
    assert_eq!(results[0]["error_type"], "ServerUnavailable", "{}", results[0]);
    let message = results[0]["message"].as_str().unwrap();
    assert!(message.contains("unknown whether the call took effect"), "{message}");
    assert_eq!(results[1]["result"], 2, "{}", results[1]);
    let message = results[3]["message"].as_str().unwrap();
    assert!(message.contains("restarted once in a run"), "{message}");
}

#[test]
fn servers_of_older_revisions_are_called() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let (command, script) = (json!(python()), json!(script("mcp_old_server.py")));
        let settings =
            format!("# side effects\n[mcp.old]\ncommand = {command}\nargs = [{script}, \"{revision}\"]\n");
        let directory = directory("old__add", &settings);
        let (definitions, results) = results(&directory, &[("old__add", r#"{"a": 2, "b": 3}"#)]);
        assert_eq!(names(&definitions), ["old__add"], "{revision}");
        assert_eq!(results[0], json!({ "status": "success", "result": "5" }), "{revision}");
    }
}

/// The client stops waiting for the reply to its first request after 2 seconds, and the server then replies to that one first.
#[test]
fn server_that_starts_slowly_is_used() {
    let servers = [("mcp_server.py", "stdio"), ("mcp_old_server.py", "2025-06-18")];
    std::thread::scope(|scope| {
        for (name, argument) in servers {
            scope.spawn(move || {
                let args = json!(["-c", "sleep 4; exec \"$@\"", "sh", python(), script(name), argument]);
                let settings = format!("# side effects\n[mcp.slow]\ncommand = \"sh\"\nargs = {args}\n");
                let directory = directory("slow__add", &settings);
                let (_, results) = results(&directory, &[("slow__add", r#"{"a": 2, "b": 3}"#)]);
                assert_eq!(results[0]["status"], "success", "{name}: {}", results[0]);
            });
        }
    });
}

#[test]
fn error_of_a_slow_server_names_both_requests() {
    let args = json!(["-c", "sleep 4; exec \"$@\"", "sh", python(), script("mcp_old_server.py"), "none"]);
    let settings = format!("[mcp.slow]\ncommand = \"sh\"\nargs = {args}\nrequired = true\n");
    let output = run(&directory("slow__add", &settings), &Mock::start([Reply::text(ANSWER)]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["legacy initialize", "Method not found: server/discover"] {
        assert!(text.contains(part), "{text}");
    }
}

/// A server that is ended when the test ends.
struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and returns its URL.
fn http_server() -> (HttpServer, String) {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new(python());
    command.args([server_script(), "http".to_owned(), port.to_string()]);
    let server = HttpServer(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    (server, format!("http://127.0.0.1:{port}/mcp"))
}

#[test]
fn halted_call_of_a_server_is_executed_in_another_process() {
    let (_server, url) = http_server();
    for server in [stdio(), format!("[mcp.py]\nurl = \"{url}\"\n")] {
        let settings = format!("# side effects\n{server}[tools]\nconfirm = [\"py__delete\"]\n");
        let directory = directory("py__add, py__delete", &settings);
        let calls = [("py__add", r#"{"a": 2, "b": 3}"#), ("py__delete", r#"{"path": "a"}"#)];
        let mock = Mock::start([Reply::tool_calls(calls), Reply::text(ANSWER)]);
        let halted: Value = serde_json::from_slice(&run(&directory, &mock).stdout).unwrap();
        let id = halted["error"]["details"]["halted"]["id"].as_str().unwrap();
        let continued = cog(&["run", "--continue", id, "--confirm", "YES"], "60s", &directory, &mock);
        assert!(continued.status.success(), "{}", String::from_utf8_lossy(&continued.stderr));
        let results = last_results(&mock);
        let success = |result| json!({ "status": "success", "result": result });
        assert_eq!(results, [success(json!(5)), success(json!("deleted a"))]);
        assert_eq!(mock.requests()[1].body["model"], "gpt-4.1", "the model of the halted run");
    }
}

#[test]
fn tools_are_called_over_streamable_http() {
    let (_server, url) = http_server();
    let directory = directory("web__add, web__image", &format!("[mcp.web]\nurl = \"{url}\"\n"));
    let calls = [("web__add", r#"{"a": 2, "b": 3}"#), ("web__image", "{}")];
    let (definitions, results) = results(&directory, &calls);
    assert_eq!(names(&definitions), ["web__add", "web__image"]);
    assert_eq!(results[0], json!({ "status": "success", "result": 5 }));
    assert_eq!(results[1]["status"], "success", "{}", results[1]);
}

#[test]
fn required_server_that_cannot_be_started_is_reported_before_the_call() {
    for (settings, expected) in [
        ("[mcp.py]\ncommand = \"/does/not/exist\"\n", "cannot be started"),
        ("[mcp.py]\ncommand = \"true\"\n", "is not available"),
        ("[mcp.py]\nurl = \"http://127.0.0.1:9/mcp\"\n", "is not available"),
        ("[mcp.py]\ncommand = \"sleep\"\nargs = [\"60\"]\nstartup_timeout = \"1s\"\n", "within 1 s"),
    ] {
        let mock = Mock::start([Reply::text(ANSWER)]);
        let output = run(&directory("py__add", &format!("{settings}required = true\n")), &mock);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(mock.requests().is_empty());
    }
}

#[test]
fn module_without_tools_starts_no_server() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let output = run(&directory("", "[mcp.py]\ncommand = \"/does/not/exist\"\n"), &mock);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn settings_name_what_is_wrong() {
    for (settings, expected) in [
        ("[mcp.py]\n", "set either `command` or `url`"),
        ("[mcp.py]\ncommand = \"a\"\nurl = \"http://b\"\n", "set either `command` or `url`"),
        ("[mcp.py]\nurl = \"ftp://b\"\n", "must begin with"),
        ("[mcp.py]\nurl = \"http://b\"\nargs = [\"a\"]\n", "only for a `command`"),
        ("[mcp.py]\ncommand = \"a\"\ntoken = \"b\"\n", "only for a `url`"),
        ("[mcp.\"a b\"]\ncommand = \"a\"\n", "the name of a server"),
    ] {
        let output = run(&directory("", settings), &Mock::start([Reply::text(ANSWER)]));
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected), "{text}");
    }
    let directory = directory("", "");
    std::fs::write(directory.path().join("cog.toml"), "[mcp.py]\ncommand = \"a\"\n").unwrap();
    let output = run(&directory, &Mock::start([Reply::text(ANSWER)]));
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot set `mcp.py`"), "{text}");
}
