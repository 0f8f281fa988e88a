//! What a server with a state directory restores after it was killed.

use std::io::Read as _;

use cog_testkit::{Mock, Reply};
use serde_json::Value;

use super::{Serving, begun, serving};
use crate::support::{Place, stderr};

pub(super) const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;

/// Returns the lines of the response to a request for a session's chunks.
fn events(server: &Serving, id: &str, more: &str) -> Vec<String> {
    let head = format!("GET /v1/sessions/{id}/events HTTP/1.0\r\nAccept: application/x-ndjson{more}");
    let mut answer = String::new();
    server.send(&head, "").read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{answer}");
    body.lines().map(str::to_owned).collect()
}

fn last(lines: &[String]) -> Value {
    serde_json::from_str(lines.last().unwrap()).unwrap()
}

#[test]
fn restarted_server_reruns_unfinished_session() {
    let place = Place::new();
    let mock = Mock::start([begun(), Reply::text(REPLY)]);
    let start = || serving(&place, &mock, &["--state-dir", "state"]);
    let server = start();
    let (_stream, said) = server.read_stream();
    server.signal("KILL");
    assert_eq!(server.ended(), None);
    let first: Value = said.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap();
    let id = first["session_id"].as_str().unwrap();

    let server = start();
    assert_eq!(last(&events(&server, id, ""))["error"]["details"]["reason"], "shutdown");
    let resumed = events(&server, id, &format!("\r\nLast-Event-ID: {id}:1"));
    assert!(resumed[0].contains(r#""resumed":true,"resume_from_seq":1"#), "{resumed:?}");
    assert!(resumed.iter().any(|line| line.contains(r#""type":"snapshot","data":{}"#)), "{resumed:?}");
    assert_eq!(last(&resumed)["data"]["verdict"], "approve");
    let before = events(&server, id, "");
    server.signal("KILL");
    assert_eq!(server.ended(), None);

    let server = start();
    assert_eq!(events(&server, id, ""), before, "byte for byte");
    assert_eq!(mock.requests().len(), 2);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn what_a_client_has_spent_counts_after_a_restart() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY), Reply::text(REPLY)]);
    let start = || serving(&place, &mock, &["--state-dir", "state", "--client-max-calls", "2"]);
    let ask = |server: &Serving| {
        let head = "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nConnection: close";
        let mut answer = String::new();
        server.send(head, r#"{"input": {"code": "x"}}"#).read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let server = start();
    assert_eq!(ask(&server), "200");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));

    // One that is killed has saved what was spent up to the last second.
    let server = start();
    assert_eq!(ask(&server), "200");
    while !place.read("state/budgets.json").contains(r#""calls":2"#) {
        std::thread::yield_now();
    }
    server.signal("KILL");
    assert_eq!(server.ended(), None);

    let server = start();
    assert_eq!(ask(&server), "429");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));

    place.write("state/budgets.json", "no budgets");
    let output = place.cog(["serve", "--port", "0", "--state-dir", "state"]).output().unwrap();
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("budgets.json") && messages.contains("Remove the file"), "{messages}");
}
