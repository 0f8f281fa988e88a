//! Compositions that are interrupted and continue.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_json::Value;
use cog_run::{
    ModuleRef,
    sessions::{ResumeFrom, RunSpec, SessionSettings, Sessions, StartFrom, Subscriber},
    tools::ToolInfo,
};

use super::support::{Bench, MAP, Says, result, session_of};

fn chain(prompt: &str, replies: &[(&str, &[Says])]) -> Bench {
    let composition = format!(
        "composition:
  requires: [{{name: one}}, {{name: middle}}, {{name: three}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: one.output, to: middle, mapping: {{query: $.data.result}}}}
    - {{from: middle.output, to: three, mapping: {{query: $.data.result}}}}
    - {{from: three.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &["one", "leaf", "three"], replies);
    bench.module("middle", "", prompt);
    bench
}

async fn read(mut subscriber: Subscriber) -> Vec<Value> {
    let mut lines = Vec::new();
    while let Some(batch) = subscriber.next().await {
        lines.extend(batch.entries().map(|entry| Value::parse(entry.json).unwrap()));
    }
    lines
}

fn spec() -> RunSpec {
    RunSpec::new("whole", Value::parse(r#"{"query": "why?"}"#).unwrap())
}

fn text<'a>(line: &'a Value, path: &str) -> Option<&'a str> {
    line.pointer(path).and_then(|node| node.as_str())
}

/// Starts the composition, and leaves it when its last part is called. Returns the id of the session.
async fn start_and_leave(bench: &Bench, sessions: &Sessions) -> String {
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let session = sessions.prepare(&bench.runtime, &module, spec(), session_of("alice")).unwrap().start();
    let mut subscriber = session.follow(StartFrom::Beginning);
    bench.read_until(&mut subscriber, "three", 1).await;
    session.id().to_owned()
}

#[tokio::test]
async fn interrupted_composition_continues_from_the_parts_that_are_done() {
    let replies: [(&str, &[Says]); 1] = [("three", &[Says::Never, result("the end")])];
    let bench = chain("Middle: @call:leaf", &replies);
    let directory = tempfile::tempdir().unwrap();
    let settings =
        || SessionSettings { state_dir: Some(directory.path().to_path_buf()), ..SessionSettings::default() };
    let sessions = Sessions::open(settings()).unwrap();
    let id = start_and_leave(&bench, &sessions).await;
    assert_eq!(bench.provider.called(), ["one", "leaf", "middle", "three"]);
    sessions.idle().await;
    drop(sessions);

    let sessions = Sessions::open(settings()).unwrap();
    let from = ResumeFrom::default();
    let resumed =
        sessions.resume(&bench.runtime, &id, "alice", from, Default::default(), Box::new(())).await.unwrap();
    let lines = read(resumed).await;
    let last = lines.last().unwrap();
    assert_eq!(text(last, "/data/result"), Some("the end"));
    assert_eq!(bench.provider.called(), ["one", "leaf", "middle", "three", "three"]);
    let parts: Vec<(&str, bool)> = last
        .pointer("/meta/parts")
        .unwrap()
        .elements()
        .map(|part| (part.get("path").unwrap().as_str().unwrap(), part.get("restored").is_some()))
        .collect();
    assert_eq!(parts, [("one", true), ("middle", true), ("middle/leaf", false), ("three", false)]);
    let usage = last.pointer("/usage/input_tokens").and_then(|node| node.as_u64());
    assert_eq!(usage, Some(40), "the tokens of the parts that were done count");
}

#[tokio::test]
async fn tool_of_an_interrupted_part_is_not_called_again() {
    let replies: [(&str, &[Says]); 1] = [("three", &[Says::Call("delete"), Says::Never, result("the end")])];
    let mut bench = chain("Middle.", &replies);
    bench.module("three", "policies: {tools_allowed: true}\ntools: {allowed: [delete]}", "Answer.");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let delete = ToolInfo::new("delete", "Deletes it.", &Value::parse(r#"{"type": "object"}"#).unwrap());
    let delete = delete.unwrap().function(move |_: Value, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok("deleted") }
    });
    bench.runtime = bench.builder().tool(Arc::new(delete)).build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let sessions = Sessions::open(SessionSettings {
        state_dir: Some(directory.path().to_path_buf()),
        ..SessionSettings::default()
    })
    .unwrap();
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let session = sessions.prepare(&bench.runtime, &module, spec(), session_of("alice")).unwrap().start();
    let mut subscriber = session.follow(StartFrom::Beginning);
    bench.read_until(&mut subscriber, "three", 2).await;
    let id = session.id().to_owned();
    drop((subscriber, session));
    let from = ResumeFrom::default();
    let resumed =
        sessions.resume(&bench.runtime, &id, "alice", from, Default::default(), Box::new(())).await.unwrap();
    assert_eq!(text(read(resumed).await.last().unwrap(), "/data/result"), Some("the end"));
    assert_eq!(bench.provider.called(), ["one", "middle", "three", "three", "three"]);
    assert!(bench.provider.received("three")[2].contains("deleted"));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn readers_of_a_session_receive_no_answer_of_a_part() {
    let bench = chain("Middle: @call:leaf", &[]);
    let directory = tempfile::tempdir().unwrap();
    let sessions = Sessions::open(SessionSettings {
        state_dir: Some(directory.path().to_path_buf()),
        ..SessionSettings::default()
    })
    .unwrap();
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let session = sessions.prepare(&bench.runtime, &module, spec(), session_of("alice")).unwrap().start();
    let lines = read(session.follow(StartFrom::Beginning)).await;
    let again = read(sessions.follow(session.id(), "alice", StartFrom::Beginning).unwrap()).await;
    assert_eq!(lines, again);
    let done: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.pointer("/progress/part/report"))
        .map(|report| {
            let has = |name: &str| report.get(name).is_some();
            assert!(has("confidence") && has("risk") && has("usage"), "{report}");
            report.get("path").unwrap().as_str().unwrap()
        })
        .collect();
    assert_eq!(done, ["one", "middle/leaf", "middle", "three"]);
    for line in &lines {
        assert!(
            line.get("part_answer").is_none() && line.pointer("/progress/part/answer").is_none(),
            "{line}"
        );
    }
    let file = directory.path().join("sessions").join(format!("{}.ndjson", session.id()));
    assert_eq!(read_file(&file).matches("\"part_answer\":").count(), 4, "the file has the answers");
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn read_file(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn part_whose_module_changed_runs_again() {
    let replies: [(&str, &[Says]); 1] = [("three", &[Says::Never, result("the end")])];
    let bench = chain("Middle.", &replies);
    let sessions = Sessions::open(SessionSettings::default()).unwrap();
    let id = start_and_leave(&bench, &sessions).await;
    bench.module("middle", "", "Another prompt.");
    let resumed = sessions
        .resume(&bench.runtime, &id, "alice", ResumeFrom::default(), Default::default(), Box::new(()))
        .await
        .unwrap();
    assert_eq!(text(read(resumed).await.last().unwrap(), "/data/result"), Some("the end"));
    assert_eq!(bench.provider.called(), ["one", "middle", "three", "middle", "three"]);
}
