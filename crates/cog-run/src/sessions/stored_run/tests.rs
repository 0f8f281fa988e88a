#![expect(clippy::disallowed_methods, reason = "the tests damage and look at files")]

use cog_spec::{PartAnswer, PartProgress, Recovery};

use super::*;

fn record(input: RunInput) -> RunRecord {
    let mut options =
        RunOptions { strict: true, timeout: Some(Duration::from_secs(7)), ..RunOptions::default() };
    options.max_attempts = Some(20);
    RunRecord {
        module: "/m".to_owned(),
        input,
        options,
        provider: Some("a,b".to_owned()),
        model: None,
        is_trusted_for_run: false,
    }
}

fn answered(path: &str) -> Chunk {
    let envelope = Value::parse(r#"{"ok":true,"data":{"n":1.50}}"#).unwrap();
    let answer = Some(PartAnswer { key: "k".to_owned(), envelope });
    let part = PartProgress { path: path.to_owned(), answer, ..PartProgress::default() };
    Chunk::Progress(Progress { part: Some(Box::new(part)), ..Progress::default() })
}

fn json(text: &str) -> Value {
    Value::parse(text).unwrap()
}

#[test]
fn run_is_read_back_with_the_answers_of_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(directory.path().join("runs"));
    for input in [
        RunInput::Args("why?".to_owned()),
        RunInput::ArgsWith("why?".to_owned(), json(r#"{"n":1}"#)),
        RunInput::Json(json(r#"{"query":"é\n"}"#)),
    ] {
        let mut run = runs.create(record(input.clone())).unwrap();
        let mut chunk = answered("a");
        run.push(&mut chunk);
        assert!(
            matches!(&chunk, Chunk::Progress(Progress { part: Some(part), .. }) if part.answer.is_none())
        );
        let id = run.id().to_owned();
        assert_eq!(runs.open(&id).unwrap_err().code, Code::CheckpointInvalid.into(), "it is in progress");
        drop(run);
        std::fs::OpenOptions::new()
            .append(true)
            .open(runs.path_of(&id))
            .unwrap()
            .write_all(b"{\"part\":\"b\",")
            .unwrap();

        let mut run = runs.open(&id).unwrap();
        run.push(&mut answered("c"));
        drop(run);
        let run = runs.open(&id).unwrap();
        assert_eq!(format!("{:?}", run.record().input), format!("{input:?}"));
        assert_eq!((run.record().module.as_str(), run.record().provider.as_deref()), ("/m", Some("a,b")));
        let options = run.options(&RunOptions::default());
        let context = run.context(RunContext::default());
        assert!(options.strict && context.resume_from == Some(0));
        assert_eq!(options.timeout, Some(Duration::from_secs(7)), "the limit of the start");
        let other = RunOptions { timeout: Some(Duration::from_secs(9)), ..RunOptions::default() };
        assert_eq!(run.options(&other).timeout, Some(Duration::from_secs(9)));
        let finished = context.finished_parts.unwrap();
        assert!(
            ["a", "c"].iter().all(|part| finished.get(part, "k").is_some())
                && finished.get("b", "k").is_none()
        );
        run.reject();
        assert!(runs.open(&id).is_ok(), "a run that is rejected when it continues stays");
    }
}

#[test]
fn only_interrupted_runs_stay() {
    let directory = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(directory.path());
    let end = |reason: &str, recovery| Chunk::Error {
        session_id: "s".to_owned(),
        error: Box::new(
            ErrorBody::new(Code::StreamInterrupted, "m")
                .with_details(Value::from(serde_json::json!({ "reason": reason }))),
        ),
        recovery,
        partial_data: None,
        warnings: Vec::new(),
    };
    let recovery =
        || Some(Recovery { last_seq: 1, last_checkpoint: None, retry_after_ms: None, max_retries: None });
    for (reason, recovery, stays) in
        [("cancelled", None, true), ("budget", None, false), ("timeout", recovery(), true)]
    {
        let mut run = runs.create(record(RunInput::Args(String::new()))).unwrap();
        let id = run.id().to_owned();
        run.push(&mut end(reason, recovery));
        assert_eq!(run.close(), stays, "{reason}");
        assert_eq!(runs.open(&id).is_ok(), stays, "{reason}");
    }
    let run = runs.create(record(RunInput::Args(String::new()))).unwrap();
    let id = run.id().to_owned();
    run.reject();
    assert_eq!(runs.open(&id).unwrap_err().code, Code::SessionExpired.into());
}

#[test]
fn ids_name_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(directory.path().join("runs"));
    std::fs::write(directory.path().join("other.ndjson"), "{}").unwrap();
    for id in ["../other", "", "sess_1", "/etc/passwd", "sess_0000000000000000000000000000000\u{e9}"] {
        assert_eq!(runs.open(id).unwrap_err().code, Code::SessionExpired.into(), "{id}");
    }
    let path = runs.path_of("sess_00000000000000000000000000000000");
    std::fs::create_dir(directory.path().join("runs")).unwrap();
    for text in ["", "{}\n", "[]\n", "{\"cog_run\":1}\n"] {
        std::fs::write(&path, text).unwrap();
        let error = runs.open("sess_00000000000000000000000000000000").unwrap_err();
        assert_eq!(error.code, Code::CheckpointInvalid.into(), "{text}");
    }
}

#[test]
fn oldest_runs_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(directory.path());
    let new = || runs.create(record(RunInput::Args(String::new()))).unwrap();
    let open = new();
    let old = new().id().to_owned();
    let age = |id: &str, age: Duration| {
        let file = std::fs::OpenOptions::new().write(true).open(runs.path_of(id)).unwrap();
        file.set_modified(crate::clock::now() - age).unwrap();
    };
    age(&old, MAX_AGE + Duration::from_secs(60));
    age(open.id(), MAX_AGE + Duration::from_secs(60));
    for _ in 0..MAX_RUNS {
        drop(new());
    }
    assert!(runs.open(&old).is_err());
    assert!(runs.path_of(open.id()).exists(), "it is in progress");
    assert!(file::list(directory.path()).unwrap().len() <= MAX_RUNS + 1);
}

#[test]
fn files_of_a_run_are_removed_with_it() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let runs = StoredRuns::in_directory(directory);
    let names = || {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let left_by = |path: &Path| {
        std::fs::write(file::call_log(path), "{}\n").unwrap();
        std::fs::create_dir(path.with_extension("media")).unwrap();
        let name = format!("{}.png", "0".repeat(64));
        std::fs::write(path.with_extension("media").join(name), "x").unwrap();
    };
    let run = runs.create(record(RunInput::Args(String::new()))).unwrap();
    left_by(&run.path);
    assert_eq!(names().len(), 3);
    assert!(!run.close());
    assert_eq!(names().len(), 0);
    left_by(&runs.path_of("sess_00000000000000000000000000000000"));
    let run = runs.create(record(RunInput::Args(String::new()))).unwrap();
    assert_eq!(names(), std::slice::from_ref(&run.path), "those of a run that is not stored are removed");
}

#[test]
fn run_that_another_program_is_creating_stays() {
    let directory = tempfile::tempdir().unwrap();
    let runs = StoredRuns::in_directory(directory.path());
    let path = runs.path_of("sess_00000000000000000000000000000000");
    for (age, stays) in [(Duration::ZERO, true), (ABANDONED * 2, false)] {
        let file = File::create(&path).unwrap();
        file.set_modified(crate::clock::now() - age).unwrap();
        remove_unlocked(&path);
        assert_eq!(path.exists(), stays, "{age:?}");
    }
}
