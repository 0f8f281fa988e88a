//! Media of an interrupted run whose source has expired when it starts again.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use cog_media::{Access, Uploads};
use cog_module::Finder;
use cog_provider::Provider;
use cog_run::{
    Runtime,
    provider::ModelEvent,
    sessions::{After, RunSpec, SessionSettings},
};

use super::{Bench, disk, final_data, of, read, read_some};
use crate::{
    support::{Scripted, directory, write},
    tools::{halted_media::Once, script::answer},
};

/// Returns a bench whose module looks at an image, and whose model hangs in its first reply.
fn looking(uploads: &Arc<Once>, replies: &[Vec<ModelEvent>], settings: SessionSettings) -> Bench {
    let module = directory("Look.", &["modalities: { input: [text, image], output: [text] }"]);
    write(
        &module,
        "schema.json",
        r##"{"input": {"type": "object", "properties": {"image": {"$ref": "#/$defs/MediaInput"}}},
            "data": {"type": "object", "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"##,
    );
    let provider = Scripted::new(replies.iter().cloned()).accepting_images(&["image/webp"]);
    let mut bench = Bench::of(module, provider.hanging_after_reply(), settings);
    let access = Access { uploads: Some(Arc::clone(uploads) as Arc<dyn Uploads>), ..Access::default() };
    bench.runtime = Runtime::builder()
        .provider(Arc::clone(&bench.provider) as Arc<dyn Provider>)
        .finder(Finder::new(".", vec![bench.directory.path().to_owned()], None))
        .media(access)
        .build();
    bench
}

/// Starts a run with an upload, and interrupts it in its answer.
async fn interrupted(bench: &Bench) -> String {
    let input = cog_json::Value::parse(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#).unwrap();
    let spec = RunSpec::new("m", input);
    let session = bench.sessions.start(&bench.runtime, &bench.module, spec, of("alice")).unwrap();
    let mut reader = session.follow(After::Start);
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

#[tokio::test]
async fn media_are_stored_with_a_session_on_disk() {
    let (uploads, place) = (Arc::new(Once::default()), tempfile::tempdir().unwrap());
    let bench = looking(&uploads, &[partial()], disk::on(place.path()));
    let id = interrupted(&bench).await;
    drop(bench);
    let log = place.path().join("sessions").join(format!("{id}.calls"));
    let after = looking(&uploads, &[answer()], disk::on(place.path()));
    let lines = read(after.resume(&id, 0).await.unwrap()).await;
    assert_eq!(final_data(&lines)["result"], "fine", "{lines:?}");
    assert!(!Path::new(&log).exists(), "a finished run does not start again");
}
