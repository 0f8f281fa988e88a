//! Several servers that share their sessions.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ANSWER, Client, Nats, Working, cog, eventually, place};

const ALICE: &str = "alice-0123456789-canary";
const BOB: &str = "bob-0123456789-canary";

/// A running server.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(place: &Path, mock: &Mock, nats: &Nats) -> Self {
        let args = ["serve", "--port", "0", "--token-file", "tokens", "--nats", &nats.url()];
        let mut child = cog(place, mock, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("modules at http://") {
            assert_ne!(messages.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
        std::thread::spawn(move || messages.read_to_end(&mut Vec::new()));
        let url = format!("http://{}", lines.split("http://").nth(1).unwrap().split(' ').next().unwrap());
        Self { child, url }
    }

    fn curl(&self, token: &str, path: &str, args: &[&str]) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["-sN", "-H", "Accept: application/x-ndjson", "-H", "Content-Type: application/json"]);
        curl.args(["-H", &format!("Authorization: Bearer {token}"), &format!("{}{path}", self.url)])
            .args(args);
        curl
    }

    /// Starts a run, and reads its chunks up to the fifth.
    fn begin(&self, is_detached: bool) -> Begun {
        let body = json!({ "input": { "query": "x" }, "_options": { "detach": is_detached } }).to_string();
        let execute = "/v1/modules/m/execute";
        let mut curl = match is_detached {
            true => {
                let lines = self.lines(ALICE, execute, &["-d", &body]);
                let events = serde_json::from_str::<Value>(&lines[0]).unwrap()["events_url"].clone();
                self.curl(ALICE, events.as_str().unwrap(), &[])
            }
            false => self.curl(ALICE, execute, &["-d", &body]),
        };
        let mut client = curl.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(client.stdout.take().unwrap());
        let mut lines = Vec::new();
        while seq(&lines) < 5 {
            let mut line = String::new();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "{lines:?}");
            lines.push(line.trim_end().to_owned());
        }
        let first: Value = serde_json::from_str(&lines[0]).unwrap();
        Begun { session: first["session_id"].as_str().unwrap().to_owned(), lines, client, _output: output }
    }

    /// Resumes a session, and reads to its end.
    fn resume(&self, session: &str, seq: u64) -> Vec<String> {
        let position = format!("Last-Event-ID: {session}:{seq}");
        self.lines(ALICE, &format!("/v1/sessions/{session}/events"), &["-H", &position])
    }

    /// Reads a session from its beginning.
    fn whole(&self, session: &str) -> Vec<String> {
        self.lines(ALICE, &format!("/v1/sessions/{session}/events"), &[])
    }

    fn lines(&self, token: &str, path: &str, args: &[&str]) -> Vec<String> {
        let output = self.curl(token, path, args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    fn state(&self, session: &str) -> Value {
        let lines = self.lines(ALICE, &format!("/v1/sessions/{session}"), &[]);
        serde_json::from_str::<Value>(&lines[0]).unwrap()["state"].clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A stream that a client reads.
struct Begun {
    session: String,
    lines: Vec<String>,
    client: Child,
    _output: BufReader<ChildStdout>,
}

impl Begun {
    /// Ends the client.
    fn leave(mut self) -> (String, Vec<String>) {
        self.client.kill().unwrap();
        self.client.wait().unwrap();
        (self.session, self.lines)
    }
}

/// Returns the number of the last chunk.
fn seq(lines: &[String]) -> u64 {
    let chunks =
        lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["chunk"]["seq"].as_u64());
    chunks.last().unwrap_or(0)
}

/// A reply that takes a few seconds.
fn slow() -> Reply {
    let rationale = "Nothing was unclear. ".repeat(40);
    Reply::text(ANSWER.replace("Nothing was unclear.", &rationale))
        .chunk_size(12)
        .pause(Duration::from_millis(50))
}

fn scene(replies: impl IntoIterator<Item = Reply>) -> (Nats, TempDir, Mock, [Serving; 2]) {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start(replies));
    std::fs::write(place.path().join("tokens"), format!("alice:{ALICE}\nbob:{BOB}\n")).unwrap();
    let servers = [0, 1].map(|_| Serving::start(place.path(), &mock, &nats));
    (nats, place, mock, servers)
}

#[test]
fn stream_that_begins_at_one_server_is_resumed_at_another_byte_for_byte() {
    let (nats, place, mock, [one, other]) = scene([slow()]);
    let workers =
        [0, 1].map(|_| Working::start(cog(place.path(), &mock, &["worker", "--nats", &nats.url()])));
    let (session, read) = one.begin(true).leave();
    let rest = other.resume(&session, seq(&read));
    assert!(rest[0].contains(r#""resumed":true"#), "{}", rest[0]);
    let whole = one.whole(&session);
    assert!(whole.last().unwrap().contains(r#""final":true"#), "{whole:?}");
    assert_eq!([&read[..], &rest[1..]].concat(), whole);
    assert_eq!(other.whole(&session), whole);
    let client = Client::new(&nats);
    client.add("show.1", "beside the streams");
    assert_eq!(client.envelope("show.1")["ok"], true);
    workers.into_iter().for_each(|worker| drop(worker.stop()));
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn session_of_another_client_is_unknown_at_every_server() {
    let (_nats, _place, _mock, [one, other]) = scene([slow()]);
    let begun = one.begin(true);
    let path = format!("/v1/sessions/{}", begun.session);
    for server in [&other, &one] {
        for (path, args) in [
            (path.clone(), [].as_slice()),
            (path.clone(), &["-X", "DELETE"]),
            (format!("{path}/events"), &[]),
        ] {
            let lines = server.lines(BOB, &path, args);
            assert!(lines[0].contains("E4013"), "{path} {lines:?}");
        }
    }
    for id in ["sess_*", "sess_00000000000000000000000000000000", "%3E"] {
        let lines = other.lines(ALICE, &format!("/v1/sessions/{id}"), &[]);
        assert!(lines[0].contains("E4013"), "{lines:?}");
    }
    assert_eq!(other.state(&begun.session), "running");
}

#[test]
fn run_of_a_killed_server_is_repeated_at_another() {
    let (_nats, _place, mock, [mut one, other]) = scene([slow(), Reply::text(ANSWER)]);
    let (session, read) = one.begin(true).leave();
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    eventually("the run of the killed server", || (other.state(&session) != "running").then_some(()));
    let rest = other.resume(&session, seq(&read));
    assert!(rest.last().unwrap().contains(r#""final":true"#), "{rest:?}");
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn server_notices_that_another_one_has_continued_a_session() {
    let (_nats, _place, mock, [one, other]) = scene([slow(), Reply::text(ANSWER)]);
    let (session, read) = one.begin(false).leave();
    eventually("the run has not stopped", || (one.state(&session) == "interrupted").then_some(()));
    let rest = other.resume(&session, seq(&read));
    assert!(rest.last().unwrap().contains(r#""final":true"#), "{rest:?}");
    assert_eq!(one.whole(&session), other.whole(&session));
    assert_eq!((one.state(&session), mock.requests().len()), (json!("finished"), 2));
}

#[test]
fn run_is_cancelled_through_any_server() {
    let (_nats, _place, _mock, [one, other]) = scene([slow()]);
    let begun = one.begin(true);
    let lines = other.lines(ALICE, &format!("/v1/sessions/{}", begun.session), &["-X", "DELETE"]);
    assert!(lines[0].contains("cancelled"), "{lines:?}");
    for server in [&one, &other] {
        eventually("the run is not cancelled", || {
            (server.state(&begun.session) == "cancelled").then_some(())
        });
        assert!(server.whole(&begun.session).last().unwrap().contains(r#""reason":"cancelled""#));
    }
}

#[test]
fn session_has_not_expired_while_nats_is_away() {
    let (mut nats, _place, mock, [one, other]) = scene([Reply::text(ANSWER)]);
    let (session, _) = one.begin(true).leave();
    eventually("the run has not finished", || (one.state(&session) == "finished").then_some(()));
    let body = r#"{"input": {"query": "why?"}}"#;
    let position = format!("Last-Event-ID: {session}:1");
    nats.kill();
    let path = format!("/v1/sessions/{session}");
    let resume = ["-H", "Content-Type: application/json", "-H", &position, "-d", body];
    for (path, args) in [(&*path, &[][..]), ("/v1/modules/m/execute", &resume)] {
        let answer = other.lines(ALICE, path, args).join("\n");
        assert!(answer.contains("E4001") && answer.contains(r#""recoverable":true"#), "{path}: {answer}");
    }
    assert_eq!(mock.requests().len(), 1, "no new run begins");
    nats.run();
    eventually("the session is not found", || (other.state(&session) == "finished").then_some(()));
}
