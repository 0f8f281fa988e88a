//! `cog run --stream` in a pipe and into a file.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json, snapshot, stderr, stdout, with_stdin};

const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;

const WRONG: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "perhaps", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;

fn streaming(place: &Place, mock: &Mock, more: &[&str]) -> Command {
    let args = ["run", "code-reviewer", "--args", "x = 1", "--model", "m", "--stream"];
    let mut command = place.cog(args.iter().chain(more).copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

/// The beginning of a reply, up to its rationale; the rest never arrives.
fn unfinished() -> Reply {
    Reply::text(REPLY).interrupt_after(5_500).hang()
}

fn chunks(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn one_chunk_per_line() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).usage(12, 34)]);
    snapshot!(streaming(&place, &mock, &[]));
}

#[test]
fn violation_is_reported_and_ends_stream() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(WRONG)]);
    snapshot!(streaming(&place, &mock, &[]));
}

#[test]
fn on_violation_aborts_or_retries() {
    let place = Place::new();
    let replies = || [Reply::text(WRONG), Reply::text(REPLY)];
    let aborted = streaming(&place, &Mock::start(replies()), &["--on-violation", "abort"]).output().unwrap();
    assert_eq!(chunks(&stdout(&aborted)).last().unwrap()["error"]["code"], "E3005");
    let mock = Mock::start(replies());
    let again =
        streaming(&place, &mock, &["--on-violation", "retry", "--max-attempts", "2"]).output().unwrap();
    let chunks = chunks(&stdout(&again));
    assert!(
        chunks.iter().any(|chunk| chunk["chunk"]["data"] == json!({}) && chunk["chunk"]["field"].is_null())
    );
    let end = chunks.last().unwrap();
    assert_eq!((&end["meta"]["attempts"], &end["data"]["verdict"]), (&2.into(), &"approve".into()));
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn error_before_the_call_is_one_envelope() {
    let place = Place::new();
    snapshot!(place.cog(["run", "code-reviewer", "--input-json", "{}", "--stream"]));
}

#[test]
fn sync_module_returns_envelope_with_warning() {
    let place = Place::new();
    place.copy_module("format-v22", "m");
    let args = ["run", "./m", "--args", "x", "--stream"];
    let envelope = json(&place.cog(args).output().unwrap());
    let warning = envelope["_warnings"].as_array().unwrap().iter().find(|warning| warning["code"] == "W4010");
    assert_eq!(warning.unwrap()["fallback_used"], "sync", "{envelope}");
    snapshot!(place.cog(args.into_iter().chain(["--require-streaming"])));
}

#[test]
fn chunks_can_go_to_a_file() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let output = streaming(&place, &mock, &["-o", "answer.ndjson"]).output().unwrap();
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(0), ""));
    assert_eq!(chunks(&place.read("answer.ndjson")).last().unwrap()["final"], true);
    let to_stdout = streaming(&place, &mock, &["-o", "-"]).output().unwrap();
    assert_eq!(chunks(&stdout(&to_stdout)).last().unwrap()["final"], true);
}

#[test]
fn recording_streams_the_same_answer() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).chunk_size(3)]);
    let recorded = streaming(&place, &mock, &["--record", "tape"]).output().unwrap();
    drop(mock);
    let args = ["run", "code-reviewer", "--args", "x = 1", "--stream", "--replay", "tape"];
    let replayed = place.cog(args).output().unwrap();
    let messages = |output: &std::process::Output| {
        let mut chunks = chunks(&stdout(output));
        chunks.iter_mut().for_each(|chunk| {
            chunk.as_object_mut().unwrap().remove("session_id");
            chunk["meta"]["processing_time_ms"] = Value::Null;
        });
        chunks
    };
    assert_eq!(messages(&recorded), messages(&replayed), "{}", stderr(&replayed));
    let verified = with_stdin(
        place.cog(["verify", "-", "--kind", "stream", "--module", "code-reviewer"]),
        &stdout(&replayed),
    );
    assert_eq!(json(&verified)["valid"], true, "{}", stdout(&verified));
}

#[test]
fn chunk_type_can_be_selected() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).chunk_size(1)]);
    let snapshots =
        chunks(&stdout(&streaming(&place, &mock, &["--chunk-type", "snapshot"]).output().unwrap()));
    assert!(snapshots.iter().all(|chunk| chunk["chunk"]["type"] != "delta"));
    let deltas = |more: &[&str]| {
        let chunks = chunks(&stdout(&streaming(&place, &mock, more).output().unwrap()));
        chunks.iter().filter(|chunk| chunk["chunk"]["type"] == "delta").count()
    };
    assert!(deltas(&["--buffer-size", "100000"]) < deltas(&[]));
}

#[test]
fn chunk_is_sent_before_reply_is_complete() {
    let place = Place::new();
    let mock = Mock::start([unfinished()]);
    let mut child =
        streaming(&place, &mock, &[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("data.rationale")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn interrupt_ends_stream_with_error_chunk() {
    let place = Place::new();
    let mock = Mock::start([unfinished()]);
    let mut child =
        streaming(&place, &mock, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(
        (&last["error"]["code"], &last["error"]["details"]["reason"]),
        (&"E2010".into(), &"cancelled".into())
    );
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["session_id"], last["session_id"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
}

#[test]
fn closed_pipe_cancels_the_call_quietly() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).chunk_size(1).pause(Duration::from_millis(5))]);
    let mut child =
        streaming(&place, &mock, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut read = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut read).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!stderr(&output).contains("error"), "{}", stderr(&output));
    while mock.interrupted() == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn streaming_flags_require_stream() {
    let place = Place::new();
    for more in
        [["--chunk-type", "delta"], ["--buffer-size", "1"], ["--stream", "--pretty"], ["--max-attempts", "0"]]
    {
        let output =
            place.cog(["run", "code-reviewer", "--args", "x"].iter().chain(&more).copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}");
    }
    let output = place.cog(["run", "code-reviewer", "--stream", "--chunk-type", "diff"]).output().unwrap();
    assert!(stderr(&output).contains("[possible values: delta, snapshot]"), "{}", stderr(&output));
}
