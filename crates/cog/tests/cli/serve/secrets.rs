//! Keys that a provider or its model repeats.

use std::{io::Read as _, path::Path};

use cog_testkit::{Mock, Reply, Wire};

use super::{Serving, state::REPLY};
use crate::support::Place;

/// A usual key, and one that JSON and logs escape.
const KEYS: [&str; 2] = ["sk-proj-canary-0123456789", r#"sk-"canary\0123456789"#];

fn serving(place: &Place, mock: &Mock, key: &str, format: &str) -> Serving {
    let args = ["serve", "--port", "0", "--state-dir", "state", "-vvv", "--log-format", format];
    let mut command = place.cog(args);
    command.env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    Serving::start(command)
}

/// Returns the response to one run: an envelope or a stream.
fn run(server: &Serving, accept: &str) -> String {
    let line = "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nConnection: close";
    let head = format!("{line}\r\nAccept: {accept}");
    let mut answer = String::new();
    server.send(&head, r#"{"input": {"code": "x"}}"#).read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the log of the server until it exits.
fn log(mut server: Serving) -> String {
    server.signal("TERM");
    let mut log = String::new();
    server.messages.read_to_string(&mut log).unwrap();
    assert_eq!(server.ended(), Some(0));
    log
}

#[expect(clippy::disallowed_methods, reason = "a test reads what a server wrote")]
fn files(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => files(&path),
            false => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
        })
        .collect()
}

#[test]
fn key_in_model_name_is_masked_everywhere() {
    for key in KEYS {
        for format in ["text", "json"] {
            let (place, mock) = (Place::new(), Mock::start([Reply::text(REPLY).model(key)]));
            let server = serving(&place, &mock, key, format);
            let answers = [run(&server, "application/json"), run(&server, "text/event-stream")];
            let files = files(&place.path().join("state"));
            for text in answers.iter().chain([&files]) {
                assert!(text.contains(r#""model":"openai/***""#), "{text}");
                assert!(!text.contains("canary"), "{text}");
            }
            let log = log(server);
            assert!(log.contains("reply started") && !log.contains("canary"), "{log}");
        }
    }
}

#[test]
fn key_in_reply_is_masked_in_log() {
    for key in KEYS {
        let escaped = serde_json::to_string(key).unwrap();
        let in_data = REPLY.replace("\"Nothing stands out.\"", &escaped);
        let replies = [
            Reply::text(in_data),
            Reply::text(key),
            Reply::error(400, key),
            Reply::text(REPLY).reasoning(key),
        ];
        for (reply, format) in
            replies.into_iter().flat_map(|reply| ["text", "json"].map(|it| (reply.clone(), it)))
        {
            let (place, mock) = (Place::new(), Mock::start([reply]));
            let server = serving(&place, &mock, key, format);
            run(&server, "application/json");
            run(&server, "application/x-ndjson");
            let log = log(server);
            assert!(log.contains("answered") && !log.contains("canary"), "{log}");
        }
    }
}
