//! Spans and metrics of runs, in a collector that decodes them with the official protobuf types (`opentelemetry-proto` of PyPI).

#![expect(clippy::disallowed_methods, reason = "modules that are written here")]

use std::{
    io::{BufRead as _, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::{ANSWER, SCHEMA, python, script};

/// The caller of runs, as W3C Trace Context writes it.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A collector. Dropping it ends it.
struct Collector {
    child: Child,
    url: String,
    exports: Lines<BufReader<ChildStdout>>,
}

impl Collector {
    /// Starts a collector that responds with these statuses.
    fn start(statuses: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(script("telemetry_collector.py")).args(statuses).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut exports = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = format!("http://127.0.0.1:{}", exports.next().unwrap().unwrap());
        Self { child, url, exports }
    }

    /// Returns the next export.
    fn export(&mut self) -> Value {
        serde_json::from_str(&self.exports.next().unwrap().unwrap()).unwrap()
    }

    /// Returns the items of the exports with this path, from the next `count` exports.
    fn items(&mut self, count: usize, path: &str) -> Vec<Value> {
        let exports: Vec<_> = (0..count).map(|_| self.export()).collect();
        let of_path = exports.iter().filter(|export| export["path"] == path);
        of_path.flat_map(|export| export["items"].as_array().unwrap().clone()).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a directory with modules: `outer` calls `part` in its prompt, and the tool `helper`.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, manifest: &str, prompt: &str| {
        let place = directory.path().join("cognitive/modules").join(name);
        std::fs::create_dir_all(&place).unwrap();
        let head = "version: 1.2.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n";
        std::fs::write(place.join("module.yaml"), format!("name: {name}\n{head}{manifest}")).unwrap();
        std::fs::write(place.join("prompt.md"), prompt).unwrap();
        std::fs::write(place.join("schema.json"), SCHEMA).unwrap();
    };
    let tools = "policies: { tools_allowed: true }\ntools: { allowed: [helper] }\n";
    write("part", "", "Answer this: $ARGUMENTS\n");
    write("helper", "", "Help with this: $ARGUMENTS\n");
    write("outer", tools, "Answer $ARGUMENTS with the help of this: @call:part($ARGUMENTS)\n");
    directory
}

/// The replies of a run of `outer`: the part, the call of the tool, the tool, and the answer.
fn replies() -> Vec<Reply> {
    let answer = || Reply::text(ANSWER).chunk_size(20).usage(100, 20).model("gpt-4.1-2025-04-14");
    let call = Reply::tool_calls([("helper", r#"{"query": "sk-canary"}"#)]).usage(50, 5);
    vec![answer(), call, answer(), answer()]
}

fn command(directory: &Path, mock: &Mock, collector: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
    command.current_dir(directory).env_clear().env("HOME", directory.join("home")).env("COG_TRUST", "1");
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("COG_DETECT_OLLAMA", "off");
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command.env("LLM_PROVIDER", "openai").env("LLM_MODEL", "gpt-4.1");
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    command
}

fn run(directory: &Path, mock: &Mock, collector: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = command(directory, mock, collector);
    let output = command.args(["run", "outer", "--args", "why?"]).envs(variables.iter().copied()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the only span with this name and this parent.
fn only<'a>(spans: &'a [Value], name: &str, parent: &Value) -> &'a Value {
    let found: Vec<_> =
        spans.iter().filter(|span| span["name"] == name && span["parent"] == *parent).collect();
    assert_eq!(found.len(), 1, "{name} in {parent}: {spans:#?}");
    found[0]
}

#[test]
fn composed_run_with_tools_is_one_trace() {
    let (directory, mock, mut collector) = (directory(), Mock::start(replies()), Collector::start(&[]));
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let variables = [
        ("TRACEPARENT", parent.as_str()),
        ("TRACESTATE", "vendor=1"),
        ("OTEL_SERVICE_NAME", "shop"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
    ];
    let output = run(directory.path(), &mock, &collector.url, &variables);
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["meta"]["trace_id"], TRACE);
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("telemetry").count(), 0);
    let export = collector.export();
    assert_eq!((&export["path"], &export["key"]), (&json!("/v1/traces"), &json!("a b")));
    let spans = export["items"].as_array().unwrap();
    assert!(spans.iter().all(|span| span["trace"] == TRACE && span["state"] == "vendor=1"), "{spans:#?}");

    let outer = only(spans, "invoke_workflow outer", &json!(PARENT));
    let part = only(spans, "invoke_workflow part", &outer["id"]);
    only(spans, "chat gpt-4.1", &part["id"]);
    let tool = only(spans, "execute_tool helper", &outer["id"]);
    let helper = only(spans, "invoke_workflow helper", &tool["id"]);
    let chat = only(spans, "chat gpt-4.1", &helper["id"]);
    let own = spans.iter().filter(|span| span["name"] == "chat gpt-4.1" && span["parent"] == outer["id"]);
    assert_eq!((own.count(), spans.len()), (2, 8), "{spans:#?}");

    let expected = json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.response.model": "gpt-4.1-2025-04-14",
        "gen_ai.output.type": "json",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(chat["attributes"][key], *value, "{key}: {chat:#}");
    }
    assert!(chat["attributes"]["gen_ai.response.time_to_first_chunk"].as_f64().unwrap() > 0.0);
    // Prices at another base URL are not known.
    assert_eq!(chat["attributes"]["gen_ai.usage.cost.amount"], Value::Null);
    assert_eq!((&chat["kind"], &chat["error"]), (&json!("SPAN_KIND_CLIENT"), &json!(false)));
    let attributes = &outer["attributes"];
    assert_eq!(
        (&attributes["cog.module.version"], &attributes["cog.module.tier"], &attributes["cog.ok"]),
        (&json!("1.2.0"), &json!("decision"), &json!(true))
    );
    assert_eq!(outer["resource"]["service.name"], "shop");
    let confidence = json!([{ "name": "gen_ai.evaluation.result", "gen_ai.evaluation.name": "confidence",
        "gen_ai.evaluation.score.value": 0.9 }]);
    assert_eq!(outer["events"], confidence);
    // No content was asked for.
    let shown = export.to_string();
    assert!(
        !shown.contains("why?") && !shown.contains("canary") && !shown.contains("Nothing was"),
        "{shown}"
    );
    assert!(mock.requests().iter().all(|request| request.header("traceparent").is_none()));

    let metrics = collector.items(1, "/v1/metrics");
    let sum = |name: &str, key: &str, value: &str| {
        let points =
            metrics.iter().filter(|point| point["name"] == name && point["attributes"][key] == value);
        points.map(|point| (point["count"].as_u64().unwrap(), point["sum"].as_f64().unwrap())).next().unwrap()
    };
    assert_eq!(sum("gen_ai.client.token.usage", "gen_ai.token.type", "output").1.round() as u64 % 5, 0);
    for module in ["outer", "part", "helper"] {
        assert_eq!(sum("gen_ai.workflow.duration", "gen_ai.workflow.name", module).0, 1, "{metrics:#?}");
    }
    for name in ["gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"] {
        assert!(sum(name, "gen_ai.provider.name", "openai").0 > 0);
    }
    let dropped = metrics.iter().filter(|point| point["name"] == "cog.telemetry.dropped");
    assert!(dropped.map(|point| point["value"].as_u64().unwrap()).eq([0, 0]), "{metrics:#?}");
}

#[test]
fn content_is_exported_on_request_without_keys() {
    let (directory, mock, mut collector) = (directory(), Mock::start(replies()), Collector::start(&[]));
    let variables = [
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    run(directory.path(), &mock, &collector.url, &variables);
    let export = collector.export();
    let shown = export.to_string();
    assert!(!shown.contains("sk-canary"), "{shown}");
    let spans = export["items"].as_array().unwrap();
    let of = |name: &str, key: &str| {
        let span = spans.iter().find(|span| span["name"] == name).unwrap();
        span["attributes"][key].as_str().unwrap_or_else(|| panic!("{key}: {span:#}")).to_owned()
    };
    let messages: Value = serde_json::from_str(&of("chat gpt-4.1", "gen_ai.input.messages")).unwrap();
    assert_eq!(messages[0]["role"], "user");
    let answer: Value = serde_json::from_str(&of("chat gpt-4.1", "gen_ai.output.messages")).unwrap();
    assert!(answer[0]["parts"][0]["content"].as_str().unwrap().contains("Nothing was unclear."));
    assert!(of("invoke_workflow outer", "gen_ai.input.messages").contains("why?"));
    assert!(of("execute_tool helper", "gen_ai.tool.call.arguments").contains("query"));
    assert!(of("execute_tool helper", "gen_ai.tool.call.result").contains("fine"));
    let outer = spans.iter().find(|span| span["name"] == "invoke_workflow outer").unwrap();
    assert_eq!(outer["events"][0]["gen_ai.evaluation.explanation"], "Fine.");
}

#[test]
fn failed_run_has_the_code_of_its_error() {
    let (directory, mut collector) = (directory(), Collector::start(&[]));
    let mock = Mock::start([Reply::error(401, "no")]);
    let mut command = command(directory.path(), &mock, &collector.url);
    let output = command.args(["run", "part", "--args", "why?"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    let export = collector.export();
    let spans = export["items"].as_array().unwrap();
    assert_eq!(spans.len(), 2, "{spans:#?}");
    for span in spans {
        assert_eq!((&span["error"], &span["message"]), (&json!(true), &json!("")), "{span:#}");
        assert_eq!(span["attributes"]["error.type"], envelope["error"]["code"], "{span:#}");
    }
}

/// Runs rows of a batch. Returns the lines of stderr about telemetry.
fn batch(rows: usize, collector: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let (directory, mock) = (directory(), Mock::start([Reply::text(ANSWER)]));
    let lines: String = (0..rows).map(|row| format!("{{\"query\":\"row {row}\"}}\n")).collect();
    std::fs::write(directory.path().join("rows.jsonl"), lines).unwrap();
    let mut command = command(directory.path(), &mock, collector);
    command.args(["batch", "part", "rows.jsonl", "-o", "out.jsonl"]).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let written = std::fs::read_to_string(directory.path().join("out.jsonl")).unwrap();
    assert_eq!(written.lines().count(), rows);
    stderr.lines().filter(|line| line.contains("telemetry")).map(str::to_owned).collect()
}

#[test]
fn collector_that_is_gone_costs_one_line() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lines = batch(40, &format!("http://{gone}"), &[]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("80 spans and 1 exports of metrics were not delivered"), "{lines:?}");
}

#[test]
fn collector_that_never_answers_holds_up_no_row() {
    let mut collector = Collector::start(&["never"]);
    let variables = [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    let lines = batch(40, &collector.url, &variables);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("80 spans") && lines[0].contains("did not answer within"), "{lines:?}");
    assert_eq!(collector.items(1, "/v1/traces").len(), 5);
}

#[test]
fn collector_without_metrics_gets_the_traces() {
    let (directory, mock) = (directory(), Mock::start(replies()));
    let mut collector = Collector::start(&["200", "404"]);
    let output = run(directory.path(), &mock, &collector.url, &[]);
    assert_eq!(collector.items(2, "/v1/traces").len(), 8);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr.lines().find(|line| line.contains("telemetry")).unwrap();
    assert!(line.contains("0 spans and 1 exports") && line.contains("status 404"), "{line}");
}

#[test]
fn unsupported_protocol_is_named() {
    let (directory, mock) = (directory(), Mock::start(replies()));
    let output =
        run(directory.path(), &mock, "http://127.0.0.1:9", &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("OTEL_EXPORTER_OTLP_PROTOCOL: `grpc` is not supported"), "{stderr}");
}

/// A server over HTTP. Dropping it kills it.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(directory: &Path, mock: &Mock, collector: &str) -> Self {
        let mut command = command(directory, mock, collector);
        command.args(["serve", "--port", "0"]).env("OTEL_BSP_SCHEDULE_DELAY", "50").stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.split_once("modules at ")?.1.split_whitespace().next()?.to_owned())
        });
        std::thread::spawn(move || lines.for_each(|line| eprintln!("cog: {}", line.unwrap_or_default())));
        Self { child, url: url.unwrap() }
    }

    fn post(&self, path: &str, headers: &[&str], body: &Value) -> Value {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-d", &body.to_string(), "-H", "content-type: application/json"]);
        curl.args(headers.iter().flat_map(|header| ["-H", header])).arg(format!("{}{path}", self.url));
        let output = curl.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let json = text
            .lines()
            .rev()
            .find_map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok());
        json.unwrap_or_else(|| panic!("{text}"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the next exported span of a run.
fn next_run(collector: &mut Collector) -> Value {
    loop {
        let export = collector.export();
        let items = export["items"].as_array().unwrap();
        let is_run = |span: &&Value| span["name"] == "invoke_workflow part";
        if let Some(run) = items.iter().find(is_run) {
            return run.clone();
        }
    }
}

#[test]
fn server_continues_the_traces_of_its_callers() {
    let (directory, mock, mut collector) =
        (directory(), Mock::start([Reply::text(ANSWER)]), Collector::start(&[]));
    let serving = Serving::start(directory.path(), &mock, &collector.url);
    let header = format!("traceparent: 00-{TRACE}-{PARENT}-01");
    let envelope =
        serving.post("/v1/modules/part/execute", &[&header], &json!({ "input": { "query": "why?" } }));
    assert_eq!(envelope["meta"]["trace_id"], TRACE, "{envelope:#}");
    let run = next_run(&mut collector);
    assert_eq!((&run["trace"], &run["parent"]), (&json!(TRACE), &json!(PARENT)));

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": format!("00-{TRACE}-00000000000000aa-01"),
    });
    let params = json!({ "name": "part", "arguments": { "query": "why?" }, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: part",
        &header,
    ];
    let result = serving.post("/mcp", &headers, &call);
    assert_eq!(result["result"]["structuredContent"]["ok"], true, "{result:#}");
    let run = next_run(&mut collector);
    assert_eq!((&run["trace"], &run["parent"]), (&json!(TRACE), &json!("00000000000000aa")));

    serving.post("/v1/modules/part/execute", &[], &json!({ "input": { "query": "why?" } }));
    let run = next_run(&mut collector);
    assert_eq!((run["trace"] != TRACE, &run["parent"]), (true, &json!("")), "a trace of its own");

    let unsampled = format!("traceparent: 00-{TRACE}-{PARENT}-00");
    serving.post("/v1/modules/part/execute", &[&unsampled], &json!({ "input": { "query": "why?" } }));
    serving.post("/v1/modules/part/execute", &[&header], &json!({ "input": { "query": "why?" } }));
    let run = next_run(&mut collector);
    assert_eq!((&run["trace"], &run["sampled"]), (&json!(TRACE), &json!(true)), "the caller decides");
}
