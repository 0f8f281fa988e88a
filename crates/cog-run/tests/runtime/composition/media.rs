//! Compositions with media whose sources expire before they continue.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_json::Value;
use cog_media::{Access, MediaError, SourceContent, Store, Uploads, decode_base64};
use cog_run::{
    ModuleRef, RunInput, RunOptions, Runtime,
    sessions::{ResumeFrom, RunSpec, SessionSettings, Sessions, StartFrom, Subscriber},
    tools::{Approval, Decision, ToolInfo},
};

use super::support::{Bench, MAP, Says, answer, code, result, session_of};

/// An upload that can be opened so many times.
struct Expiring(AtomicUsize);

impl Uploads for Expiring {
    fn open(&self, _: &str, _: Option<&str>) -> Result<SourceContent, MediaError> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_err(|_| MediaError::Upload { expired: true })?;
        let image = "UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=";
        Ok(SourceContent { stored: decode_base64(image, Store::with_limit(1 << 10))?, declared: None })
    }
}

const SCHEMA: &str = r##"{"input": {"type": "object",
        "properties": {"image": {"$ref": "#/$defs/MediaInput"}, "query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {}, "rationale": {"type": "string"}}}}"##;
const IMAGES: &str = "modalities: {input: [text, image], output: [text]}";
const TOOLS: &str = "policies: {tools_allowed: true}\ntools: {allowed: [delete]}";

/// Returns a composition of `one` and `two`, which both receive the image.
fn bench(replies: &[(&str, &[Says])]) -> Bench {
    let composition = format!(
        "{IMAGES}
composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one, mapping: {{image: $.image}}}}
    - {{from: [input, one.output], to: two, mapping: {{image: $.input.image, query: $.one.data.result}}}}
    - {{from: two.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &[], replies);
    bench.module("one", IMAGES, "Look.");
    bench.module("two", &format!("{IMAGES}\n{TOOLS}"), "Look.");
    ["whole", "one", "two"].iter().for_each(|name| bench.file(name, "schema.json", SCHEMA));
    bench
}

/// Returns a runtime whose upload expires when it was opened so many times.
fn runtime(bench: &Bench, times: usize) -> Runtime {
    let uploads: Arc<dyn Uploads> = Arc::new(Expiring(AtomicUsize::new(times)));
    let delete =
        ToolInfo::new("delete", "Deletes it.", &Value::parse(r#"{"type": "object"}"#).unwrap()).unwrap();
    let delete = delete.with_confirmation().function(async |_: Value, _| Ok("deleted"));
    let access = Access { uploads: Some(uploads), ..Access::default() };
    bench.builder().media(access).tool(Arc::new(delete)).build().unwrap()
}

fn image() -> Value {
    Value::parse(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#).unwrap()
}

#[tokio::test]
async fn halted_composition_has_the_media_of_an_upload_that_expired() {
    let call = || Says::Call("delete");
    let bench = bench(&[("two", &[call(), call(), result("the end")])]);
    let runtime = runtime(&bench, 3);
    let module = runtime.load(ModuleRef::Name("whole")).unwrap();
    let mut envelope = runtime.run(&module, RunInput::Json(image()), RunOptions::default()).await;
    for _ in 0..2 {
        assert_eq!(code(&envelope), "E4007", "{:?}", envelope.error());
        let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
        let id = details["halted"]["id"].as_str().unwrap().to_owned();
        envelope = runtime.continue_run(&id, Decision::yes(), RunOptions::default()).await;
    }
    assert_eq!(answer(&envelope), "the end");
    assert_eq!(bench.provider.called(), ["one", "two", "two", "two"], "the answer of `one` counts");
}

#[tokio::test]
async fn interrupted_composition_has_the_media_of_an_upload_that_expired() {
    let bench = bench(&[("two", &[Says::Never, result("the end")])]);
    let runtime = runtime(&bench, 3);
    let sessions = Sessions::open(SessionSettings::default()).unwrap();
    let module = runtime.load(ModuleRef::Name("whole")).unwrap();
    let spec = RunSpec::new("whole", image());
    let session = sessions.prepare(&runtime, &module, spec, session_of("ada")).unwrap().start();
    let id = session.id().to_owned();
    let mut reader = session.follow(StartFrom::Beginning);
    bench.read_until(&mut reader, "two", 1).await;
    drop((reader, session));
    sessions.idle().await;
    let from = ResumeFrom::default();
    let resumed =
        sessions.resume(&runtime, &id, "ada", from, RunOptions::default(), Box::new(())).await.unwrap();
    let last = read(resumed).await;
    assert!(last.contains("the end"), "{last}");
    assert_eq!(bench.provider.called(), ["one", "two", "two"]);
}

async fn read(mut reader: Subscriber) -> String {
    let mut last = String::new();
    while let Some(batch) = reader.next().await {
        last.extend(batch.entries().last().map(|entry| entry.json));
    }
    last
}

#[tokio::test]
async fn part_that_continued_has_the_media_of_an_upload_that_expired() {
    let bench = bench(&[("two", &[Says::Call("delete"), Says::Never, result("the end")])]);
    // Only the part knows that the input has an image.
    let schema = SCHEMA.replace(r##"{"$ref": "#/$defs/MediaInput"}"##, "{}");
    bench.file("whole", "schema.json", &schema);
    bench.file("one", "schema.json", &schema);
    let runtime = runtime(&bench, 1);
    let module = runtime.load(ModuleRef::Name("whole")).unwrap();
    let envelope = runtime.run(&module, RunInput::Json(image()), RunOptions::default()).await;
    let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
    let mut options = RunOptions::default();
    let id = details["halted"]["id"].as_str().unwrap().to_owned();
    options.approval = Some(Approval { id, decision: Decision::yes() });
    let sessions = Sessions::open(SessionSettings::default()).unwrap();
    let spec = RunSpec { options, ..RunSpec::new("whole", Value::null()) };
    let session = sessions.prepare(&runtime, &module, spec, session_of("ada")).unwrap().start();
    let id = session.id().to_owned();
    let mut reader = session.follow(StartFrom::Beginning);
    bench.read_until(&mut reader, "two", 2).await;
    drop((reader, session));
    sessions.idle().await;
    let from = ResumeFrom::default();
    let resumed =
        sessions.resume(&runtime, &id, "ada", from, RunOptions::default(), Box::new(())).await.unwrap();
    let last = read(resumed).await;
    assert!(last.contains("the end"), "{last}");
    assert_eq!(bench.provider.called(), ["one", "two", "two", "two"]);
}
