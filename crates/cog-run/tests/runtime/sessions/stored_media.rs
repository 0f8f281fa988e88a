//! Media of an interrupted run whose source has expired when it starts again.

#![expect(clippy::disallowed_methods, reason = "a test makes its own files")]

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use cog_media::{Access, Uploads};
use cog_module::Finder;
use cog_provider::Provider;
use cog_run::{
    RunInput, RunOptions, Runtime,
    provider::ModelEvent,
    sessions::{RunSpec, SessionSettings, StartFrom, StoredRuns},
};

use super::{Bench, disk, final_data, of, read, read_some, stored};
use crate::{
    support::{Scripted, directory, record_of, write},
    tools::{halted_media::Once, script::answer},
};

/// Returns a bench whose module looks at an image, and whose model hangs in its first reply.
fn looking(uploads: &Arc<Once>, replies: &[Vec<ModelEvent>], settings: SessionSettings) -> Bench {
    looking_with(&["image/webp"], uploads, replies, settings)
}

/// Returns a bench of a provider that accepts images of these types.
fn looking_with(
    types: &'static [&'static str],
    uploads: &Arc<Once>,
    replies: &[Vec<ModelEvent>],
    settings: SessionSettings,
) -> Bench {
    let module = directory("Look.", &["modalities: { input: [text, image], output: [text] }"]);
    write(
        &module,
        "schema.json",
        r##"{"input": {"type": "object", "properties": {"image": {"$ref": "#/$defs/MediaInput"}}},
            "data": {"type": "object", "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"##,
    );
    let provider = Scripted::new(replies.iter().cloned()).accepting_images(types);
    let mut bench = Bench::of(module, provider.hanging_after_reply(), settings);
    let access = Access { uploads: Some(Arc::clone(uploads) as Arc<dyn Uploads>), ..Access::default() };
    bench.runtime = Runtime::builder()
        .provider(Arc::clone(&bench.provider) as Arc<dyn Provider>)
        .finder(Finder::new(".", vec![bench.directory.path().to_owned()], None))
        .media(access)
        .build()
        .unwrap();
    bench
}

/// Starts a run with an upload, and interrupts it in its answer.
async fn interrupted(bench: &Bench) -> String {
    let input = cog_json::Value::parse(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#).unwrap();
    let spec = RunSpec::new("m", input);
    let session = bench.sessions.prepare(&bench.runtime, &bench.module, spec, of("alice")).unwrap().start();
    let mut reader = session.follow(StartFrom::Beginning);
    read_some(&mut reader).await;
    drop(reader);
    bench.sessions.idle().await;
    session.id().to_owned()
}

/// Returns a reply that stops in the middle of the answer.
fn partial() -> Vec<ModelEvent> {
    vec![ModelEvent::Text(r#"{"ok": true, "data": {"result": "fi"#.to_owned())]
}

#[tokio::test]
async fn repeated_run_has_the_media_of_an_upload_that_expired() {
    let uploads = Arc::new(Once::default());
    let bench = looking(&uploads, &[partial(), answer()], SessionSettings::default());
    let id = interrupted(&bench).await;
    let lines = read(bench.resume(&id, 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
    let requests = bench.provider.requests();
    assert_eq!(requests[0].messages, requests[1].messages, "the model sees the same image");
    assert_eq!(uploads.0.load(Ordering::SeqCst), 1);
}

/// Returns the names of the stored media.
fn media_in(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place.join("sessions/media")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn media_are_stored_once_until_no_session_refers_to_them() {
    let place = tempfile::tempdir().unwrap();
    let on_disk = || disk::on(place.path());
    let first = looking(&Arc::default(), &[partial()], on_disk());
    let one = interrupted(&first).await;
    drop(first);
    let log = |id: &str| place.path().join("sessions").join(format!("{id}.calls"));
    assert!(!std::fs::read_to_string(log(&one)).unwrap().contains("base64"));
    std::fs::write(place.path().join(format!("sessions/media/{}.png", "0".repeat(64))), "left over").unwrap();
    let next = looking(&Arc::default(), &[partial(), answer(), answer()], on_disk());
    let other = interrupted(&next).await;
    let stored = media_in(place.path());
    assert!(stored.len() == 1 && stored[0].ends_with(".webp"), "{stored:?}");
    for (id, left) in [(one, 1), (other, 0)] {
        let lines = read(next.resume(&id, 0).await.unwrap()).await;
        assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
        assert!(!log(&id).exists(), "a finished run does not start again");
        assert_eq!(media_in(place.path()).len(), left);
    }
    let requests = next.provider.requests();
    assert_eq!(requests[0].messages, requests[1].messages, "the model sees the same image");
}

#[tokio::test]
async fn run_without_its_stored_media_opens_them_again() {
    let place = tempfile::tempdir().unwrap();
    let first = looking(&Arc::default(), &[partial()], disk::on(place.path()));
    let id = interrupted(&first).await;
    drop(first);
    std::fs::remove_dir_all(place.path().join("sessions/media")).unwrap();
    let uploads = Arc::new(Once::default());
    let next = looking(&uploads, &[answer()], disk::on(place.path()));
    let lines = read(next.resume(&id, 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
    assert_eq!(uploads.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn stored_run_opens_its_media_once() {
    let place = tempfile::tempdir().unwrap();
    let uploads = Arc::new(Once::default());
    let bench = looking(&uploads, &[partial(), answer()], SessionSettings::default());
    let runs = StoredRuns::in_directory(place.path());
    let input = cog_json::Value::parse(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#).unwrap();
    let input = || RunInput::Json(input.clone());
    let run = runs.create(record_of(input(), RunOptions::default())).unwrap();
    let id = run.id().to_owned();
    let mut chunks = stored(&bench, &run, input());
    while bench.provider.requests().is_empty() {
        let _ = tokio::time::timeout(Duration::from_millis(5), chunks.next()).await;
    }
    drop((chunks, run));
    let run = runs.open(&id).unwrap();
    let envelope = stored(&bench, &run, input()).fold().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = bench.provider.requests();
    assert_eq!(requests[0].messages, requests[1].messages, "the model sees the same image");
    assert_eq!(uploads.0.load(Ordering::SeqCst), 1);
    assert!(!run.close());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn session_that_is_refused_before_its_start_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let bench = looking_with(&["image/none"], &Arc::default(), &[answer()], disk::on(place.path()));
    let input = cog_json::Value::parse(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#).unwrap();
    let spec = || RunSpec::new("m", input.clone());
    let session = bench.sessions.prepare(&bench.runtime, &bench.module, spec(), of("alice")).unwrap();
    let refused = session.open().await.err().unwrap();
    assert_eq!(refused.error().unwrap().code.as_str(), "E4011", "{:?}", refused.error());
    drop(bench.sessions.prepare(&bench.runtime, &bench.module, spec(), of("alice")).unwrap());
    assert_eq!(media_in(place.path()), [""; 0]);
    let left = std::fs::read_dir(place.path().join("sessions")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name()).filter(|name| name != "lock" && name != "media");
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
}
