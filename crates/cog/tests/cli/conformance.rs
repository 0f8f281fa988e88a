//! `cog conformance` against this runtime, and against one that is broken on purpose.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Stdio},
    sync::mpsc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::Response,
};
use serde_json::Value;

use crate::support::{Place, json, snapshot, stderr, stdout};

/// Returns the names of the cases of a level that failed, except optional ones.
fn failed(report: &Value, level: u8) -> Vec<&str> {
    let level = &report["levels"][usize::from(level) - 1];
    let cases = level["cases"].as_array().unwrap().iter();
    let failed = cases.filter(|case| case["passed"] == false && case["optional"] == false);
    failed.map(|case| case["name"].as_str().unwrap()).collect()
}

/// Returns the entries of the checklist and the name of each case that failed, except optional ones.
fn failed_with_codes(report: &Value) -> Vec<String> {
    let levels = report["levels"].as_array().unwrap().iter();
    let cases = levels.flat_map(|level| level["cases"].as_array().unwrap());
    let failed = cases.filter(|case| case["passed"] == false && case["optional"] == false);
    let line = |case: &Value| {
        let codes: Vec<&str> = case["codes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        format!("{} {}", codes.join(" "), case["name"].as_str().unwrap())
    };
    failed.map(line).collect()
}

/// Returns what differs in a case.
fn differences<'a>(report: &'a Value, name: &str) -> &'a Value {
    &case(report, name)["differences"]
}

/// Returns the report of a case.
fn case<'a>(report: &'a Value, name: &str) -> &'a Value {
    let levels = report["levels"].as_array().unwrap().iter();
    let mut cases = levels.flat_map(|level| level["cases"].as_array().unwrap());
    cases.find(|case| case["name"] == name).unwrap()
}

#[test]
fn this_runtime_passes_every_level() {
    let output = Place::new().cog(["conformance"]).output().unwrap();
    let report = json(&output);
    for level in 1..=4 {
        assert_eq!(failed(&report, level), Vec::<&str>::new());
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn setup_for_another_runtime_is_shown() {
    let place = Place::new();
    let mut command = place.cog(["conformance", "--write-modules", "modules", "--mock-port", "9000"]);
    let text = stdout(&command.output().unwrap());
    assert!(text.contains("http://127.0.0.1:9000/v1"), "{text}");
    let validated = place.cog(["validate", "modules/level1-01"]).output().unwrap();
    assert!(validated.status.success(), "{}", stderr(&validated));
}

#[test]
fn runtime_that_does_not_respond_is_an_error() {
    let place = Place::new();
    let port = free_port().to_string();
    let args = ["conformance", "--url", "http://127.0.0.1:9", "--mock-port", &port];
    let output = place.cog(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("error[E4001]: http://127.0.0.1:9 does not respond"),
        "{}",
        stderr(&output)
    );
    snapshot!("conformance_of_no_url", place.cog(["conformance", "--url", "runtime"]));
}

/// A fault of a runtime.
#[derive(Debug, Clone, Copy)]
enum Break {
    /// Nothing; the runtime has only no modules.
    Modules,
    /// Answers have no `meta.confidence`.
    Confidence,
    /// Every status is 200.
    Status,
    /// All chunks have the same `seq`.
    Seq,
    /// Every second `seq` is left out.
    Gaps,
    /// Envelopes have an unknown member.
    Member,
    /// Streams are answered with one envelope.
    Streams,
}

#[test]
fn report_names_what_a_broken_runtime_lacks() {
    let place = Place::new();
    let mock_port = free_port().to_string();
    let modules = place.cog(["conformance", "--write-modules", "cognitive/modules"]).output().unwrap();
    assert!(modules.status.success(), "{}", stderr(&modules));
    let server = Server::start(&place, &mock_port);
    let run = |fault, format| {
        let proxy = proxy(server.url.clone(), fault);
        let url = format!("http://127.0.0.1:{proxy}");
        let args =
            ["conformance", "--url", &url, "--mock-port", &mock_port, "--level", "4", "--format", format];
        let output = place.cog(args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{fault:?}: {}", stderr(&output));
        output
    };
    let check = |fault| json(&run(fault, "json"));
    let success = "F/a-success-has-ok-meta-data-and-nothing-else";

    let report = check(Break::Confidence);
    assert_eq!(report["level"], 0);
    let expected = serde_json::json!([
        "body.meta.confidence: found nothing, expected 0.95",
        "response: meta.confidence: `confidence` is required but missing [required]",
    ]);
    assert_eq!(*differences(&report, success), expected);

    let text = stdout(&run(Break::Confidence, "human"));
    let listed = failed_with_codes(&report);
    assert!(listed.contains(&format!("F01 F02 S01 S02 Y08 {success}")), "{listed:?}");
    for line in &listed {
        assert!(text.lines().any(|other| other.trim() == line), "{line}: {text}");
    }
    assert!(text.ends_with(" reaches no level; level 4 is required\n"), "{text}");

    let report = check(Break::Status);
    assert_eq!(report["level"], 0);
    assert_eq!(*differences(&report, success), Value::Null);
    let expected = serde_json::json!(["status: 200 does not pass $min: 400"]);
    assert_eq!(*differences(&report, "F/a-failure-has-ok-meta-error"), expected);

    let report = check(Break::Seq);
    assert_eq!(failed(&report, 1), Vec::<&str>::new());
    assert_eq!(failed(&report, 2), Vec::<&str>::new());
    let stream = "levels/a-stream-of-events-has-all-chunks-in-order";
    assert!(failed(&report, 4).contains(&stream));
    assert!(differences(&report, stream)[0].as_str().unwrap().contains("seq"), "{report}");

    let report = check(Break::Member);
    assert_eq!(report["level"], 0);
    let found = differences(&report, "F/a-failure-has-ok-meta-error")[0].as_str().unwrap();
    assert!(found.starts_with("response: note: unknown key of an envelope"), "{found}");

    // Numbers that only rise are what the specification requires.
    let report = check(Break::Gaps);
    assert_eq!(*differences(&report, stream), Value::Null);
    let beyond = &case(&report, stream)["beyond"];
    assert!(beyond[0].as_str().unwrap().ends_with("[beyond_specification]"), "{beyond}");

    let report = check(Break::Streams);
    assert!(
        failed(&report, 4).contains(&stream)
            && !failed(&report, 4).contains(&"levels/capabilities-are-declared")
    );
    let expected = "headers.content-type: \"application/json\" does not pass $matches: \"text/event-stream\"";
    assert_eq!(differences(&report, stream)[0], expected);

    let report = check(Break::Modules);
    assert!(report["hint"].as_str().unwrap().contains("does not have the modules"), "{report}");
}

/// `cog serve` with the model of the check.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(place: &Place, mock_port: &str) -> Self {
        let mut command = place.cog(["serve", "--port", "0"]);
        command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none");
        command.env("OPENAI_BASE_URL", format!("http://127.0.0.1:{mock_port}/v1"));
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (send, receive) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(send.send(line))));
        let url = receive.iter().find_map(|line| {
            let (_, rest) = line.split_once(" modules at ")?;
            rest.split_whitespace().next().map(str::to_owned)
        });
        Self { child, url: url.unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server that passes requests on and breaks the responses. Returns its port.
fn proxy(url: String, fault: Break) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test is a client of its own server")]
    let http = {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::new()
    };
    let routes = Router::new().fallback(forward).with_state((http, url, fault));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, routes).await.unwrap();
        });
    });
    port
}

async fn forward(
    State((http, url, fault)): State<(reqwest::Client, String, Break)>,
    method: Method,
    uri: Uri,
    mut headers: HeaderMap,
    body: Bytes,
) -> Response {
    headers.remove(header::HOST);
    if matches!(fault, Break::Streams) {
        headers.insert("x-cognitive-response-mode", "sync".parse().unwrap());
    }
    let path = uri.path().to_owned();
    let path = if matches!(fault, Break::Modules) { path.replace("/level", "/other") } else { path };
    let response = http.request(method, format!("{url}{path}")).headers(headers).body(body).send().await;
    let response = response.unwrap();
    let (status, kind) = (response.status(), response.headers().get(header::CONTENT_TYPE).cloned());
    let warning = response.headers().get("x-cognitive-warning").cloned();
    let text = broken(&response.text().await.unwrap(), fault);
    let status = if matches!(fault, Break::Status) { StatusCode::OK } else { status };
    let mut builder = Response::builder().status(status);
    for (name, value) in [("content-type", kind), ("x-cognitive-warning", warning)] {
        builder = value.into_iter().fold(builder, |builder, value| builder.header(name, value));
    }
    builder.body(Body::from(text)).unwrap()
}

/// Breaks the body of a response.
fn broken(text: &str, fault: Break) -> String {
    match fault {
        Break::Confidence => match serde_json::from_str::<Value>(text) {
            Ok(mut envelope) if envelope.get("meta").is_some() => {
                envelope["meta"].as_object_mut().unwrap().remove("confidence");
                envelope.to_string()
            }
            _ => text.to_owned(),
        },
        Break::Member => match serde_json::from_str::<Value>(text) {
            Ok(mut envelope) if envelope.get("meta").is_some() => {
                envelope["note"] = "mine".into();
                envelope.to_string()
            }
            _ => text.to_owned(),
        },
        Break::Seq => renumbered(text, |_| 1),
        Break::Gaps => renumbered(text, |seq| 2 * seq - 1),
        Break::Modules | Break::Status | Break::Streams => text.to_owned(),
    }
}

/// Replaces every `seq`.
fn renumbered(text: &str, number: impl Fn(u64) -> u64) -> String {
    let mut parts = text.split("\"seq\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let seq = part[..part.len() - rest.len()].parse().unwrap();
        format!("{text}\"seq\":{}{rest}", number(seq))
    })
}
