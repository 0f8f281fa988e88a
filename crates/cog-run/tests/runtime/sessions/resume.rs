//! Resuming after a reader was disconnected.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_run::sessions::{ResumeError, ResumeFrom, SessionOptions, SessionSettings, SessionState, StartFrom};
use cog_spec::{Checkpoint, ModelEvent};

use super::{
    Bench, Line, Random, Slot, answer, applied, code_of, detached, error_of, final_data, of, read,
    read_batch, read_some, text_events,
};
use crate::support::{self, ANSWER, Scripted};

#[tokio::test]
async fn detached_run_continues_without_readers() {
    let bench = Bench::new(Scripted::new([text_events(&answer("story"), 3)]), SessionSettings::default());
    let session = bench.start_with(detached());
    drop(session.follow(StartFrom::Beginning));
    bench.sessions.idle().await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
    let lines = read(bench.resume(session.id(), 2).await.unwrap()).await;
    assert!(lines[0].2.contains(r#""resumed":true,"resume_from_seq":2,"#), "{}", lines[0].2);
    assert_eq!(lines[1].1, 3);
    final_data(&lines);
}

#[tokio::test]
async fn interrupted_run_is_repeated_in_its_session() {
    let hanging = text_events(r#"{"ok": true, "data": {"result": "wrong", "rationale": "bef"#, 7);
    let hanging = hanging.into_iter().filter(|event| matches!(event, ModelEvent::Text(_))).collect();
    let provider = Scripted::new([hanging, text_events(&answer("after"), 7)]).hanging_after_reply();
    let bench = Bench::new(provider, SessionSettings::default());
    let session = bench.start();
    let mut follower = session.follow(StartFrom::Beginning);
    let mut lines = read_some(&mut follower).await;
    drop(follower);
    let last_seq = lines.last().unwrap().1;
    let held = Arc::new(AtomicUsize::new(0));
    let from = ResumeFrom { last_seq, last_checkpoint: None };
    let slot = Slot::take(&held);
    let resumed = bench
        .sessions
        .resume(&bench.runtime, session.id(), "alice", from, Default::default(), slot)
        .await
        .unwrap();
    let resumed = read(resumed).await;
    assert_eq!((bench.provider.requests().len(), held.load(Ordering::SeqCst)), (2, 0));
    lines.extend(resumed.into_iter().skip(1));
    assert_eq!(lines, bench.log(session.id()).await);
    assert!(lines.iter().any(|(_, _, line)| line.contains(r#""type":"snapshot","data":{}"#)));
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
}

#[tokio::test]
async fn image_is_sent_again_after_a_disconnect() {
    let text = crate::media_out::ANSWER;
    let events: Vec<_> = [crate::media_out::png()].into_iter().chain(text_events(text, 7)).collect();
    let provider = Scripted::new([events]);
    let bench = Bench::of(crate::media_out::artist(&[]), provider, SessionSettings::default());
    let id = bench.finish().await;
    let lines = bench.log(&id).await;
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(final_data(&lines)["image"]["width"], 1);
    let last_seq = lines.iter().map(|(_, seq, _)| *seq).max().unwrap();
    for cut in 0..=last_seq {
        let before = lines.iter().filter(|(event, seq, _)| event == "chunk" && *seq <= cut).cloned();
        let resumed = read(bench.resume(&id, cut).await.unwrap()).await;
        let all: Vec<Line> = before.chain(resumed.into_iter().skip(1)).collect();
        assert_eq!(applied(&all), final_data(&lines), "after {cut}");
    }
    assert_eq!(bench.provider.requests().len(), 1);
}

#[tokio::test]
async fn run_interrupted_by_the_provider_can_be_resumed() {
    let mut cut = text_events(&answer("before"), 7);
    cut.truncate(cut.len() - 3);
    let bench =
        Bench::new(Scripted::new([cut, text_events(&answer("after"), 7)]), SessionSettings::default());
    let id = bench.finish().await;
    let mut lines = bench.log(&id).await;
    let end = error_of(&lines);
    assert_eq!((end["code"].as_str(), bench.state(&id)), (Some("E2010"), Some(SessionState::Interrupted)));
    lines.pop();
    let last_seq = end["recovery"]["last_seq"].as_u64().unwrap();
    lines.extend(read(bench.resume(&id, last_seq).await.unwrap()).await.into_iter().skip(1));
    assert_eq!(lines, bench.log(&id).await);
    assert_eq!(applied(&lines), final_data(&lines));
    assert_eq!(final_data(&lines)["rationale"], "after");
}

#[tokio::test]
async fn concurrent_resumes_share_one_run() {
    let cut = vec![ModelEvent::Text(r#"{"ok": true, "data": {"result": "fi"#.to_owned())];
    let bench =
        Bench::new(Scripted::new([cut, text_events(&answer("after"), 7)]), SessionSettings::default());
    let id = bench.finish().await;
    let (one, other) = (bench.resume(&id, 0).await.unwrap(), bench.resume(&id, 0).await.unwrap());
    let (one, other) = tokio::join!(read(one), read(other));
    assert_eq!(one, other);
    assert_eq!(bench.provider.requests().len(), 2);
}

#[tokio::test]
async fn resumed_parts_join_to_the_complete_log() {
    let story = "word after word ".repeat(30);
    let mut random = Random::new();
    for cut in 0..200 {
        let bench = Bench::new(Scripted::new([text_events(&answer(&story), 9)]), SessionSettings::default());
        let is_detached = cut % 2 == 0;
        let session = bench.start_with(SessionOptions { detached: is_detached, ..of("alice") });
        let mut joined: Vec<Line> = Vec::new();
        let mut follower = session.follow(StartFrom::Beginning);
        for _ in 0..1 + random.below(4) {
            let mut lines = Vec::new();
            for _ in 0..1 + random.below(6) {
                if !read_batch(&mut follower, &mut lines).await {
                    break;
                }
            }
            // The lost connection drops some of the lines.
            lines.truncate(1 + random.below(lines.len()));
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
async fn forged_positions_are_rejected() {
    let bench = Bench::new(Scripted::replying(&answer("because")), SessionSettings::default());
    let id = bench.finish().await;
    let last = bench.sessions.get(&id, "alice").unwrap().last_seq;
    assert!(bench.resume(&id, last).await.is_ok());
    let ahead = bench.resume(&id, last + 1).await.err().unwrap();
    assert_eq!(code_of(&ahead), "E4014");
    assert!(matches!(ahead, ResumeError::Ahead { .. }));
    assert_eq!(code_of(&bench.resume("sess_0", 0).await.err().unwrap()), "E4013");
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
            resumed.map(drop).map_err(|error| code_of(&error)).err().as_deref(),
            (!is_right).then_some("E4014")
        );
    }
}

#[tokio::test]
async fn resuming_is_rejected_if_disabled() {
    let settings = SessionSettings { recovery: None, ..SessionSettings::default() };
    let bench = Bench::new(Scripted::replying(ANSWER), settings);
    let id = bench.finish().await;
    assert_eq!(code_of(&bench.resume(&id, 0).await.err().unwrap()), "E4012");
    assert_eq!(bench.log(&id).await.last().unwrap().0, "final");
}

#[tokio::test]
async fn repeated_run_is_checked_again() {
    let bench = Bench::new(Scripted::hanging("{"), SessionSettings::default());
    let session = bench.start();
    drop(session.follow(StartFrom::Beginning));
    bench.sessions.idle().await;
    // Only agents may call the module now.
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
                    invocation: { user_invocable: false }\n";
    support::write(&bench.directory, "m/module.yaml", manifest);
    let refused = bench.resume(session.id(), 0).await.err().unwrap();
    assert_eq!(code_of(&refused), "E4007");
    assert_eq!(bench.state(session.id()), Some(SessionState::Interrupted));
}
