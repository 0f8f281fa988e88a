//! Generated media, from the model's events to the answer.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use cog_answer::DataAccumulator;
use cog_json::ToJson as _;
use cog_media::{Delivery, Media, StoredUrl, UrlStore};
use cog_run::RunOptions;
use cog_spec::{Chunk, Code, Envelope, ErrorBody, FinishReason, Modality, ModelEvent, ModelMedia};
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::support::{Scripted, code, directory, runtime_with, sample_input, write};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/// An image of 3 by 2 pixels.
const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/2wBDAQMDAwQDBAgEBAgQCwkLEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBD/wAARCAACAAMDAREAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAACP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/xAAVAQEBAAAAAAAAAAAAAAAAAAAHCf/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/ADoDFU3/2Q==";
const GIF: &str = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

/// An answer without its image.
pub(crate) const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"rationale": "because"}, "error": null}"#;

/// Creates a module that generates images, with these additional manifest lines. Its `data` has an image, a
/// list of two, and a rationale.
pub(crate) fn artist(manifest: &[&str]) -> TempDir {
    let lines = [&["modalities: {output: [text, image]}", "response: {mode: both}"], manifest].concat();
    let directory = directory("Draw $query.", &lines);
    let schema = json!({
        "input": { "type": "object" },
        "data": {
            "type": "object",
            "required": ["rationale", "image"],
            "properties": {
                "rationale": { "type": "string" },
                "image": { "$ref": "#/$defs/MediaOutput" },
                "more": { "type": "array", "maxItems": 2, "items": { "$ref": "#/$defs/MediaOutput" } },
            },
        },
    });
    write(&directory, "schema.json", &schema.to_string());
    directory
}

fn media(media_type: Option<&str>, data: &str) -> ModelEvent {
    let params = vec![("quality", "high".to_owned())];
    ModelEvent::Media(ModelMedia { media_type: media_type.map(str::to_owned), data: data.to_owned(), params })
}

pub(crate) fn png() -> ModelEvent {
    media(Some("image/png"), PNG)
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

/// Returns the chunks of a run with these events and the envelope they fold to. Checks that the chunks give
/// the data of the final event.
async fn chunks(directory: &TempDir, events: &[ModelEvent], options: RunOptions) -> (Vec<Chunk>, Envelope) {
    let mut events = events.to_vec();
    if !matches!(events.last(), Some(ModelEvent::Finished(_))) {
        events.push(ModelEvent::Finished(FinishReason::Stop));
    }
    let (_, runtime, module) = runtime_with(Scripted::new([events]), directory);
    let stream = runtime.stream(&module, sample_input(), options).unwrap();
    let chunks: Vec<Chunk> = stream.collect().await;
    let mut image = DataAccumulator::default();
    chunks.iter().for_each(|chunk| image.apply(chunk));
    if let Some(Chunk::Final { data, .. }) = chunks.last() {
        assert_eq!(image.data(), Some(&data.to_serde()), "the chunks give the data");
    }
    (chunks.clone(), cog_answer::fold(chunks))
}

async fn run(directory: &TempDir, events: &[ModelEvent]) -> Envelope {
    chunks(directory, events, RunOptions::default()).await.1
}

fn data(envelope: &Envelope) -> Json {
    assert!(envelope.is_ok(), "{}", envelope.to_json());
    envelope.data().unwrap().to_serde()
}

fn violations(envelope: &Envelope) -> Json {
    assert_eq!(code(envelope), Some("E3001"), "{}", envelope.to_json());
    envelope.error().unwrap().details.as_ref().unwrap().get("violations").unwrap().to_serde()
}

#[tokio::test]
async fn image_beside_json_is_inserted_into_its_field() {
    for events in [[png(), text(ANSWER)], [text(ANSWER), png()]] {
        let envelope = run(&artist(&[]), &events).await;
        let expected = json!({
            "type": "base64", "media_type": "image/png", "data": PNG, "width": 1, "height": 1,
            "generation_params": { "model": "one", "quality": "high" },
        });
        assert_eq!(data(&envelope), json!({ "rationale": "because", "image": expected }));
        assert_eq!(envelope.meta.runtime.repairs, []);
    }
}

#[tokio::test]
async fn text_beside_an_image_is_the_rationale() {
    let envelope = run(&artist(&[]), &[text("Here is "), png(), text("your {cat}.")]).await;
    assert_eq!(data(&envelope)["rationale"], "Here is your {cat}.");
    assert_eq!(data(&envelope)["image"]["width"], 1);
    assert_eq!(
        (envelope.meta.confidence, envelope.meta.explain.as_str()),
        (Some(0.5), "Here is your {cat}.")
    );
    let rules: Vec<_> = envelope.meta.runtime.repairs.iter().map(|repair| repair.rule.as_str()).collect();
    assert_eq!(rules, ["wrap", "fill_confidence", "fill_risk", "fill_explain"]);
}

#[tokio::test]
async fn image_without_text_is_an_answer() {
    let envelope = run(&artist(&[]), &[png()]).await;
    assert_eq!(data(&envelope)["rationale"], "The model sent no text with the media.");
    assert_eq!(code(&run(&artist(&[]), &[text("I cannot draw.")]).await), Some("E1000"));
    assert_eq!(code(&run(&artist(&[]), &[]).await), Some("E1000"));
    // A truncated reply is not a valid answer, whatever was generated.
    let cut = [png(), text("Here"), ModelEvent::Finished(FinishReason::Length)];
    assert_eq!(code(&run(&artist(&[]), &cut).await), Some("E2003"));
}

#[tokio::test]
async fn extra_media_are_reported() {
    let events = [png(), media(None, JPEG), png(), png(), text(ANSWER)];
    let envelope = run(&artist(&[]), &events).await;
    let data = data(&envelope);
    assert_eq!(data["more"][0]["width"], 3);
    assert_eq!(data["more"].as_array().unwrap().len(), 2);
    let warnings: Vec<_> = envelope.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(warnings, ["W3009"]);
    assert!(envelope.warnings[0].message.contains("image/png of 70 bytes"), "{:?}", envelope.warnings);
}

#[tokio::test]
async fn media_with_a_wrong_type_are_rejected() {
    for (event, expected) in [
        (media(Some("image/png"), "@@@@"), "E1013"),
        (media(Some("image/png"), ""), "E1013"),
        (media(None, GIF), "E1010"),
        (media(Some("image/png"), &PNG[..40]), "E1013"),
        (media(Some("image/png"), "SGVsbG8h"), "E1010"),
    ] {
        let envelope = run(&artist(&[]), &[text(ANSWER), event]).await;
        let violations = violations(&envelope);
        assert_eq!(violations[0]["code"], expected);
        assert!(violations[0]["message"].as_str().unwrap().starts_with(expected), "{violations}");
        assert!(violations[0]["path"].as_str().unwrap().starts_with("data"), "{violations}");
        let shown: Json = serde_json::from_str(&envelope.to_json()).unwrap();
        assert_eq!(shown["partial_data"], json!({ "rationale": "because" }));
    }
    let narrow = artist(&["modalities: {output: [text, image], constraints: {max_dimension: 2}}"][..0]);
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [a]\n\
        modalities: {output: [text, image], constraints: {max_dimension: 2}}";
    write(&narrow, "module.yaml", manifest);
    let envelope = run(&narrow, &[text(ANSWER), media(None, JPEG)]).await;
    assert_eq!(violations(&envelope)[0]["code"], "E1015");
}

#[tokio::test]
async fn type_that_the_provider_declares_is_a_hint() {
    for label in ["image/jpeg", "audio/mpeg", "image"] {
        let envelope = run(&artist(&[]), &[text(ANSWER), media(Some(label), PNG)]).await;
        assert_eq!(data(&envelope)["image"]["media_type"], "image/png");
        let warnings: Vec<_> = envelope.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(warnings, ["W1014"]);
        let message = format!("data.image: the provider declared {label}, but the content is image/png");
        assert_eq!(envelope.warnings[0].message, message);
    }
}

#[tokio::test]
async fn rejected_image_is_retried() {
    let directory = artist(&["# retry"]);
    let bad =
        vec![text(ANSWER), media(Some("image/png"), &PNG[..40]), ModelEvent::Finished(FinishReason::Stop)];
    let good = vec![text(ANSWER), png(), ModelEvent::Finished(FinishReason::Stop)];
    let (provider, runtime, module) = runtime_with(Scripted::new([bad, good]), &directory);
    let options = RunOptions { on_violation: Some(cog_spec::OnViolation::Retry), ..RunOptions::default() };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert_eq!(data(&envelope)["image"]["media_type"], "image/png");
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
    let shown = provider.requests()[1].messages.to_json();
    assert!(shown.contains("E1013"), "{shown}");
}

#[tokio::test]
async fn pending_image_is_not_a_violation() {
    let options = || RunOptions { on_violation: Some(cog_spec::OnViolation::Abort), ..RunOptions::default() };
    let null = ANSWER.replace("\"because\"", "\"because\", \"image\": null, \"more\": []");
    for answer in [ANSWER, &null] {
        let (_, envelope) = chunks(&artist(&[]), &[text(answer), png()], options()).await;
        assert_eq!(data(&envelope)["image"]["width"], 1);
    }
    let (_, envelope) = chunks(&artist(&[]), &[text(ANSWER)], options()).await;
    assert_eq!(violations(&envelope)[0]["path"], "data.image");
}

#[tokio::test]
async fn members_beside_an_image_are_retained() {
    let stub = r#""image": {"type": "base64", "media_type": "image/webp", "width": 7, "alt": "A cat"}"#;
    let answer = ANSWER.replace("\"because\"", &format!("\"because\", {stub}"));
    let envelope = run(&artist(&[]), &[text(&answer), png()]).await;
    let image = &data(&envelope)["image"];
    assert_eq!((&image["alt"], &image["media_type"]), (&json!("A cat"), &json!("image/png")));
    assert_eq!(image["width"], 1);
    assert_eq!(
        repairs(&envelope),
        ["media_fact data.image.width 1 1", "media_fact data.image.media_type 12 11"]
    );
}

/// Returns the entries of the ledger: rule, path, and the sizes before and after.
fn repairs(envelope: &Envelope) -> Vec<String> {
    let entries = envelope.meta.runtime.repairs.iter();
    let size = |size: &Option<cog_json::Value>| size.as_ref().unwrap().to_json();
    entries
        .map(|one| format!("{} {} {} {}", one.rule.as_str(), one.path, size(&one.before), size(&one.after)))
        .collect()
}

#[tokio::test]
async fn each_corrected_fact_of_written_media_is_in_the_ledger() {
    for (facts, expected) in [
        (json!({ "width": 1, "height": 1, "duration_ms": null }), vec![]),
        (json!({ "media_type": "image/x-png" }), vec![]),
        (json!({ "width": 640, "height": 1 }), vec!["media_fact data.image.width 3 1"]),
        (
            json!({ "width": 1, "height": 48, "duration_ms": 5 }),
            vec!["media_fact data.image.height 2 1", "media_fact data.image.duration_ms 1 0"],
        ),
    ] {
        let mut image = json!({ "type": "base64", "media_type": "image/png", "data": PNG });
        image.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        let answer = ANSWER.replace("\"because\"", &format!("\"because\", \"image\": {image}"));
        let (_, envelope) = chunks(&artist(&[]), &[text(&answer)], RunOptions::default()).await;
        assert_eq!(
            (&data(&envelope)["image"]["width"], repairs(&envelope)),
            (&json!(1), expected.iter().map(|one| (*one).to_owned()).collect())
        );
        let strict = RunOptions { strict: true, ..RunOptions::default() };
        let (_, envelope) = chunks(&artist(&[]), &[text(&answer)], strict).await;
        assert_eq!(envelope.is_ok(), expected.is_empty(), "{facts}");
    }
}

#[tokio::test]
async fn media_inside_the_json_are_checked_and_delivered() {
    let written = |media: Json| {
        let answer = ANSWER.replace("\"because\"", &format!("\"because\", \"image\": {media}"));
        [text(&answer)]
    };
    let base64 =
        |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
    let envelope = run(&artist(&[]), &written(base64("image/png", PNG))).await;
    assert_eq!(data(&envelope)["image"]["width"], 1);
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions { delivery: Delivery::Directory(out.path().into()), ..RunOptions::default() };
    let (_, envelope) = chunks(&artist(&[]), &written(base64("image/png", PNG)), options).await;
    assert_eq!(data(&envelope)["image"]["type"], "file");
    for (media, expected) in [
        (base64("image/jpeg", PNG), "E1014"),
        (base64("image/png", "not base64"), "E1013"),
        (json!({ "type": "file", "media_type": "image/png", "path": "/etc/passwd" }), "E4007"),
        (json!({ "type": "url", "media_type": "image/png", "url": "http://127.0.0.1/a.png" }), "E1012"),
    ] {
        assert_eq!(violations(&run(&artist(&[]), &written(media)).await)[0]["code"], expected);
    }
    let url = json!({ "type": "url", "media_type": "image/png", "url": "https://cdn.example.com/a.png" });
    assert_eq!(data(&run(&artist(&[]), &written(url.clone())).await)["image"], url);
}

#[tokio::test]
async fn directory_delivery_writes_one_file_per_media_item() {
    let out = tempfile::tempdir().unwrap();
    let options =
        RunOptions { delivery: Delivery::Directory(out.path().join("a/b")), ..RunOptions::default() };
    let (_, envelope) = chunks(&artist(&[]), &[png(), media(None, JPEG)], options).await;
    let data = data(&envelope);
    for (media, ending, length) in [(&data["image"], "png", 70), (&data["more"][0], "jpg", 286)] {
        let path = Path::new(media["path"].as_str().unwrap());
        assert_eq!(media["type"], "file");
        assert!(path.is_absolute() && path.extension().unwrap() == ending, "{media}");
        assert_eq!(path.metadata().unwrap().len(), length);
        assert_eq!(media.get("data"), None);
    }
}

/// Stores uploads as long as it has room.
#[derive(Default)]
struct Shop {
    stored: Mutex<Vec<(Option<String>, String)>>,
    is_full: bool,
}

impl UrlStore for Shop {
    fn store(&self, owner: Option<&str>, media: &Media) -> Result<StoredUrl, ErrorBody> {
        if self.is_full {
            return Err(ErrorBody::new(Code::RateLimited, "there is no room"));
        }
        let mut stored = self.stored.lock().unwrap();
        stored.push((owner.map(str::to_owned), media.media_type().to_owned()));
        let url = format!("https://shop.test/{}", stored.len());
        Ok(StoredUrl { url, expires_at: "2026-02-04T12:00:00Z".to_owned() })
    }
}

#[tokio::test]
async fn published_media_have_urls_that_expire() {
    let shop = Arc::new(Shop::default());
    let delivery = Delivery::Store(Arc::clone(&shop) as Arc<dyn UrlStore>);
    let options = RunOptions { delivery, owner: Some("ann".to_owned()), ..RunOptions::default() };
    let (_, envelope) = chunks(&artist(&[]), &[text(ANSWER), png()], options).await;
    let expected = json!({
        "type": "url", "media_type": "image/png", "url": "https://shop.test/1",
        "expires_at": "2026-02-04T12:00:00Z", "width": 1, "height": 1,
        "generation_params": { "model": "one", "quality": "high" },
    });
    assert_eq!(data(&envelope)["image"], expected);
    assert_eq!(*shop.stored.lock().unwrap(), [(Some("ann".to_owned()), "image/png".to_owned())]);
}

#[tokio::test]
async fn media_are_inline_if_delivery_fails() {
    let shop = Shop { is_full: true, ..Shop::default() };
    let options = RunOptions { delivery: Delivery::Store(Arc::new(shop)), ..RunOptions::default() };
    let (_, envelope) = chunks(&artist(&[]), &[text(ANSWER), png()], options).await;
    assert_eq!(data(&envelope)["image"]["data"], PNG);
    assert_eq!(envelope.warnings[0].code.as_str(), "W4012");
    assert!(envelope.warnings[0].message.contains("there is no room"), "{:?}", envelope.warnings);
}

#[tokio::test]
async fn only_fields_of_the_schema_are_written() {
    let directory = artist(&[]);
    let schema = json!({
        "data": { "type": "object", "properties": { "image": {
            "type": "object",
            "properties": {
                "type": { "enum": ["base64"] }, "media_type": { "const": "image/png" },
                "data": { "type": "string" }, "width": { "type": "integer" },
            },
            "additionalProperties": false,
        } } },
    });
    write(&directory, "schema.json", &schema.to_string());
    let envelope = run(&directory, &[text(ANSWER), png()]).await;
    let expected = json!({ "type": "base64", "media_type": "image/png", "data": PNG, "width": 1 });
    assert_eq!(data(&envelope)["image"], expected);
    // The field accepts only base64, whatever the delivery of the run is.
    let out = tempfile::tempdir().unwrap();
    let options = RunOptions { delivery: Delivery::Directory(out.path().into()), ..RunOptions::default() };
    let (_, envelope) = chunks(&directory, &[text(ANSWER), png()], options).await;
    assert_eq!(data(&envelope)["image"], expected);
    // An image of a type that the field does not accept is omitted with a warning.
    let envelope = run(&directory, &[text(ANSWER), media(None, JPEG)]).await;
    assert_eq!(data(&envelope), json!({ "rationale": "because" }));
    assert_eq!(envelope.warnings[0].code.as_str(), "W3009");
}

#[tokio::test]
async fn module_without_media_output_receives_none() {
    let directory = directory("Answer.", &[]);
    let answer = crate::support::ANSWER;
    let (chunks, envelope) = chunks(&directory, &[text(answer), png(), png()], RunOptions::default()).await;
    assert_eq!(data(&envelope), json!({ "result": "fine", "rationale": "because" }));
    assert!(envelope.warnings.iter().all(|warning| warning.code.as_str() == "W3009"));
    assert!(!envelope.warnings.is_empty());
    assert!(chunks.iter().all(|chunk| !chunk.to_json().contains(PNG)));
}

#[tokio::test]
async fn number_of_media_is_limited() {
    let mut events = vec![png(); 12];
    events.push(text(ANSWER));
    let envelope = run(&artist(&[]), &events).await;
    assert_eq!(violations(&envelope)[0]["code"], "E1011");
}

#[tokio::test]
async fn snapshots_contain_the_image() {
    let options = RunOptions { chunk_type: Some(cog_spec::ChunkType::Snapshot), ..RunOptions::default() };
    let (chunks, _) = chunks(&artist(&[]), &[text(ANSWER), png()], options).await;
    let with = chunks.iter().filter(|chunk| chunk.to_json().contains(PNG)).count();
    assert_eq!(with, 2, "once as a snapshot and once in the end");
}

#[tokio::test]
async fn prompt_does_not_request_images_as_text() {
    let (provider, runtime, module) = runtime_with(Scripted::new([vec![png()]]), &artist(&[]));
    runtime.run(&module, sample_input(), RunOptions::default()).await;
    let request = &provider.requests()[0];
    let shown = request.messages.to_json();
    assert!(shown.contains("Leave out `image`, `more`: ") && !shown.contains("MediaOutput"), "{shown}");
}

#[tokio::test]
async fn unsupported_output_media_fail_without_a_call() {
    let (provider, runtime, module) = runtime_with(Scripted::replying(ANSWER).generating(&[]), &artist(&[]));
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E4011"));
    let message = &envelope.error().unwrap().message;
    assert_eq!(message, "scripted/one cannot generate image for data.image");
    assert_eq!(provider.requests().len(), 0);
    // A missing optional image is a warning.
    let directory = artist(&[]);
    let schema = json!({ "data": { "properties": { "image": { "$ref": "#/$defs/MediaOutput" } } } });
    write(&directory, "schema.json", &schema.to_string());
    let (_, runtime, module) =
        runtime_with(Scripted::replying(ANSWER).generating(&[Modality::Audio]), &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(data(&envelope), json!({ "rationale": "because" }));
    assert_eq!(envelope.warnings[0].code.as_str(), "W4014");
    // The model has written it instead.
    let image = json!({ "type": "base64", "media_type": "image/png", "data": PNG });
    let answer = ANSWER.replace("\"because\"", &format!("\"because\", \"image\": {image}"));
    let (_, runtime, module) =
        runtime_with(Scripted::replying(&answer).generating(&[Modality::Audio]), &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(data(&envelope)["image"]["data"], PNG);
    assert_eq!(envelope.warnings, []);
}

#[tokio::test]
async fn position_of_an_image_does_not_change_the_answer() {
    let directory = artist(&[]);
    let with_stub =
        ANSWER.replace("\"because\"", "\"because\", \"image\": {\"alt\": \"A cat\"}, \"more\": []");
    for answer in [ANSWER, &with_stub] {
        let parts: Vec<ModelEvent> =
            answer.as_bytes().chunks(9).map(|part| text(std::str::from_utf8(part).unwrap())).collect();
        let complete = run(&directory, &[text(answer), png(), png()]).await;
        for at in 0..=parts.len() {
            for chunk_type in [cog_spec::ChunkType::Delta, cog_spec::ChunkType::Snapshot] {
                let mut events = parts.clone();
                events.splice(at..at, [png(), png()]);
                let options = RunOptions { chunk_type: Some(chunk_type), ..RunOptions::default() };
                let (_, envelope) = chunks(&directory, &events, options).await;
                assert_eq!(data(&envelope), data(&complete), "before part {at}");
            }
        }
    }
}

#[tokio::test]
async fn data_of_a_module_without_media_output_is_not_checked_as_media() {
    let directory = artist(&[]);
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [a]";
    write(&directory, "module.yaml", manifest);
    let image = json!({ "type": "file", "media_type": "image/png", "path": "a.png" });
    let answer = ANSWER.replace("\"because\"", &format!("\"because\", \"image\": {image}"));
    assert_eq!(data(&run(&directory, &[text(&answer)]).await)["image"], image);
}
