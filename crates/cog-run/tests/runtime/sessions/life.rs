//! The start and the end of sessions.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_json::Value;
use cog_run::{
    CancelReason,
    sessions::{
        ResumeError, ResumeFrom, RunSpec, Session, SessionOptions, SessionSettings, SessionState, StartFrom,
    },
};

use super::{
    Bench, Slot, answer, applied, detached, error_of, final_data, of, partial_of, read, read_batch,
    read_some, text_events,
};
use crate::support::{ANSWER, Scripted};

#[tokio::test]
async fn session_contains_all_chunks_of_its_run() {
    let bench =
        Bench::new(Scripted::new([text_events(&answer("a long story"), 5)]), SessionSettings::default());
    let session = bench.start();
    let lines = read(session.follow(StartFrom::Beginning)).await;
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
async fn session_is_visible_only_to_its_owner() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let session = bench.start();
    assert!(bench.sessions.get(session.id(), "mallory").is_none());
    assert!(bench.sessions.cancel(session.id(), "mallory").is_none());
    assert!(bench.sessions.follow(session.id(), "mallory", StartFrom::Beginning).is_err());
    let from = ResumeFrom::default();
    let resumed = bench
        .sessions
        .resume(&bench.runtime, session.id(), "mallory", from, Default::default(), Box::new(()))
        .await;
    assert!(matches!(resumed, Err(ResumeError::Unknown)));
    assert_eq!(bench.state(session.id()), Some(SessionState::Running));
}

#[tokio::test]
async fn early_errors_create_no_session() {
    let bench = Bench::new(Scripted::replying(ANSWER), SessionSettings::default());
    let spec = RunSpec::new("m", Value::parse(r#"{"query": 1}"#).unwrap());
    let refused = bench.sessions.prepare(&bench.runtime, &bench.module, spec, of("alice"));
    assert_eq!(refused.err().unwrap().error().unwrap().code.as_str(), "E1003");
    assert!(bench.sessions.count_by_state().iter().all(|(_, count)| *count == 0));
}

#[tokio::test]
async fn disconnected_clients_release_provider_and_slot() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let held = Arc::new(AtomicUsize::new(0));
    for client in 0..200 {
        let session = bench.start_with(SessionOptions { permit: Slot::take(&held), ..of("alice") });
        let mut follower = session.follow(StartFrom::Beginning);
        let mut second = session.follow(StartFrom::Beginning);
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
async fn unread_session_is_cancelled_with_its_handle() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    drop(bench.start());
    bench.sessions.idle().await;
    let stored = bench.start_with(detached()).id().to_owned();
    assert_eq!(bench.state(&stored), Some(SessionState::Running));
}

#[tokio::test]
async fn cancelled_session_cannot_be_resumed() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let running = bench.start();
    let mut follower = running.follow(StartFrom::Beginning);
    read_some(&mut follower).await;
    assert_eq!(bench.sessions.cancel(running.id(), "alice").unwrap().state, SessionState::Cancelled);
    let end = error_of(&read(follower).await);
    assert_eq!(
        (&end["details"]["reason"], &end["recovery"]),
        (&"cancelled".into(), &serde_json::Value::Null)
    );
    let interrupted = bench.start();
    read_some(&mut interrupted.follow(StartFrom::Beginning)).await;
    bench.sessions.idle().await;
    assert_eq!(bench.state(interrupted.id()), Some(SessionState::Interrupted));
    bench.sessions.cancel(interrupted.id(), "alice").unwrap();
    for id in [running.id(), interrupted.id()] {
        assert_eq!(bench.state(id), Some(SessionState::Cancelled));
        let lines = read(bench.resume(id, 0).await.unwrap()).await;
        assert_eq!(error_of(&lines)["details"]["reason"], "cancelled");
        assert_eq!(partial_of(&lines), serde_json::json!({ "result": "fi" }));
    }
    assert_eq!(bench.provider.requests().len(), 2);
}

#[tokio::test]
async fn cancelling_an_interrupted_run_is_final() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let session = bench.start();
    read_some(&mut session.follow(StartFrom::Beginning)).await;
    assert_eq!(bench.sessions.cancel(session.id(), "alice").unwrap().state, SessionState::Cancelled);
    bench.sessions.idle().await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Cancelled));
    assert_eq!(error_of(&bench.log(session.id()).await)["details"]["reason"], "cancelled");
}

#[tokio::test]
async fn panicking_run_ends_with_e4000() {
    let bench = Bench::new(Scripted::panicking(), SessionSettings::default());
    let held = Arc::new(AtomicUsize::new(0));
    let session = bench.start_with(SessionOptions { permit: Slot::take(&held), ..of("alice") });
    let lines = read(session.follow(StartFrom::Beginning)).await;
    assert_eq!(error_of(&lines)["code"], "E4000");
    assert_eq!(lines.len(), 2);
    assert_eq!((bench.state(session.id()), held.load(Ordering::SeqCst)), (Some(SessionState::Failed), 0));
}

#[tokio::test]
async fn shutdown_interrupts_every_run_with_recovery() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let sessions: Vec<Session> = (0..20).map(|_| bench.start_with(detached())).collect();
    let mut follower = sessions[0].follow(StartFrom::Beginning);
    read_some(&mut follower).await;
    bench.sessions.cancel_all(CancelReason::Shutdown);
    bench.sessions.idle().await;
    assert_eq!(error_of(&read(follower).await)["details"]["reason"], "shutdown");
    assert!(sessions.iter().all(|session| bench.state(session.id()) == Some(SessionState::Interrupted)));
    assert_eq!(bench.provider.open_replies(), 0);
}

#[tokio::test]
async fn dropped_run_has_a_final_event() {
    let bench =
        Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), SessionSettings::default());
    let session = bench.start();
    let mut follower = session.follow(StartFrom::Beginning);
    read_some(&mut follower).await;
    drop(bench);
    let lines = read(follower).await;
    assert_eq!(error_of(&lines)["details"]["reason"], "shutdown");
    assert_eq!(partial_of(&lines), serde_json::json!({ "result": "fi" }));
}

#[tokio::test]
async fn concurrent_sessions_do_not_mix() {
    let replies = (0..1000).map(|number| text_events(&answer(&format!("story {number:04} ends")), 4));
    let bench = Bench::new(Scripted::new(replies), SessionSettings::default());
    let sessions: Vec<Session> = (0..1000).map(|_| bench.start()).collect();
    let mut readers = tokio::task::JoinSet::new();
    for session in &sessions {
        let (id, follower) = (session.id().to_owned(), session.follow(StartFrom::Beginning));
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
async fn sessions_are_counted_by_state() {
    let bench = Bench::new(Scripted::replying(ANSWER), SessionSettings::default());
    bench.finish().await;
    bench.finish().await;
    let running = bench.start();
    let counted: Vec<_> =
        bench.sessions.count_by_state().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(SessionState::Running, 1), (SessionState::Finished, 2)]);
    drop(running);
}

#[tokio::test]
async fn dropped_wait_loses_no_entry() {
    let bench =
        Bench::new(Scripted::new([text_events(&answer("a long story"), 2)]), SessionSettings::default());
    let session = bench.start();
    let mut follower = session.follow(StartFrom::Beginning);
    let mut lines = Vec::new();
    loop {
        tokio::select! {
            biased;
            is_more = read_batch(&mut follower, &mut lines) => if !is_more { break },
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(lines, bench.log(session.id()).await);
}
