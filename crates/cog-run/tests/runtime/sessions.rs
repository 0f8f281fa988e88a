//! Sessions: runs that outlive their readers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_json::Value;
use cog_module::Module;
use cog_provider::Provider;
use cog_run::{
    RunOptions, Runtime, StopReason,
    sessions::{
        After, Follower, ResumeError, ResumeFrom, RunSpec, Session, SessionSettings, SessionState, Sessions,
        Start,
    },
};
use cog_spec::{Checkpoint, FinishReason, ModelEvent};
use tempfile::TempDir;

use crate::support::{self, ANSWER, Scripted, folder};

/// A provider, a module, and a store of sessions.
struct Bench {
    provider: Arc<Scripted>,
    runtime: Runtime,
    module: Arc<Module>,
    sessions: Sessions,
    folder: TempDir,
}

impl Bench {
    fn new(provider: Scripted, settings: SessionSettings) -> Self {
        let folder = folder("Answer.", &[]);
        let provider = Arc::new(provider);
        let runtime = Runtime::builder().provider(Arc::clone(&provider) as Arc<dyn Provider>).build();
        let module = runtime.load(folder.path().to_str().unwrap()).unwrap();
        Self { provider, runtime, module, sessions: Sessions::open(settings).unwrap(), folder }
    }

    fn spec(&self) -> RunSpec {
        RunSpec {
            module: self.folder.path().to_str().unwrap().to_owned(),
            input: Value::parse(r#"{"query": "why?"}"#).unwrap(),
            options: RunOptions::default(),
        }
    }

    fn start_with(&self, start: Start) -> Session {
        self.sessions.start(&self.runtime, &self.module, self.spec(), start).unwrap()
    }

    fn start(&self) -> Session {
        self.start_with(of("alice"))
    }

    /// Begins a run and reads it to its end.
    async fn finish(&self) -> String {
        let session = self.start();
        read(session.follow(After::Start)).await;
        session.id().to_owned()
    }

    async fn resume(&self, id: &str, last_seq: u64) -> Result<Follower, ResumeError> {
        self.resume_with(id, ResumeFrom { last_seq, last_checkpoint: None }).await
    }

    async fn resume_with(&self, id: &str, from: ResumeFrom) -> Result<Follower, ResumeError> {
        self.sessions.resume(&self.runtime, id, "alice", from, Box::new(())).await
    }

    fn state(&self, id: &str) -> Option<SessionState> {
        self.sessions.get(id, "alice").map(|info| info.state)
    }

    /// What the log of a session holds.
    async fn log(&self, id: &str) -> Vec<Line> {
        read(self.sessions.follow(id, "alice", After::Start).unwrap()).await
    }
}

/// An entry: event, number, chunk.
type Line = (String, u64, String);

fn of(owner: &str) -> Start {
    Start { owner: owner.to_owned(), detached: false, slot: Box::new(()) }
}

fn detached() -> Start {
    Start { detached: true, ..of("alice") }
}

async fn read(mut follower: Follower) -> Vec<Line> {
    let mut lines = Vec::new();
    while read_batch(&mut follower, &mut lines).await {}
    lines
}

async fn read_batch(follower: &mut Follower, lines: &mut Vec<Line>) -> bool {
    let Some(batch) = follower.next().await else { return false };
    assert_eq!(batch.lines(), batch.entries().map(|entry| format!("{}\n", entry.json)).collect::<String>());
    lines.extend(batch.entries().map(|entry| (entry.event.to_owned(), entry.seq, entry.json.to_owned())));
    true
}

/// Reads until something numbered came.
async fn read_some(follower: &mut Follower) -> Vec<Line> {
    let mut lines = Vec::new();
    while lines.last().is_none_or(|(_, seq, _)| *seq == 0) {
        assert!(read_batch(follower, &mut lines).await);
    }
    lines
}

/// A reply in pieces of this many bytes.
fn pieces(text: &str, size: usize) -> Vec<ModelEvent> {
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars.chunks(size).map(|piece| ModelEvent::Text(piece.iter().collect()));
    pieces.chain([ModelEvent::Finished(FinishReason::Stop)]).collect()
}

fn answer(rationale: &str) -> String {
    ANSWER.replace("because", rationale)
}

/// The data that a stream gives when its chunks are applied in order.
fn applied(lines: &[Line]) -> serde_json::Value {
    let mut data = serde_json::json!({});
    for (_, _, line) in lines {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(chunk) = value.get("chunk") else { continue };
        match (chunk["field"].as_str(), chunk["delta"].as_str()) {
            (None, _) => data = chunk["data"].clone(),
            (Some(field), Some(delta)) => {
                let text = &mut data[field.strip_prefix("data.").unwrap()];
                *text = format!("{}{delta}", text.as_str().unwrap_or_default()).into();
            }
            (Some(field), None) => {
                if let Some(field) = field.strip_prefix("data.") {
                    data[field] = chunk["data"].clone();
                }
            }
        }
    }
    data
}

fn final_data(lines: &[Line]) -> serde_json::Value {
    let (event, _, line) = lines.last().unwrap();
    assert_eq!(event, "final", "{line}");
    serde_json::from_str::<serde_json::Value>(line).unwrap()["data"].take()
}

fn error_of(lines: &[Line]) -> serde_json::Value {
    let (event, _, line) = lines.last().unwrap();
    assert_eq!(event, "error", "{line}");
    serde_json::from_str::<serde_json::Value>(line).unwrap()["error"].take()
}

/// A slot that counts those that are held.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(held: &Arc<AtomicUsize>) -> Box<Self> {
        held.fetch_add(1, Ordering::SeqCst);
        Box::new(Self(Arc::clone(held)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_session_tells_its_run_from_meta_to_final() {
    let bench = Bench::new(Scripted::new([pieces(&answer("a long story"), 5)]), SessionSettings::default());
    let session = bench.start();
    let lines = read(session.follow(After::Start)).await;
    assert_eq!((lines[0].0.as_str(), lines[0].1), ("meta", 0));
    assert!(lines[0].2.contains(session.id()));
    assert_eq!(lines.iter().filter(|line| ["final", "error"].contains(&line.0.as_str())).count(), 1);
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(bench.log(session.id()).await, lines);
    let info = bench.sessions.get(session.id(), "alice").unwrap();
    assert_eq!((info.state, info.detached), (SessionState::Finished, false));
    assert_eq!(info.last_seq, lines.last().unwrap().1);
}

#[tokio::test]
async fn only_its_owner_sees_a_session() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let session = bench.start();
    assert!(bench.sessions.get(session.id(), "mallory").is_none());
    assert!(bench.sessions.cancel(session.id(), "mallory").is_none());
    assert!(bench.sessions.follow(session.id(), "mallory", After::Start).is_err());
    let from = ResumeFrom::default();
    let resumed = bench.sessions.resume(&bench.runtime, session.id(), "mallory", from, Box::new(())).await;
    assert!(matches!(resumed, Err(ResumeError::Unknown)));
    assert_eq!(bench.state(session.id()), Some(SessionState::Running));
}

#[tokio::test]
async fn what_is_known_before_the_provider_is_asked_begins_no_session() {
    let bench = Bench::new(Scripted::saying(ANSWER), SessionSettings::default());
    let spec = RunSpec { input: Value::parse(r#"{"query": 1}"#).unwrap(), ..bench.spec() };
    let refused = bench.sessions.start(&bench.runtime, &bench.module, spec, of("alice"));
    assert_eq!(refused.err().unwrap().error().unwrap().code.as_str(), "E1003");
    assert_eq!(bench.sessions.running(), 0);
}

#[tokio::test]
async fn two_hundred_clients_that_leave_free_provider_and_slot() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let held = Arc::new(AtomicUsize::new(0));
    for client in 0..200 {
        let session = bench.start_with(Start { slot: Slot::take(&held), ..of("alice") });
        let mut follower = session.follow(After::Start);
        let mut second = session.follow(After::Start);
        if client % 2 == 0 {
            read_some(&mut follower).await;
        }
        read_some(&mut second).await;
        drop(follower);
        assert_eq!(bench.provider.open_replies(), 1, "somebody still reads");
        drop(second);
        bench.sessions.idle().await;
        assert_eq!((bench.provider.open_replies(), held.load(Ordering::SeqCst)), (0, 0));
        let end = error_of(&bench.log(session.id()).await);
        assert_eq!((&end["code"], &end["details"]["reason"]), (&"E2010".into(), &"client_gone".into()));
        assert!(end["recovery"]["last_seq"].as_u64().unwrap() > 0, "{end}");
        assert_eq!(bench.state(session.id()), Some(SessionState::Interrupted));
    }
}

#[tokio::test]
async fn a_session_that_nobody_ever_read_is_stopped_with_its_handle() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    drop(bench.start());
    bench.sessions.idle().await;
    let kept = bench.start_with(detached()).id().to_owned();
    assert_eq!(bench.state(&kept), Some(SessionState::Running));
}

#[tokio::test]
async fn a_detached_run_goes_on_without_readers() {
    let bench = Bench::new(Scripted::new([pieces(&answer("story"), 3)]), SessionSettings::default());
    let session = bench.start_with(detached());
    drop(session.follow(After::Start));
    bench.sessions.idle().await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
    let lines = read(bench.resume(session.id(), 2).await.unwrap()).await;
    assert!(lines[0].2.contains(r#""resumed":true,"resume_from_seq":2,"#), "{}", lines[0].2);
    assert_eq!(lines[1].1, 3);
    final_data(&lines);
}

#[tokio::test]
async fn an_interrupted_run_is_asked_again_in_its_session() {
    let hanging = pieces(r#"{"ok": true, "data": {"result": "wrong", "rationale": "bef"#, 7);
    let hanging = hanging.into_iter().filter(|event| matches!(event, ModelEvent::Text(_))).collect();
    let provider = Scripted::new([hanging, pieces(&answer("after"), 7)]).leaving_open();
    let bench = Bench::new(provider, SessionSettings::default());
    let session = bench.start();
    let mut follower = session.follow(After::Start);
    let mut lines = read_some(&mut follower).await;
    drop(follower);
    let last_seq = lines.last().unwrap().1;
    let held = Arc::new(AtomicUsize::new(0));
    let from = ResumeFrom { last_seq, last_checkpoint: None };
    let slot = Slot::take(&held);
    let resumed = bench.sessions.resume(&bench.runtime, session.id(), "alice", from, slot).await.unwrap();
    let resumed = read(resumed).await;
    assert_eq!((bench.provider.requests().len(), held.load(Ordering::SeqCst)), (2, 0));
    lines.extend(resumed.into_iter().skip(1));
    assert_eq!(lines, bench.log(session.id()).await);
    assert!(lines.iter().any(|(_, _, line)| line.contains(r#""type":"snapshot","data":{}"#)));
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
}

#[tokio::test]
async fn two_hundred_cuts_and_resumes_join_to_the_log() {
    let story = "word after word ".repeat(30);
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = move |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % limit as u64).unwrap()
    };
    for cut in 0..200 {
        let bench = Bench::new(Scripted::new([pieces(&answer(&story), 9)]), SessionSettings::default());
        let is_detached = cut % 2 == 0;
        let session = bench.start_with(Start { detached: is_detached, ..of("alice") });
        let mut joined: Vec<Line> = Vec::new();
        let mut follower = session.follow(After::Start);
        for _ in 0..1 + below(4) {
            let mut lines = Vec::new();
            for _ in 0..1 + below(6) {
                if !read_batch(&mut follower, &mut lines).await {
                    break;
                }
            }
            // The connection takes some of it with it.
            lines.truncate(1 + below(lines.len()));
            joined.extend(lines.into_iter().skip(usize::from(!joined.is_empty())));
            let last_seq = joined.last().unwrap().1;
            while joined.last().is_some_and(|(event, _, _)| !["chunk", "meta"].contains(&event.as_str())) {
                joined.pop();
            }
            drop(follower);
            follower = bench.resume(session.id(), last_seq).await.unwrap();
        }
        joined.extend(read(follower).await.into_iter().skip(1));
        let log = bench.log(session.id()).await;
        assert_eq!(joined, log, "cut {cut}");
        assert_eq!(applied(&joined), final_data(&joined));
    }
}

#[tokio::test]
async fn forged_numbers_and_checkpoints_are_told_from_right_ones() {
    let bench = Bench::new(Scripted::saying(&answer("because")), SessionSettings::default());
    let id = bench.finish().await;
    let last = bench.sessions.get(&id, "alice").unwrap().last_seq;
    assert!(bench.resume(&id, last).await.is_ok());
    let ahead = bench.resume(&id, last + 1).await.err().unwrap();
    assert_eq!(ahead.code().as_str(), "E4014");
    assert!(matches!(ahead, ResumeError::Ahead { .. }));
    assert_eq!(bench.resume("sess_0", 0).await.err().unwrap().code().as_str(), "E4013");
    let line = bench.log(&id).await.into_iter().find(|(_, _, line)| line.contains(r#""hash""#)).unwrap();
    let chunk: serde_json::Value = serde_json::from_str(&line.2).unwrap();
    let hash = chunk["chunk"]["checkpoint"]["hash"].as_str().unwrap().to_owned();
    let offset = chunk["chunk"]["checkpoint"]["offset"].as_u64().unwrap();
    for (offset, hash, is_right) in
        [(offset, hash.clone(), true), (offset + 1, hash, false), (offset, "000000".to_owned(), false)]
    {
        let from = ResumeFrom { last_seq: line.1, last_checkpoint: Some(Checkpoint { offset, hash }) };
        let resumed = bench.resume_with(&id, from).await;
        assert_eq!(
            resumed.map(drop).map_err(|error| error.code().as_str()).err(),
            (!is_right).then_some("E4014")
        );
    }
}

#[tokio::test]
async fn nothing_is_resumed_where_recovery_is_off() {
    let settings = SessionSettings { recovery: None, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::saying(ANSWER), settings);
    let id = bench.finish().await;
    assert_eq!(bench.resume(&id, 0).await.err().unwrap().code().as_str(), "E4012");
    assert_eq!(bench.log(&id).await.last().unwrap().0, "final");
}

#[tokio::test]
async fn a_cancelled_session_is_over() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let running = bench.start();
    let mut follower = running.follow(After::Start);
    read_some(&mut follower).await;
    assert_eq!(bench.sessions.cancel(running.id(), "alice").unwrap().state, SessionState::Cancelled);
    let end = error_of(&read(follower).await);
    assert_eq!(
        (&end["details"]["reason"], &end["recovery"]),
        (&"cancelled".into(), &serde_json::Value::Null)
    );
    let interrupted = bench.start();
    read_some(&mut interrupted.follow(After::Start)).await;
    bench.sessions.idle().await;
    assert_eq!(bench.state(interrupted.id()), Some(SessionState::Interrupted));
    bench.sessions.cancel(interrupted.id(), "alice").unwrap();
    for id in [running.id(), interrupted.id()] {
        assert_eq!(bench.state(id), Some(SessionState::Cancelled));
        let lines = read(bench.resume(id, 0).await.unwrap()).await;
        assert_eq!(error_of(&lines)["details"]["reason"], "cancelled");
    }
    assert_eq!(bench.provider.requests().len(), 2);
}

#[tokio::test]
async fn a_run_that_panics_ends_with_a_defect() {
    let bench = Bench::new(Scripted::panicking(), SessionSettings::default());
    let held = Arc::new(AtomicUsize::new(0));
    let session = bench.start_with(Start { slot: Slot::take(&held), ..of("alice") });
    let lines = read(session.follow(After::Start)).await;
    assert_eq!(error_of(&lines)["code"], "E4000");
    assert_eq!(lines.len(), 2);
    assert_eq!((bench.state(session.id()), held.load(Ordering::SeqCst)), (Some(SessionState::Failed), 0));
}

#[tokio::test]
async fn at_shutdown_every_run_ends_and_may_be_resumed() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let sessions: Vec<Session> = (0..20).map(|_| bench.start_with(detached())).collect();
    let mut follower = sessions[0].follow(After::Start);
    read_some(&mut follower).await;
    bench.sessions.stop_all(StopReason::Shutdown);
    bench.sessions.idle().await;
    assert_eq!(error_of(&read(follower).await)["details"]["reason"], "shutdown");
    assert!(sessions.iter().all(|session| bench.state(session.id()) == Some(SessionState::Interrupted)));
    assert_eq!(bench.provider.open_replies(), 0);
}

#[tokio::test]
async fn a_run_that_its_program_drops_has_an_end_all_the_same() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let session = bench.start();
    let mut follower = session.follow(After::Start);
    assert!(read_batch(&mut follower, &mut Vec::new()).await);
    drop(bench);
    assert_eq!(error_of(&read(follower).await)["details"]["reason"], "shutdown");
}

#[tokio::test]
async fn finished_sessions_leave_by_number_oldest_first_and_running_ones_never() {
    let settings = SessionSettings { finished: 3, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::saying(ANSWER), settings);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bench.finish().await);
    }
    assert!(ids.iter().all(|id| bench.state(id).is_some()), "three are kept");
    ids.push(bench.finish().await);
    let kept: Vec<bool> = ids.iter().map(|id| bench.state(id).is_some()).collect();
    assert_eq!(kept, [false, true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn finished_sessions_leave_when_their_time_is_over() {
    let keep = Duration::from_secs(60);
    let bench = Bench::new(Scripted::saying(ANSWER), SessionSettings { keep, ..SessionSettings::default() });
    let id = bench.finish().await;
    tokio::time::advance(keep).await;
    assert!(bench.state(&id).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(bench.state(&id).is_none());
    assert!(matches!(bench.resume(&id, 0).await, Err(ResumeError::Unknown)));
}

#[tokio::test]
async fn finished_sessions_leave_when_all_together_are_too_large() {
    let story = answer(&"x".repeat(10_000));
    let settings = SessionSettings { bytes: 100_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::saying(&story), settings);
    let running = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let held = running.start_with(detached());
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(bench.finish().await);
    }
    let kept: Vec<bool> = ids.iter().map(|id| bench.state(id).is_some()).collect();
    assert!(kept.iter().filter(|kept| **kept).count() >= 2 && !kept[0] && kept[9], "{kept:?}");
    assert!(kept.is_sorted(), "the oldest leave first: {kept:?}");
    assert_eq!(running.state(held.id()), Some(SessionState::Running));
}

#[tokio::test]
async fn a_log_over_its_limit_loses_its_oldest_entries_and_says_so() {
    let story = answer(&"word ".repeat(2_000));
    let settings = SessionSettings { session_bytes: 20_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::new([pieces(&story, 10)]), settings);
    let session = bench.start_with(detached());
    let mut slow = session.follow(After::Start);
    let mut lines = Vec::new();
    assert!(read_batch(&mut slow, &mut lines).await);
    bench.sessions.idle().await;
    let end = error_of(&read(slow).await);
    assert_eq!((&end["code"], &end["details"]["reason"]), (&"E2010".into(), &"left_behind".into()));
    let left = bench.resume(session.id(), lines.last().unwrap().1).await.err().unwrap();
    let ResumeError::Left { first, .. } = left else { panic!("{left:?}") };
    assert_eq!(left.code().as_str(), "E4014");
    let rest = read(bench.resume(session.id(), first).await.unwrap()).await;
    assert_eq!(rest[1].1, first + 1);
    final_data(&rest);
}

#[tokio::test]
async fn a_thousand_followers_of_a_thousand_sessions_never_mix() {
    let replies = (0..1000).map(|number| pieces(&answer(&format!("story {number:04} ends")), 4));
    let bench = Bench::new(Scripted::new(replies), SessionSettings::default());
    let sessions: Vec<Session> = (0..1000).map(|_| bench.start()).collect();
    let mut readers = tokio::task::JoinSet::new();
    for session in &sessions {
        let (id, follower) = (session.id().to_owned(), session.follow(After::Start));
        readers.spawn(async move { (id, read(follower).await) });
    }
    let mut stories = std::collections::HashSet::new();
    while let Some(read) = readers.join_next().await {
        let (id, lines) = read.unwrap();
        assert!(lines[0].2.contains(&id));
        assert_eq!(applied(&lines), final_data(&lines));
        stories.insert(final_data(&lines)["rationale"].as_str().unwrap().to_owned());
        let numbers: Vec<u64> = lines.iter().filter(|line| line.0 == "chunk").map(|line| line.1).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64));
    }
    assert_eq!(stories.len(), 1000);
}

#[tokio::test]
async fn a_run_that_resumes_is_refused_as_a_first_one_is() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let session = bench.start();
    drop(session.follow(After::Start));
    bench.sessions.idle().await;
    support::write(&bench.folder, "module.yaml", "name: [");
    let refused = bench.resume(session.id(), 0).await.err().unwrap();
    assert_eq!(refused.code().as_str(), "E4008");
    assert!(!refused.into_envelope().is_ok());
    assert_eq!(bench.state(session.id()), Some(SessionState::Interrupted));
}

#[tokio::test]
async fn sessions_are_counted_by_their_state() {
    let bench = Bench::new(Scripted::saying(ANSWER), SessionSettings::default());
    bench.finish().await;
    bench.finish().await;
    let running = bench.start();
    let counted: Vec<_> = bench.sessions.tally().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(SessionState::Running, 1), (SessionState::Finished, 2)]);
    drop(running);
}
