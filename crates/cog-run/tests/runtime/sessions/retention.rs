//! The limits on the number, lifetime and size of stored sessions.

use std::time::Duration;

use cog_run::sessions::{ResumeError, SessionSettings, SessionState, StartFrom};

use super::{
    Bench, answer, applied, code_of, detached, error_of, final_data, of, read, read_batch, text_events,
};
use crate::support::{ANSWER, Scripted};

#[tokio::test]
async fn oldest_finished_sessions_are_removed_over_the_limit() {
    let settings = SessionSettings { max_sessions: 3, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::replying(ANSWER), settings);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bench.finish().await);
    }
    assert!(ids.iter().all(|id| bench.state(id).is_some()), "three are stored");
    ids.push(bench.finish().await);
    let stored: Vec<bool> = ids.iter().map(|id| bench.state(id).is_some()).collect();
    assert_eq!(stored, [false, true, true, true]);
}

/// Runs a session of this owner to its end.
async fn finish_of(bench: &Bench, owner: &str) -> String {
    let session = bench.start_with(of(owner));
    read(session.follow(StartFrom::Beginning)).await;
    session.id().to_owned()
}

#[tokio::test]
async fn client_with_many_sessions_removes_its_own_oldest() {
    let bench = Bench::new(
        Scripted::replying(ANSWER),
        SessionSettings { max_sessions: 6, ..SessionSettings::default() },
    );
    let bobs = [finish_of(&bench, "bob").await, finish_of(&bench, "bob").await];
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(bench.finish().await);
    }
    assert!(bobs.iter().all(|id| bench.sessions.get(id, "bob").is_some()));
    let stored: Vec<_> = ids.iter().filter(|id| bench.state(id).is_some()).collect();
    assert_eq!(stored, [&ids[36], &ids[37], &ids[38], &ids[39]]);
    // A further client gets its share, from the one who has the most.
    let carol = finish_of(&bench, "carol").await;
    assert!(bench.sessions.get(&carol, "carol").is_some() && bench.state(&ids[36]).is_none());
    assert!(bobs.iter().all(|id| bench.sessions.get(id, "bob").is_some()));
}

#[tokio::test]
async fn client_with_large_sessions_removes_its_own_oldest() {
    let settings = SessionSettings { max_total_bytes: 100_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::replying(&answer(&"x".repeat(10_000))), settings);
    let bob = finish_of(&bench, "bob").await;
    let mut last = String::new();
    for _ in 0..20 {
        last = bench.finish().await;
    }
    assert!(bench.sessions.get(&bob, "bob").is_some());
    assert!(bench.state(&last).is_some());
}

#[tokio::test]
async fn growing_log_of_a_client_is_shortened_before_another_loses_a_result() {
    let story = answer(&"word ".repeat(6_000));
    let settings = SessionSettings { max_total_bytes: 100_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::new([text_events(ANSWER, 10), text_events(&story, 10)]), settings);
    let bob = finish_of(&bench, "bob").await;
    let session = bench.start_with(detached());
    bench.sessions.idle().await;
    assert!(bench.sessions.get(&bob, "bob").is_some());
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
}

#[tokio::test(start_paused = true)]
async fn finished_sessions_expire() {
    let ttl = Duration::from_secs(60);
    let bench = Bench::new(Scripted::replying(ANSWER), SessionSettings { ttl, ..SessionSettings::default() });
    let id = bench.finish().await;
    tokio::time::advance(ttl).await;
    assert!(bench.state(&id).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(bench.state(&id).is_none());
    assert!(matches!(bench.resume(&id, 0).await, Err(ResumeError::Unknown)));
}

#[tokio::test]
async fn finished_sessions_are_removed_over_the_byte_limit() {
    let story = answer(&"x".repeat(10_000));
    let settings = SessionSettings { max_total_bytes: 100_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::replying(&story), settings);
    let running = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let held = running.start_with(detached());
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(bench.finish().await);
    }
    let stored: Vec<bool> = ids.iter().map(|id| bench.state(id).is_some()).collect();
    assert!(stored.iter().filter(|stored| **stored).count() >= 2 && !stored[0] && stored[9], "{stored:?}");
    assert!(stored.is_sorted(), "the oldest leave first: {stored:?}");
    assert_eq!(running.state(held.id()), Some(SessionState::Running));
}

#[tokio::test]
async fn log_over_the_limit_drops_its_oldest_entries() {
    let story = answer(&"word ".repeat(2_000));
    let settings = SessionSettings { max_session_bytes: 20_000, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::new([text_events(&story, 10)]), settings);
    let session = bench.start_with(detached());
    let mut slow = session.follow(StartFrom::Beginning);
    let mut lines = Vec::new();
    assert!(read_batch(&mut slow, &mut lines).await);
    bench.sessions.idle().await;
    let end = error_of(&read(slow).await);
    assert_eq!((&end["code"], &end["details"]["reason"]), (&"E2010".into(), &"left_behind".into()));
    let left = bench.resume(session.id(), lines.last().unwrap().1).await.err().unwrap();
    let ResumeError::Evicted { first, .. } = left else { panic!("{left:?}") };
    assert_eq!(code_of(&left), "E4014");
    let rest = read(bench.resume(session.id(), first).await.unwrap()).await;
    assert_eq!(rest[1].1, first + 1);
    final_data(&rest);
}

#[tokio::test]
async fn store_without_retention_serves_live_readers() {
    let settings = SessionSettings { max_sessions: 0, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::new([text_events(&answer("story"), 2)]), settings);
    let session = bench.start();
    let lines = read(session.follow(StartFrom::Beginning)).await;
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(bench.state(session.id()), None);
}
