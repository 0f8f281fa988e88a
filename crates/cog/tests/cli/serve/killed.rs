//! A composition whose server is killed continues from the answers of its parts that were stored.

use std::{
    io::Read as _,
    time::{Duration, Instant},
};

use cog_testkit::Mock;
use serde_json::Value;

use super::{Serving, serving};
use crate::{
    review_model::{PARTS, calls, model},
    support::Place,
};

fn server(place: &Place, mock: &Mock) -> Serving {
    serving(place, mock, &["--state-dir", "state"])
}

/// Starts a run, and returns the id of its session once the client has it.
fn begin(server: &Serving) -> (std::net::TcpStream, String) {
    let head = "POST /v1/modules/review-pipeline/execute HTTP/1.1\r\nAccept: application/x-ndjson";
    let mut stream = server.send(head, r#"{"input": {"code": "def f(u): return db.query(u)"}}"#);
    let mut text = String::new();
    while !text.contains("\"session_id\":\"") {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let id = text.split("\"session_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    (stream, id)
}

/// Returns the last chunk of a session, which continues if it was interrupted.
fn resume(server: &Serving, id: &str) -> Value {
    let head = format!(
        "GET /v1/sessions/{id}/events HTTP/1.0\r\nAccept: application/x-ndjson\r\nLast-Event-ID: {id}:0"
    );
    let mut answer = String::new();
    server.send(&head, "").read_to_string(&mut answer).unwrap();
    let last = answer.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{answer}"))
}

/// Returns whether each part has a stored answer, and whether the run has ended.
fn stored(place: &Place, id: &str) -> ([bool; 4], bool) {
    let file = place.read(&format!("state/sessions/{id}.ndjson"));
    let lines: Vec<Value> =
        file.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect();
    let has_answer =
        |part: &str| lines.iter().any(|line| line["part"] == part && line["part_answer"].is_object());
    (PARTS.map(has_answer), lines.iter().any(|line| line.get("final").is_some()))
}

/// Runs the pipeline to its end, and returns its data and its duration.
fn reference() -> (Value, Duration) {
    let (place, mock) = (Place::new(), model(Duration::from_millis(2)));
    let server = server(&place, &mock);
    let started = Instant::now();
    let (mut stream, id) = begin(&server);
    let mut text = String::new();
    while !text.contains("\"final\":true") {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let time = started.elapsed();
    let data = resume(&server, &id)["data"].clone();
    assert_eq!((calls(&mock), data["verdict"].as_str()), ([1; 4], Some("reject")));
    server.signal("KILL");
    assert_eq!(server.ended(), None);
    (data, time)
}

/// Kills the server at this number of moments, spread over the duration of a run, and continues each time.
fn kill_and_continue(kills: u32) {
    let (data, time) = reference();
    for kill in 0..kills {
        let (place, mock) = (Place::new(), model(Duration::from_millis(2)));
        let killed = server(&place, &mock);
        let (_stream, id) = begin(&killed);
        // Golden-ratio steps visit all moments of the run, and no two kills the same.
        let moment = time.mul_f64(f64::from(kill + 1) * 0.618_034 % 1.0);
        std::thread::sleep(moment);
        killed.signal("KILL");
        assert_eq!(killed.ended(), None);
        std::thread::sleep(Duration::from_millis(20)); // the mock may still read the last request
        let before = calls(&mock);
        let (stored, is_finished) = stored(&place, &id);

        let continued = server(&place, &mock);
        let last = resume(&continued, &id);
        assert_eq!(last["data"], data, "killed after {moment:?}: {last}");
        let after = calls(&mock);
        for (number, part) in PARTS.iter().enumerate() {
            let expected = usize::from(!stored[number] && !is_finished);
            let again = after[number] - before[number];
            assert_eq!(again, expected, "{part}, killed after {moment:?}; stored: {stored:?}");
        }
        continued.signal("KILL");
        assert_eq!(continued.ended(), None);
    }
}

#[test]
fn killed_composition_continues_from_its_stored_answers() {
    kill_and_continue(5);
}

#[test]
#[ignore = "takes a minute; run it with `-- --ignored killed`"]
fn composition_killed_50_times_continues_from_its_stored_answers() {
    kill_and_continue(50);
}
