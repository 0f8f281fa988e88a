//! Sessions that a restarted program restores.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::SystemTime,
};

use cog_run::sessions::{SessionError, SessionSettings, SessionState, Sessions, StartFrom};
use tempfile::TempDir;

use super::{
    Bench, Random, answer, applied, detached, error_of, final_data, partial_of, read, read_some, text_events,
};
use crate::support::{ANSWER, Scripted};

/// The file of a session that has only sent its meta chunk.
const OURS: &str = "sess_0123456789abcdef0123456789abcdef.ndjson";
const HEADER: &str = r#"{"cog_session":1,"session_id":"sess_0123456789abcdef0123456789abcdef","owner":"alice","detached":false,"created_ms":1,"module":"m","options":{},"input":{}}"#;
const META: &str =
    r#"{"ok":true,"streaming":true,"session_id":"sess_0123456789abcdef0123456789abcdef","meta":{}}"#;

pub(super) fn on(directory: &Path) -> SessionSettings {
    SessionSettings { state_dir: Some(directory.to_owned()), ..SessionSettings::default() }
}

impl Bench {
    /// Restarts the program.
    pub(super) async fn restarted(mut self, settings: SessionSettings) -> Self {
        self.sessions.idle().await;
        self.sessions = Sessions::open(SessionSettings::default()).unwrap();
        tokio::task::yield_now().await;
        self.sessions = Sessions::open(settings).unwrap();
        self
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("sessions")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "ndjson")).collect()
}

pub(super) fn bytes(path: &Path) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    fs::OpenOptions::new().read(true).open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
pub(super) fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

/// Creates a directory of an earlier program with one file.
pub(super) fn left_behind(name: &str, bytes: &[u8]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("sessions")).unwrap();
    put(&directory.path().join("sessions").join(name), bytes);
    directory
}

#[tokio::test]
async fn finished_stream_has_the_same_bytes_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::new(
        Scripted::new([text_events(&answer("a long \"story\" \n über"), 3)]),
        on(directory.path()),
    );
    let id = bench.finish().await;
    let (log, info) = (bench.log(&id).await, bench.sessions.get(&id, "alice"));
    let bench = bench.restarted(on(directory.path())).await;
    assert_eq!(bench.log(&id).await, log);
    assert_eq!(bench.sessions.get(&id, "alice"), info);
    assert!(bench.sessions.get(&id, "mallory").is_none());
    let rest = read(bench.resume(&id, 3).await.unwrap()).await;
    assert_eq!(rest[1..], log[log.iter().position(|line| line.1 == 4).unwrap()..]);
}

#[tokio::test]
async fn file_truncated_at_any_byte_resumes_to_the_same_data() {
    let origin = tempfile::tempdir().unwrap();
    let reply = text_events(&answer(&"word after word ".repeat(20)), 9);
    let first = Bench::new(Scripted::new([reply.clone()]), on(origin.path()));
    let id = first.finish().await;
    let log = first.log(&id).await;
    let first = first.restarted(SessionSettings::default()).await;
    let path = files(origin.path()).remove(0);
    let complete = bytes(&path);
    let preamble = complete.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    let mut random = Random::new();
    for _ in 0..200 {
        let cut = preamble + random.below(complete.len() - preamble);
        let directory = left_behind(path.file_name().unwrap().to_str().unwrap(), &complete[..cut]);
        let written = complete[..cut].iter().filter(|byte| **byte == b'\n').count() - 1;
        // A chunk that a client has received is in the file, because it is shown only then.
        let mut joined = log[..1 + random.below(written)].to_vec();
        let bench = Bench::new(Scripted::new([reply.clone()]), on(directory.path()));
        assert_eq!(bench.state(&id), Some(SessionState::Interrupted), "cut at {cut}");
        let last_seq = joined.last().unwrap().1;
        joined.extend(read(bench.resume(&id, last_seq).await.unwrap()).await.into_iter().skip(1));
        assert_eq!(applied(&joined), final_data(&joined));
        assert_eq!(joined, bench.log(&id).await);
        let numbers = joined.iter().filter(|line| line.0 == "chunk").map(|line| line.1);
        assert!(numbers.eq(1..=joined.last().unwrap().1), "no gap, nothing twice");
        let bench = bench.restarted(on(directory.path())).await;
        assert_eq!(joined, bench.log(&id).await, "also after a second restart");
    }
    drop(first);
}

#[tokio::test]
async fn unfinished_stream_ends_with_recovery_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let provider = Scripted::hanging(r#"{"ok": true, "data": {"result": "fine", "rationale": "be"#);
    let bench = Bench::new(provider, on(directory.path()));
    let session = bench.start_with(detached());
    let received = read_some(&mut session.follow(StartFrom::Beginning)).await;
    let name = format!("{}.ndjson", session.id());
    let killed = left_behind(&name, &bytes(&directory.path().join("sessions").join(&name)));
    let after = Bench::new(Scripted::replying(ANSWER), on(killed.path()));
    let log = after.log(session.id()).await;
    assert_eq!(log[..received.len()], received);
    let end = error_of(&log);
    assert_eq!((&end["code"], &end["details"]["reason"]), (&"E2010".into(), &"shutdown".into()));
    assert_eq!(end["recovery"]["last_seq"], log.last().unwrap().1);
    assert_eq!(partial_of(&log), serde_json::json!({ "result": "fine", "rationale": "be" }));
}

#[tokio::test]
async fn repeated_run_uses_its_stored_options() {
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), on(directory.path()));
    let mut spec = bench.spec();
    spec.options.trace_id = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
    spec.options.generation.temperature = Some(0.25);
    let session = bench.sessions.prepare(&bench.runtime, &bench.module, spec, detached()).unwrap().start();
    read_some(&mut session.follow(StartFrom::Beginning)).await;
    let name = format!("{}.ndjson", session.id());
    let killed = left_behind(&name, &bytes(&directory.path().join("sessions").join(&name)));
    let after = Bench::new(Scripted::replying(ANSWER), on(killed.path()));
    let lines = read(after.resume(session.id(), 0).await.unwrap()).await;
    let end: serde_json::Value = serde_json::from_str(&lines.last().unwrap().2).unwrap();
    assert_eq!(end["meta"]["trace_id"], "0af7651916cd43dd8448eb211c80319c", "{end}");
    assert_eq!(after.provider.requests()[0].generation.temperature, Some(0.25));
}

#[tokio::test]
async fn cancelled_session_stays_cancelled_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "fi"#), on(directory.path()));
    let session = bench.start();
    read_some(&mut session.follow(StartFrom::Beginning)).await;
    bench.sessions.idle().await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Interrupted));
    bench.sessions.cancel(session.id(), "alice").unwrap();
    let bench = bench.restarted(on(directory.path())).await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Cancelled));
    let log = bench.log(session.id()).await;
    assert_eq!(error_of(&log)["details"]["reason"], "cancelled");
    assert_eq!(partial_of(&log), serde_json::json!({ "result": "fi" }));
}

#[tokio::test]
async fn other_files_are_skipped() {
    let garbage = [
        String::new(),
        "\u{0}\u{0}\n".to_owned(),
        "{}\n".to_owned(),
        HEADER[..40].to_owned(),
        format!("{HEADER}\n"),
        format!("{HEADER}\nnonsense\n"),
        format!("{HEADER}\n{{\"chunk\":{{\"seq\":1}}}}\n"),
        format!("{}\n{META}\n", HEADER.replace("0123456789abcdef0", "0123456789abcdef1")),
        format!("{}\n{META}\n", HEADER.replace("\"options\":{}", "\"options\":{\"modle\":1}")),
    ];
    for text in garbage {
        let directory = left_behind(OURS, text.as_bytes());
        let sessions = Sessions::open(on(directory.path())).unwrap();
        assert!(sessions.get(&OURS[..37], "alice").is_none(), "{text}");
        assert_eq!(files(directory.path()), Vec::<PathBuf>::new(), "{text}");
    }
    let wrong =
        [format!("{HEADER}\n{META}\n{{\"chunk\":{{\"seq\":2}}}}\n"), format!("{HEADER}\n{META}\n{META}\n")];
    for text in wrong {
        let directory = left_behind(OURS, text.as_bytes());
        let sessions = Sessions::open(on(directory.path())).unwrap();
        assert_eq!(sessions.get(&OURS[..37], "alice").unwrap().last_seq, 0, "{text}");
    }
    for name in ["notes.txt", "sess_1.ndjson", "sess_0123456789abcdef0123456789abcdeg.ndjson"] {
        let directory = left_behind(name, b"mine");
        Sessions::open(on(directory.path())).unwrap();
        assert!(directory.path().join("sessions").join(name).exists());
    }
}

#[tokio::test]
async fn stream_continues_in_memory_if_its_file_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::new(Scripted::new([text_events(&answer("story"), 2)]), on(directory.path()));
    let stored = bench.finish().await;
    assert_eq!(bench.sessions.count_not_on_disk(), 0);
    fs::remove_dir_all(directory.path().join("sessions")).unwrap();
    let id = bench.finish().await;
    assert_eq!(bench.sessions.count_not_on_disk(), 1);
    let log = bench.log(&id).await;
    assert_eq!(applied(&log), final_data(&log));
    assert_eq!(bench.state(&stored), Some(SessionState::Finished));
}

#[tokio::test]
async fn directory_is_locked_by_one_program() {
    let directory = tempfile::tempdir().unwrap();
    let first = Sessions::open(on(directory.path())).unwrap();
    let second = Sessions::open(on(directory.path()));
    assert!(matches!(second.err().unwrap(), SessionError::InUse { .. }));
    drop(first);
    assert!(Sessions::open(on(directory.path())).is_ok());
    let file = directory.path().join("file");
    put(&file, b"");
    assert!(matches!(Sessions::open(on(&file)).err().unwrap(), SessionError::Directory { .. }));
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let bench = Bench::new(Scripted::replying(ANSWER), on(directory.path()));
    bench.finish().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory.path().join("sessions")), 0o700);
    assert_eq!(mode(&files(directory.path())[0]), 0o600);
}

#[tokio::test]
async fn files_are_removed_with_their_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SessionSettings { max_sessions: 2, ..on(directory.path()) };
    let bench = Bench::new(Scripted::replying(ANSWER), settings.clone());
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(bench.finish().await);
    }
    let bench = bench.restarted(settings).await;
    assert_eq!(files(directory.path()).len(), 2);
    assert_eq!(
        ids.iter().map(|id| bench.state(id).is_some()).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    let bench = bench.restarted(SessionSettings { max_sessions: 1, ..on(directory.path()) }).await;
    bench.sessions.idle().await;
    assert_eq!(files(directory.path()).len(), 1);
    let old = File::options().append(true).open(&files(directory.path())[0]).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let bench = bench.restarted(on(directory.path())).await;
    assert_eq!(files(directory.path()).len(), 0);
    assert!(ids.iter().all(|id| bench.state(id).is_none()));
}

#[tokio::test]
async fn file_over_the_log_limit_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SessionSettings { max_session_bytes: 10_000, ..on(directory.path()) };
    let bench = Bench::new(Scripted::new([text_events(&answer(&"word ".repeat(1_000)), 10)]), settings);
    let session = bench.start_with(detached());
    bench.sessions.idle().await;
    assert_eq!(bench.state(session.id()), Some(SessionState::Finished));
    assert_eq!(files(directory.path()).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn files_expire_without_requests() {
    let directory = left_behind(OURS, format!("{HEADER}\n{META}\n").as_bytes());
    let sessions = Sessions::open(on(directory.path())).unwrap();
    assert_eq!(files(directory.path()).len(), 1);
    tokio::time::sleep(SessionSettings::default().ttl * 2).await;
    sessions.idle().await;
    assert_eq!(files(directory.path()).len(), 0);
}
