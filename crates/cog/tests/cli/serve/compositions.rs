//! The compositions that ship, as server-sent events.

use std::io::Read as _;

use cog_testkit::Mock;
use serde_json::{Value, json};

use super::{Serving, serving};
use crate::{
    compositions::{COMPOSITIONS, check},
    golden::{Golden, goldens, replies},
    support::{Place, json as parsed, stdout, with_stdin},
};

/// Runs a golden test, and returns the server-sent events.
fn events(server: &Serving, golden: &Golden) -> String {
    let head = format!("POST /v1/modules/{}/execute HTTP/1.0\r\nAccept: text/event-stream", golden.module);
    let mut response = String::new();
    server.send(&head, &json!({ "input": golden.input }).to_string()).read_to_string(&mut response).unwrap();
    let (head, events) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.0 200") && head.contains("text/event-stream"), "{response}");
    events.to_owned()
}

/// Returns the data of the events of this kind.
fn of_kind(events: &str, kind: &str) -> Vec<Value> {
    let events = events.split("\n\n").filter(|event| event.contains(&format!("event: {kind}\n")));
    let data = events.map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn compositions_stream_their_golden_answers() {
    let (place, mock) = (Place::new(), Mock::start(replies()));
    let server = serving(&place, &mock, &[]);
    for golden in COMPOSITIONS.into_iter().flat_map(goldens) {
        let events = events(&server, &golden);
        let [last] = &*of_kind(&events, "final") else { panic!("{events}") };
        check(&golden, last);
        let verify = place.cog(["verify", "-", "--kind", "stream", "--module", &golden.module]);
        let verified = with_stdin(verify, &events);
        assert_eq!(parsed(&verified)["valid"], true, "{}", stdout(&verified));
        let progress = of_kind(&events, "progress");
        for part in last["meta"]["parts"].as_array().unwrap().iter().filter(|part| part["status"] == "done") {
            let is_end = |event: &Value| event["progress"]["part"]["report"] == *part;
            assert!(progress.iter().any(is_end), "{part}: {events}");
        }
    }
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}
