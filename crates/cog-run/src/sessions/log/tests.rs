use cog_json::Value;
use cog_spec::{Meta, PartAnswer, PartProgress, Progress};

use super::*;

fn meta() -> Chunk {
    let meta = Box::new(Meta::for_failure("e"));
    Chunk::Meta { session_id: "s".to_owned(), meta, resume_from_seq: None, warnings: Vec::new() }
}

fn delta(seq: u64) -> Chunk {
    Chunk::Delta { seq, field: "data.a".to_owned(), delta: format!("part {seq:04}"), checkpoint: None }
}

/// A log with a meta chunk and deltas up to this number, a progress chunk after every fifth.
fn log(last: u64) -> Log {
    let mut log = Log::default();
    log.push(&meta());
    for seq in 1..=last {
        log.push(&delta(seq));
        if seq % 5 == 0 {
            log.push(&Chunk::Progress(Progress::default()));
        }
    }
    log
}

fn lines(log: &Log, from: u64) -> Vec<(u64, String)> {
    let (text, marks) = log.copy(from, log.end(), usize::MAX / 2).unwrap();
    marks.iter().map(|mark| mark.seq).zip(text.lines().map(str::to_owned)).collect()
}

#[test]
fn entries_are_the_chunks_as_json() {
    let log = log(2);
    let expected: Vec<_> = [(0, meta()), (1, delta(1)), (2, delta(2))]
        .iter()
        .map(|(seq, chunk)| (*seq, chunk.to_json()))
        .collect();
    assert_eq!(lines(&log, 0), expected);
    assert_eq!(log.meta(), Some(meta().to_json().as_str()));
}

#[test]
fn answer_of_a_part_is_an_entry_of_its_own_before_the_chunk() {
    let mut log = log(1);
    let answer = PartAnswer { key: "k".to_owned(), envelope: Value::parse(r#"{"ok":true}"#).unwrap() };
    let part = PartProgress { path: "a".to_owned(), answer: Some(answer), ..PartProgress::default() };
    log.push(&Chunk::Progress(Progress { part: Some(Box::new(part)), ..Progress::default() }));
    let added: Vec<_> = lines(&log, 2).into_iter().map(|(_, line)| line).collect();
    assert_eq!(
        added,
        [
            r#"{"part":"a","part_answer":{"key":"k","envelope":{"ok":true}}}"#,
            r#"{"progress":{"percent":0,"part":{"path":"a"}}}"#
        ]
    );
    assert_eq!((log.skip_answers(1), log.skip_answers(2), log.skip_answers(3)), (1, 3, 3));
}

#[test]
fn position_after_a_seq_is_that_of_the_next_entry() {
    let log = log(12);
    for seq in 0..12 {
        let next = lines(&log, log.after(seq).unwrap()).remove(0);
        let expected = if seq > 0 && seq % 5 == 0 { seq } else { seq + 1 };
        assert_eq!(next.0, expected, "after {seq}");
    }
    assert_eq!(log.after(12).unwrap(), log.end());
    assert_eq!(log.after(99).unwrap(), log.end());
}

#[test]
fn copy_returns_the_entries_that_fit_and_at_least_one() {
    let log = log(20);
    let (text, marks) = log.copy(1, log.end(), 200).unwrap();
    assert!(text.len() <= 200 && marks.len() > 1, "{}", text.len());
    assert_eq!(marks.last().unwrap().end as usize, text.len());
    assert_eq!(log.copy(1, log.end(), 1).unwrap().1.len(), 1);
    assert_eq!(log.copy(log.end(), log.end(), 1).unwrap().1.len(), 0);
    assert_eq!(log.copy(3, 5, 10_000).unwrap().1.len(), 2);
}

#[test]
fn oldest_entries_are_dropped_over_the_limit() {
    let complete = log(100);
    let all = lines(&complete, 0);
    let exact = complete.bytes();
    let mut same = log(100);
    same.bound(exact);
    assert_eq!(same.first_seq(), 0);
    let mut less = log(100);
    less.bound(exact - 1);
    assert!(less.first_seq() > 0 && less.bytes() <= exact - 1 - (exact - 1) / 4);
    let floor = less.first_seq();
    assert_eq!(less.end(), complete.end());
    assert_eq!(less.after(floor - 1), Err(Dropped));
    let position = less.after(floor).unwrap();
    assert_eq!(lines(&less, position), all[usize::try_from(position).unwrap()..]);
    let (text, marks) = less.copy(0, less.end(), 100_000).unwrap();
    assert_eq!((text.trim_end(), marks.len()), (all[0].1.as_str(), 1));
    assert_eq!(less.copy(1, less.end(), 1).unwrap_err(), Dropped);
}

#[test]
fn newest_entry_is_never_dropped() {
    let mut log = log(50);
    log.bound(1);
    assert_eq!(lines(&log, log.end() - 1).len(), 1);
    assert!(log.meta().is_some());
}

#[test]
fn fifty_chunks_take_less_than_8_kib() {
    let mut log = log(50);
    log.shrink();
    assert!(log.bytes() < 8 * 1024, "{}", log.bytes());
}

#[test]
fn reopening_removes_only_the_final_event() {
    let mut log = log(3);
    let before = log.end();
    log.reopen();
    assert_eq!(log.end(), before);
    log.push(&Chunk::Error {
        session_id: "s".to_owned(),
        error: Box::new(cog_spec::ErrorBody::new(cog_spec::Code::StreamInterrupted, "interrupted")),
        recovery: None,
        partial_data: None,
        warnings: Vec::new(),
    });
    assert!(log.is_over());
    log.reopen();
    assert!(!log.is_over());
    assert_eq!(lines(&log, 0), lines(&self::log(3), 0));
}

#[test]
fn repeated_media_do_not_evict_each_other() {
    let mut log = log(3);
    let media = "m".repeat(3 * MIN_MEDIA);
    log.push_line(&media, Event::Chunk, Some(4), false);
    log.push(&delta(5));
    log.bound(2 * MIN_MEDIA);
    log.push_line(&media, Event::Final, None, false);
    log.bound(2 * MIN_MEDIA);
    assert_eq!(lines(&log, log.after(3).unwrap()).len(), 3);
    for seq in 6..=6 + NEWEST as u64 {
        log.push(&delta(seq));
    }
    log.bound(2 * MIN_MEDIA);
    assert!(log.bytes() <= 2 * MIN_MEDIA, "the limit grows only for media");
}

fn partial(lines: &[&str]) -> Option<String> {
    let mut log = Log::default();
    log.push_line(r#"{"ok":true,"streaming":true,"session_id":"s"}"#, Event::Meta, None, false);
    for line in lines {
        let value = Value::parse(line).unwrap();
        let seq = value.get("chunk").and_then(|chunk| chunk.get("seq")?.as_u64());
        let event = match (seq, value.get("error")) {
            (Some(_), _) => Event::Chunk,
            (None, Some(_)) => Event::Error,
            (None, None) => Event::Progress,
        };
        log.push_line(line, event, seq, false);
    }
    from_log(&log).map(|data| data.to_string())
}

const ONE: &str = r#"{"chunk":{"seq":1,"type":"delta","field":"data.a","delta":"be"}}"#;

const TWO: &str = r#"{"chunk":{"seq":2,"type":"snapshot","field":"data.b[0]","data":7}}"#;

const WRONG: &str =
    r#"{"progress":{"percent":1,"violation":{"path":"data.b[0]","rule":"type","message":"m"}}}"#;

#[test]
fn contains_the_chunks_without_violating_fields() {
    assert_eq!(partial(&[]), None);
    assert_eq!(partial(&[ONE, TWO]).unwrap(), r#"{"a":"be","b":[7]}"#);
    assert_eq!(partial(&[ONE, TWO, WRONG]).unwrap(), r#"{"a":"be","b":[]}"#);
}

#[test]
fn omits_retracted_data() {
    let retraction = r#"{"chunk":{"seq":3,"type":"snapshot","data":{}}}"#;
    assert_eq!(partial(&[ONE, TWO, retraction]), None);
    let again = r#"{"chunk":{"seq":4,"type":"snapshot","field":"data.b[0]","data":8}}"#;
    assert_eq!(partial(&[ONE, TWO, WRONG, retraction, again]).unwrap(), r#"{"b":[8]}"#);
}

#[test]
fn uses_the_data_of_the_final_event() {
    let end = r#"{"ok":false,"error":{"code":"E2010"},"partial_data":{"a":"b"}}"#;
    assert_eq!(partial(&[ONE, end]).unwrap(), r#"{"a":"b"}"#);
    assert_eq!(partial(&[ONE, r#"{"ok":false,"error":{"code":"E2010"}}"#]), None);
}
