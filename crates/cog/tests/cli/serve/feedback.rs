//! Labels that clients give to their runs: `POST /v1/sessions/{id}/feedback`.

use std::io::Read as _;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use super::{Serving, state::REPLY};
use crate::support::Place;

const LABELS: &str = ".local/state/cog/logs/labels.ndjson";
const ALICE: &str = "alice-token-0123456789abcdef";
const BOB: &str = "bobby-token-0123456789abcdef";
const OPERATOR: &str = "oscar-token-0123456789abcdef";

/// A server that logs the runs of its clients.
struct Stage {
    place: Place,
    _mock: Mock,
    server: Serving,
}

impl Stage {
    fn start(environment: &[(&str, &str)]) -> Self {
        let (place, mock) = (Place::new(), Mock::start([Reply::text(REPLY)]));
        place.write("tokens", format!("alice:{ALICE}\nbob:{BOB}\nops:{OPERATOR} scope=metrics\n"));
        let mut command = place.cog(["serve", "--port", "0", "--token-file", "tokens"]);
        command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
        command.envs(environment.iter().copied());
        let server = Serving::start(command);
        Self { place, _mock: mock, server }
    }

    /// Returns the status and the body of a response.
    fn post(&self, token: &str, path: &str, more: &str, body: &str) -> (u16, String) {
        let head =
            format!("POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nConnection: close{more}");
        let mut text = String::new();
        self.server.send(&head, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn feedback(&self, token: &str, id: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.post(token, &format!("/v1/sessions/{id}/feedback"), "", body);
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Runs a module, and returns the trace of its envelope.
    fn run(&self, more: &str) -> String {
        let (status, body) =
            self.post(ALICE, "/v1/modules/code-reviewer/execute", more, r#"{"input": {"code": "x"}}"#);
        assert_eq!(status, 200, "{body}");
        let envelope: Value = serde_json::from_str(&body).unwrap();
        envelope["meta"]["trace_id"].as_str().unwrap().to_owned()
    }

    fn end(self) -> Place {
        self.server.signal("TERM");
        assert_eq!(self.server.ended(), Some(0));
        self.place
    }
}

const LOGGED: &[(&str, &str)] = &[("COG_LOGS_SERVER", "true"), ("COG_LOGS_CONTENTS", "true")];

#[test]
fn client_labels_its_own_runs() {
    let stage = Stage::start(LOGGED);
    let trace = stage.run("");
    let (status, receipt) =
        stage.feedback(ALICE, &trace, r#"{"label": "wrong", "note": "A test is missing."}"#);
    assert_eq!(
        (status, &receipt["label"], &receipt["module"]),
        (200, &json!("wrong"), &json!("code-reviewer"))
    );
    // Repeated by a client that lost the response.
    let again = stage.feedback(ALICE, &trace, r#"{"label": "wrong", "note": "A test is missing."}"#);
    assert_eq!(again, (200, receipt.clone()));
    let (status, error) = stage.feedback(BOB, &trace, r#"{"label": "right"}"#);
    assert_eq!((status, &error["error"]["code"]), (404, &json!("E1006")));
    let data = r#"{"verdict": "change", "issues": [], "rationale": "r"}"#;
    let (status, _) = stage.feedback(ALICE, &trace, &format!(r#"{{"label": "corrected", "data": {data}}}"#));
    assert_eq!(status, 200);
    let metrics = [ALICE, OPERATOR].map(|token| {
        let head = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}\r\nConnection: close");
        let mut text = String::new();
        stage.server.send(&head, "").read_to_string(&mut text).unwrap();
        text
    });
    assert!(!metrics[0].contains("cog_labels"), "{}", metrics[0]);
    for label in ["wrong", "corrected"] {
        let counted = format!("cog_labels_total{{module=\"code-reviewer\",label=\"{label}\"}} 1");
        assert!(metrics[1].contains(&counted), "a repeated label counts once: {}", metrics[1]);
    }
    let place = stage.end();
    let labels: Vec<Value> =
        place.read(LABELS).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(labels.len(), 2);
    assert_eq!((&labels[1]["label"], &labels[1]["client"]), (&json!("corrected"), &json!("token:alice")));
    let listed = place.cog(["logs", "--format", "json", "--label", "corrected"]).output().unwrap();
    let run = &crate::support::json(&listed)[0];
    assert_eq!((&run["id"], &run["client"]), (&receipt["run"], &json!("token:alice")));
    assert_eq!(run["contents"]["input"], json!({ "code": "x" }));
}

#[test]
fn streamed_run_is_named_by_its_session() {
    let stage = Stage::start(LOGGED);
    let accept = "\r\nAccept: application/x-ndjson";
    let (status, lines) =
        stage.post(ALICE, "/v1/modules/code-reviewer/execute", accept, r#"{"input": {"code": "x"}}"#);
    assert_eq!(status, 200);
    let session = lines.split(r#""session_id":""#).nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(stage.feedback(ALICE, &session, r#"{"label": "right"}"#).0, 200);
    assert_eq!(stage.feedback(BOB, &session, r#"{"label": "right"}"#).0, 404);
    stage.end();
}

#[test]
fn trace_of_several_runs_is_refused() {
    const PARENT: &str = "\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let stage = Stage::start(LOGGED);
    let trace = stage.run(PARENT);
    assert_eq!(trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(stage.feedback(ALICE, &trace, r#"{"label": "right"}"#).0, 200);
    stage.run(PARENT);
    let (status, error) = stage.feedback(ALICE, &trace, r#"{"label": "right"}"#);
    assert_eq!(status, 400);
    assert_eq!(error["error"]["message"], "several runs have this trace or request");
    stage.end();
}

const MESSAGES: &str = r#""messages": [{"role": "user", "content": "x"}]"#;

#[test]
fn reply_of_a_vendors_interface_is_named_by_its_id() {
    let stage = Stage::start(LOGGED);
    for (path, prompt) in [
        ("/v1/chat/completions", MESSAGES.to_owned()),
        ("/v1/responses", r#""input": "x""#.to_owned()),
        ("/v1/messages", format!(r#""max_tokens": 100, {MESSAGES}"#)),
    ] {
        let body = format!(r#"{{"model": "module:code-reviewer", {prompt}}}"#);
        let (status, text) = stage.post(ALICE, path, "", &body);
        assert_eq!(status, 200, "{path}: {text}");
        let reply: Value = serde_json::from_str(&text).unwrap();
        let id = reply["id"].as_str().unwrap();
        let (status, receipt) = stage.feedback(ALICE, id, r#"{"label": "wrong"}"#);
        assert_eq!((status, &receipt["label"]), (200, &json!("wrong")), "{path}: {receipt}");
        assert_eq!(stage.feedback(BOB, id, r#"{"label": "right"}"#).0, 404, "{path}");
        let trace = reply["cognitive"]["meta"]["trace_id"].as_str().unwrap();
        let by_trace = stage.feedback(ALICE, trace, r#"{"label": "wrong"}"#);
        assert_eq!(by_trace, (200, receipt), "{path}: the same run");
        let body = format!(r#"{{"model": "module:code-reviewer", "stream": true, {prompt}}}"#);
        let (status, events) = stage.post(ALICE, path, "", &body);
        assert_eq!(status, 200, "{path}: {events}");
        let id = events.split(r#""id":""#).nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(stage.feedback(ALICE, id, r#"{"label": "right"}"#).0, 200, "{path}: {id}");
    }
    let place = stage.end();
    assert_eq!(place.read(LABELS).lines().count(), 6);
}

#[test]
fn request_id_names_the_run_unless_it_was_sent_twice() {
    const ID: &str = "\r\nX-Request-Id: order-7";
    let stage = Stage::start(LOGGED);
    stage.run(ID);
    assert_eq!(stage.feedback(ALICE, "order-7", r#"{"label": "right"}"#).0, 200);
    for part in ["order", "order-77", "chatcmpl-", "msg_order-"] {
        assert_eq!(stage.feedback(ALICE, part, r#"{"label": "right"}"#).0, 404, "{part}");
    }
    stage.run(ID);
    let (status, error) = stage.feedback(ALICE, "msg_order-7", r#"{"label": "right"}"#);
    assert_eq!((status, &error["error"]["code"]), (400, &json!("E1006")));
    stage.end();
}

#[test]
fn invalid_feedback_is_refused() {
    let stage = Stage::start(LOGGED);
    let trace = stage.run("");
    for (body, status, code) in [
        ("{", 400, "E1000"),
        (r#"{"label": "perhaps"}"#, 400, "E1004"),
        (r#"{"label": "corrected"}"#, 400, "E1002"),
        (r#"{"label": "corrected", "data": {"verdict": "perhaps"}}"#, 400, "E1001"),
    ] {
        let (found, error) = stage.feedback(ALICE, &trace, body);
        assert_eq!((found, &error["error"]["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(stage.feedback(ALICE, "0af7651916cd43dd8448eb211c80319c", r#"{"label": "right"}"#).0, 404);
    // A client may give 50 labels at once, then ten each second.
    let statuses: Vec<u16> =
        (0..80).map(|_| stage.feedback(ALICE, &trace, r#"{"label": "right"}"#).0).collect();
    assert_eq!((statuses[0], statuses.contains(&429)), (200, true));
    assert_eq!(
        stage.feedback(BOB, &trace, r#"{"label": "right"}"#).0,
        404,
        "another client has its own rate"
    );
    let place = stage.end();
    assert_eq!(place.read(LABELS).lines().count(), 1);
}

#[test]
fn runs_of_clients_are_logged_only_if_the_operator_says_so() {
    let stage = Stage::start(&[("COG_LOGS_CONTENTS", "true")]);
    let (status, body) =
        stage.post(ALICE, "/v1/modules/code-reviewer/execute", "", r#"{"input": {"code": "x"}}"#);
    assert!(status == 200 && !body.contains("trace_id"), "{body}");
    let (status, error) = stage.feedback(ALICE, "anything", r#"{"label": "right"}"#);
    assert_eq!((status, &error["error"]["code"]), (404, &json!("E1006")));
    let place = stage.end();
    assert!(!place.path().join(".local/state/cog/logs").exists());
}
