//! Tool calls of runs that are interrupted and start again.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_harmony::Role;
use cog_run::{
    Risk, RunOptions,
    provider::ModelEvent,
    sessions::{RunSpec, SessionSettings, StartFrom, StoredRuns},
    tools::{Approval, Decision, Tool},
};
use serde_json::{Value, json};

use super::{
    Bench, code_of,
    disk::{bytes, left_behind, on, put},
    final_data, of, read, read_batch, read_some, stored,
};
use crate::{
    support::{Scripted, directory, record_of, sample_input, write},
    tools::script::{SIDE_EFFECTS, answer, calls, content, info},
};

const MANIFEST: [&str; 2] =
    ["policies: { tools_allowed: true, side_effects: allow }", "tools: { allowed: [look, charge, wait] }"];

/// The tools of a run, and how often each was called: one without effects, one that changes something, and one that
/// changes something and does not return.
#[derive(Default, Clone)]
struct Counted {
    look: Arc<AtomicUsize>,
    charge: Arc<AtomicUsize>,
    wait: Arc<AtomicUsize>,
}

impl Counted {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let (look, charge, wait) = (Arc::clone(&self.look), Arc::clone(&self.charge), Arc::clone(&self.wait));
        vec![
            Arc::new(info("look").function(move |_, _| {
                look.fetch_add(1, Ordering::SeqCst);
                async { Ok(json!({ "seen": true })) }
            })),
            Arc::new(info("charge").with_effects(SIDE_EFFECTS).function(move |_, _| {
                charge.fetch_add(1, Ordering::SeqCst);
                async { Ok(json!({ "charged": true })) }
            })),
            Arc::new(info("wait").with_effects(SIDE_EFFECTS).function(move |_, _| {
                wait.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<Result<&str, _>>()
            })),
        ]
    }

    fn counts(&self) -> [usize; 3] {
        [&self.look, &self.charge, &self.wait].map(|count| count.load(Ordering::SeqCst))
    }

    fn bench(&self, replies: impl IntoIterator<Item = Vec<ModelEvent>>, settings: SessionSettings) -> Bench {
        let provider = Scripted::new(replies).hanging_after_reply();
        Bench::with_tools(directory("Answer.", &MANIFEST), provider, settings, self.tools())
    }
}

/// Returns a reply that stops in the middle of the answer.
fn partial() -> Vec<ModelEvent> {
    vec![ModelEvent::Text(r#"{"ok": true, "data": {"result": "fi"#.to_owned())]
}

/// Returns the results in the last request.
fn results(bench: &Bench) -> Vec<Value> {
    let requests = bench.provider.requests();
    let messages = requests.last().unwrap().messages.messages().to_vec();
    messages.iter().filter(|message| message.role == Role::Tool).map(content).collect()
}

#[tokio::test]
async fn resumed_run_continues_after_its_tool_calls() {
    let counted = Counted::default();
    let rounds = [
        calls(&[("a", "look", "{}"), ("b", "charge", "{}")]),
        calls(&[("c", "charge", "{}")]),
        partial(),
        answer(),
    ];
    let bench = counted.bench(rounds, SessionSettings::default());
    let session = bench.start();
    let mut reader = session.follow(StartFrom::Beginning);
    let last_seq = read_some(&mut reader).await.last().unwrap().1;
    drop(reader);
    bench.sessions.idle().await;
    let lines = read(bench.resume(session.id(), last_seq).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine");
    assert_eq!(counted.counts(), [1, 2, 0]);
    let requests = bench.provider.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[3].messages, requests[2].messages);
    let sent = json!({ "status": "success", "charged": true });
    assert_eq!(results(&bench), [json!({ "status": "success", "seen": true }), sent.clone(), sent]);
}

#[tokio::test]
async fn stored_run_continues_after_its_tool_calls() {
    let counted = Counted::default();
    let first = calls(&[("a", "look", "{}"), ("b", "charge", "{}")]);
    let bench = counted.bench([first, calls(&[("c", "wait", "{}")]), answer()], SessionSettings::default());
    let place = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(place.path());
    let run = runs.create(record_of(sample_input(), RunOptions::default())).unwrap();
    let id = run.id().to_owned();
    let mut chunks = stored(&bench, &run, sample_input());
    while counted.counts()[2] == 0 {
        let _ = tokio::time::timeout(Duration::from_millis(5), chunks.next()).await;
    }
    drop((chunks, run));

    let run = runs.open(&id).unwrap();
    let envelope = stored(&bench, &run, run.record().input.clone()).fold().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(counted.counts(), [1, 1, 1]);
    let results = results(&bench);
    assert_eq!(results[1], json!({ "status": "success", "charged": true }));
    assert_eq!(results[2]["error_type"], "OutcomeUnknown", "the call that did not end is told");
    assert!(!run.close());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn run_that_starts_again_after_a_restart_belongs_to_its_owner() {
    let place = tempfile::tempdir().unwrap();
    let owners = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&owners);
    let look = info("look").function(move |_, context| {
        seen.lock().unwrap().push(context.owner.clone());
        async { Ok("seen") }
    });
    let provider = Scripted::new([partial(), calls(&[("a", "look", "{}")]), answer()]).hanging_after_reply();
    let settings = on(place.path());
    let module = directory("Answer.", &MANIFEST);
    let bench = Bench::with_tools(module, provider, settings.clone(), vec![Arc::new(look)]);
    let options = RunOptions { owner: Some("alice".to_owned()), ..RunOptions::default() };
    let spec = RunSpec { options, ..bench.spec() };
    let session = bench.sessions.prepare(&bench.runtime, &bench.module, spec, of("alice")).unwrap().start();
    let mut reader = session.follow(StartFrom::Beginning);
    read_some(&mut reader).await;
    drop(reader);
    let id = session.id().to_owned();
    let bench = bench.restarted(settings).await;
    let lines = read(bench.resume(&id, 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
    assert_eq!(*owners.lock().unwrap(), [Some("alice".to_owned())]);
}

#[tokio::test]
async fn run_that_continued_after_a_confirmation_is_resumed_after_its_call() {
    let counted = Counted::default();
    let rounds = [calls(&[("a", "charge", "{}")]), partial(), answer()];
    let bench = counted.bench(rounds, SessionSettings::default());
    let halted = bench
        .runtime
        .run(&bench.module, sample_input(), RunOptions { risk: Some(Risk::High), ..RunOptions::default() })
        .await;
    let details = halted.error().unwrap().details.as_ref().unwrap().to_serde();
    let id = details["halted"]["id"].as_str().unwrap().to_owned();
    let options =
        RunOptions { approval: Some(Approval { id, decision: Decision::yes() }), ..RunOptions::default() };
    let spec = RunSpec { options, ..RunSpec::new("m", cog_json::Value::null()) };
    let session = bench.sessions.prepare(&bench.runtime, &bench.module, spec, of("alice")).unwrap().start();
    let mut reader = session.follow(StartFrom::Beginning);
    read_some(&mut reader).await;
    drop(reader);
    bench.sessions.idle().await;
    let lines = read(bench.resume(session.id(), 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
    assert_eq!(counted.counts(), [0, 1, 0]);
    let requests = bench.provider.requests();
    assert_eq!(requests[2].messages, requests[1].messages);
    assert_eq!(results(&bench), [json!({ "status": "success", "charged": true })]);
}

/// Copies the session to another directory, as a killed program leaves it.
fn killed(directory: &Path, id: &str) -> tempfile::TempDir {
    let file = |extension: &str| format!("{id}.{extension}");
    let sessions = directory.join("sessions");
    let killed = left_behind(&file("ndjson"), &bytes(&sessions.join(file("ndjson"))));
    put(&killed.path().join("sessions").join(file("calls")), &bytes(&sessions.join(file("calls"))));
    killed
}

#[tokio::test]
async fn call_whose_outcome_is_unknown_is_not_repeated_after_a_restart() {
    let counted = Counted::default();
    let place = tempfile::tempdir().unwrap();
    // Calls that may change something run in their order, so that the last one waits.
    let round = calls(&[("a", "look", "{}"), ("c", "charge", "{}"), ("b", "wait", "{}")]);
    let bench = counted.bench([round], on(place.path()));
    let session = bench.start();
    let (mut reader, mut lines) = (session.follow(StartFrom::Beginning), Vec::new());
    let count = |lines: &[super::Line], text: &str| lines.iter().filter(|line| line.2.contains(text)).count();
    let is_done =
        |lines: &[super::Line]| (count(lines, "tool_result"), count(lines, r#""tool":"wait""#)) == (2, 1);
    while !is_done(&lines) {
        assert!(read_batch(&mut reader, &mut lines).await);
    }
    let killed = killed(place.path(), session.id());

    let after = counted.bench([partial(), answer()], on(killed.path()));
    let mut reader = after.resume(session.id(), 0).await.unwrap();
    read_some(&mut reader).await;
    assert_eq!(counted.counts(), [1, 1, 1]);
    let sent = results(&after);
    assert_eq!(sent[0], json!({ "status": "success", "seen": true }));
    assert_eq!(sent[1], json!({ "status": "success", "charged": true }));
    assert_eq!((&sent[2]["status"], &sent[2]["error_type"]), (&json!("error"), &json!("OutcomeUnknown")));
    drop(reader);
    after.sessions.idle().await;
    let file = killed.path().join("sessions").join(format!("{}.calls", session.id()));
    assert!(file.exists(), "the run can start again");
    let lines = read(after.resume(session.id(), 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine");
    assert_eq!(results(&after), sent, "also after a second interruption");
    assert!(!file.exists(), "a finished run does not start again");
}

#[tokio::test]
async fn run_whose_module_changed_after_its_calls_does_not_start_again() {
    let counted = Counted::default();
    let bench =
        counted.bench([calls(&[("a", "charge", "{}")]), partial(), answer()], SessionSettings::default());
    let session = bench.start();
    let mut reader = session.follow(StartFrom::Beginning);
    read_some(&mut reader).await;
    drop(reader);
    bench.sessions.idle().await;
    write(&bench.directory, "m/prompt.md", "Answer briefly.");
    let refused = bench.resume(session.id(), 0).await.err().unwrap();
    assert_eq!(code_of(&refused), "E4014");
    let envelope = refused.into_envelope();
    let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
    assert_eq!(details["changed"], json!(["prompt"]));
    assert_eq!(counted.counts(), [0, 1, 0]);
}

#[tokio::test]
async fn logs_of_sessions_that_do_not_exist_are_removed_at_the_start() {
    let place = left_behind("sess_0123456789abcdef0123456789abcdef.calls", b"{}\n");
    let file = place.path().join("sessions/sess_0123456789abcdef0123456789abcdef.calls");
    drop(Counted::default().bench([answer()], on(place.path())));
    assert!(!file.exists());
}
