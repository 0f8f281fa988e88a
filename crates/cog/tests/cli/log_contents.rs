//! What users and models write is in no log, except in that of `cog run -vv`.

#[cfg(unix)]
use std::io::Read as _;
use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};

#[cfg(unix)]
use crate::serve::Serving;
use crate::support::{Place, stderr};

const INPUT: &str = "canary-in-4711";
const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.95, "risk": "low", "explain": "canary-out-4711"},
    "data": {"answer": "canary-out-4711", "rationale": "canary-out-4711 in full."}}"#;

/// Every way to log: whether it is JSON, and `-v` up to three times.
const LOGS: [&[&str]; 8] = [
    &[],
    &["-v"],
    &["-vv"],
    &["-vvv"],
    &["--log-format", "json"],
    &["--log-format", "json", "-v"],
    &["--log-format", "json", "-vv"],
    &["--log-format", "json", "-vvv"],
];

/// Replies, and errors that repeat the request or the reply as some vendors and gateways do.
fn replies() -> Vec<Reply> {
    vec![
        Reply::text(ANSWER).reasoning("canary-thought-4711"),
        Reply::text("canary-out-4711, which is no JSON"),
        Reply::text(r#"{"ok": false, "meta": {}, "error": {"code": "E1001", "message": "canary-out-4711"}}"#),
        Reply::error(400, "invalid prompt: canary-in-4711"),
        Reply::error(429, "too many requests such as canary-in-4711"),
        Reply::error(503, "cannot process canary-in-4711"),
    ]
}

fn place() -> Place {
    let place = Place::new();
    assert!(place.cog(["new", "m", "--in", "."]).output().unwrap().status.success());
    place.write("rows.jsonl", format!("{{\"query\": \"{INPUT}\"}}\n"));
    place.write("m/tests/case1.input.json", format!("{{\"query\": \"{INPUT}\"}}"));
    place
}

fn asking<'a>(place: &Place, mock: &Mock, args: &[&'a str], log: &[&'a str]) -> Command {
    let mut command = place.cog(args.iter().chain(log).copied());
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command.env("COG_RETRIES", "1").env("LLM_MODEL", "gpt-4.1");
    command
}

fn check(messages: &str, log: &[&str]) {
    assert!(!messages.contains("canary"), "{log:?}: {messages}");
    let is_verbose = log.iter().any(|flag| flag.starts_with("-v"));
    assert!(!is_verbose || messages.contains("calling the provider"), "{log:?}: {messages}");
}

#[test]
fn run_logs_contents_only_on_request() {
    for log in LOGS {
        let (place, mock) = (place(), Mock::start([replies().remove(0)]));
        let output = asking(&place, &mock, &["run", "./m", "--args", INPUT], log).output().unwrap();
        let messages = stderr(&output);
        let shows = log.iter().any(|flag| flag.starts_with("-vv"));
        if !shows {
            check(&messages, log);
            assert!(!messages.contains("this log contains"), "{messages}");
            continue;
        }
        assert!(
            messages.contains("canary-out-4711") && messages.contains("canary-thought-4711"),
            "{messages}"
        );
        assert!(messages.lines().next().unwrap().contains("this log contains"), "{messages}");
    }
}

#[test]
fn batch_and_test_log_no_contents() {
    let commands: [&[&str]; 2] =
        [&["batch", "./m", "rows.jsonl", "-o", "out.jsonl"], &["test", "./m", "--provider", "openai"]];
    // A batch waits for a provider that is overloaded or down.
    for reply in replies().into_iter().take(4) {
        for (log, args) in LOGS.iter().flat_map(|log| commands.map(|args| (log, args))) {
            let (place, mock) = (place(), Mock::start([reply.clone()]));
            let output = asking(&place, &mock, args, log).output().unwrap();
            check(&stderr(&output), log);
        }
    }
}

#[cfg(unix)]
#[test]
fn server_logs_no_contents() {
    for log in LOGS {
        let (place, mock) = (place(), Mock::start(replies()));
        let mut server = Serving::start(asking(&place, &mock, &["serve", "./m", "--port", "0"], log));
        for accept in ["application/json", "text/event-stream"].repeat(4) {
            let head =
                format!("POST /v1/modules/m/execute HTTP/1.1\r\nConnection: close\r\nAccept: {accept}");
            let body = format!("{{\"input\": {{\"query\": \"{INPUT}\"}}}}");
            let mut answer = String::new();
            server.send(&head, &body).read_to_string(&mut answer).unwrap();
            assert!(answer.contains("m"), "{answer}");
        }
        server.signal("TERM");
        let mut messages = String::new();
        server.messages.read_to_string(&mut messages).unwrap();
        check(&messages, log);
    }
}
