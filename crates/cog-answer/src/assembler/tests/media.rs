//! Media that a model generates beside its text, and replies of media and text.

use cog_schema::{MediaSlot, Placement};
use cog_spec::Modality;

use super::*;
use crate::PlacedValue;

/// A module whose answer has a slot for an image.
fn painting() -> AnswerRules {
    let mut manifest = manifest(Tier::Decision);
    manifest.modalities.output.push(Modality::Image);
    rules(manifest, &with_slot())
}

fn with_slot() -> serde_json::Value {
    let mut schema = schema(json!({ "cover": { "$ref": "#/$defs/MediaOutput" } }));
    let properties = json!({ "type": { "enum": ["url"] }, "media_type": { "type": "string" } });
    let output = json!({ "type": "object", "required": ["type", "media_type"], "properties": properties });
    schema["$defs"] = json!({ "MediaOutput": output });
    schema
}

fn image() -> serde_json::Value {
    json!({ "type": "url", "media_type": "image/png", "url": "https://a.test/b.png" })
}

/// Returns a reply that has ended, and the chunks so far.
fn ended(
    rules: &AnswerRules,
    text: &str,
    reason: Option<FinishReason>,
    has_media: bool,
) -> (PendingReply, Vec<Chunk>) {
    let (mut assembler, first) = Assembler::new(rules.clone());
    let mut out = vec![first];
    let started = ModelEvent::Started { model: Some("painter".to_owned()), id: None, fingerprint: None };
    let text = ModelEvent::Text(text.to_owned());
    for event in [Some(started), Some(text), reason.map(ModelEvent::Finished)].into_iter().flatten() {
        let _ = assembler.event(event, Duration::ZERO, &mut out);
    }
    (assembler.close(has_media), out)
}

fn data_of(rules: &AnswerRules, text: &str) -> (PendingReply, Vec<Chunk>) {
    ended(rules, text, Some(FinishReason::Stop), true)
}

fn paths(slots: &[Option<MediaSlot>]) -> Vec<Option<String>> {
    slots.iter().map(|slot| slot.as_ref().map(|slot| slot.path.to_string())).collect()
}

const PNG: Placement<'_> = Placement { media_type: "image/png", form: "url" };

fn end(pending: PendingReply, mut out: Vec<Chunk>) -> serde_json::Value {
    assert!(matches!(pending.finish(Duration::ZERO, &mut out), Finish::Ended));
    check_stream(&out);
    envelope(fold(out))
}

#[test]
fn module_generates_media_if_its_manifest_and_its_schema_have_them() {
    let mut text_only = painting();
    text_only.manifest = plain().manifest;
    let mut slotless = plain();
    slotless.manifest = painting().manifest;
    let found = [painting(), text_only, slotless, plain()].map(|rules| rules.makes_media());
    assert_eq!(found, [true, false, false, false]);
}

#[test]
fn generated_media_are_inserted_before_the_answer_is_checked() {
    let whole = reply(json!({}));
    for text in [whole.to_string(), whole["data"].to_string()] {
        let (mut pending, out) = data_of(&painting(), &text);
        assert_eq!(pending.model(), Some("painter"));
        assert_eq!(pending.data().map(|data| data.to_serde()), Some(whole["data"].clone()));
        assert!(pending.written().is_empty());
        let slots = pending.places(&[PNG, PNG]);
        assert_eq!(paths(&slots), [Some("data.cover".to_owned()), None]);
        let path = slots.into_iter().flatten().next().unwrap().path;
        pending.put(&[PlacedValue { path, value: Box::new(image()) }]);
        pending.warn(Warning::new(WarningCode::MediaUnplaced, "One image has no field."));
        let envelope = end(pending, out);
        assert_eq!(envelope["data"]["cover"], image(), "{envelope}");
        assert_eq!(envelope["_warnings"][0]["code"], "W3009");
    }
}

#[test]
fn media_that_the_model_wrote_have_their_slot() {
    let text = reply(json!({ "data": { "cover": image() } })).to_string();
    let (mut pending, _) = data_of(&painting(), &text);
    let written = pending.written();
    assert_eq!(written.iter().map(|slot| slot.path.to_string()).collect::<Vec<_>>(), ["data.cover"]);
    assert!(!pending.is_refused());
}

#[test]
fn wrong_statements_about_written_media_are_violations() {
    let inline = json!({ "type": "base64", "media_type": "image/png", "data": "aGk=", "width": 2 });
    let mut lists = painting();
    let mut schema = with_slot();
    schema["data"]["properties"]["pages"] =
        json!({ "type": "array", "items": { "$ref": "#/$defs/MediaOutput" } });
    lists.contract = rules(manifest(Tier::Decision), &schema).contract;
    for (changes, expected) in [
        (json!({}), None),
        (json!({ "width": null, "note": "x" }), None),
        (json!({ "media_type": null }), Some("media_type type")),
        (json!({ "width": "wide" }), Some("width type")),
        (json!({ "height": 2.5 }), Some("height type")),
        (json!({ "duration_ms": -1 }), Some("duration_ms type")),
    ] {
        let mut item = inline.clone();
        item.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        for (at, data) in [("cover", json!({ "cover": item })), ("pages[0]", json!({ "pages": [item] }))] {
            let (mut pending, out) = data_of(&lists, &reply(json!({ "data": data })).to_string());
            assert_eq!(pending.written().len(), 1);
            assert_eq!(pending.is_refused(), expected.is_some(), "{item}");
            if let Some(expected) = expected {
                let violation = end(pending, out)["error"]["details"]["violations"][0].clone();
                let found = format!(
                    "{} {}",
                    violation["path"].as_str().unwrap(),
                    violation["rule"].as_str().unwrap()
                );
                assert_eq!(found, format!("data.{at}.{expected}"));
            }
        }
    }
    let untyped = json!({ "type": "base64", "data": "aGk=" });
    let (mut pending, out) =
        data_of(&painting(), &reply(json!({ "data": { "cover": untyped } })).to_string());
    pending.written();
    let envelope = end(pending, out);
    assert_eq!(envelope["error"]["details"]["violations"][0]["path"], "data.cover.media_type");
}

#[test]
fn errors_and_data_that_are_no_object_have_no_slots() {
    let error = r#"{"ok": false, "error": {"code": "E2004", "message": "No."}}"#;
    let (pending, _) = data_of(&painting(), error);
    assert_eq!(pending.data(), None);
    assert_eq!(paths(&pending.places(&[PNG, PNG])), [None, None]);
    let (pending, _) = data_of(&painting(), r#"{"ok": true, "data": [1]}"#);
    assert_eq!(pending.data().map(|data| data.to_serde()), Some(json!([1])));
    assert_eq!(paths(&pending.places(&[PNG])), [None]);
}

#[test]
fn refused_media_invalidate_the_answer() {
    let (mut pending, out) = data_of(&painting(), &reply(json!({})).to_string());
    assert!(!pending.is_refused());
    pending.refuse("data.cover", Code::MediaDecodeFailed, "no image");
    assert!(pending.is_refused());
    let envelope = end(pending, out);
    assert_eq!(envelope["error"]["code"], "E3001");
    let expected =
        json!({ "path": "data.cover", "rule": "media", "code": "E1013", "message": "E1013: no image" });
    assert_eq!(envelope["error"]["details"]["violations"], json!([expected]));
    assert_eq!(envelope["partial_data"], reply(json!({}))["data"]);
}

#[test]
fn failed_answer_keeps_its_data_and_the_warnings_about_its_media() {
    let warning = || Warning::new(WarningCode::MediaUnplaced, "One image has no field.");
    let (mut pending, mut out) = data_of(&painting(), &reply(json!({})).to_string());
    pending.warn(warning());
    pending.fail(ErrorBody::new(Code::Timeout, "Too late"), Duration::ZERO, &mut out);
    let late = envelope(fold(out));
    assert_eq!(late["error"]["code"], "E2002");
    assert_eq!(late["partial_data"], reply(json!({}))["data"]);
    assert_eq!(late["_warnings"][0]["code"], "W3009");

    let (mut pending, out) = data_of(&painting(), &reply(json!({ "data": { "result": 7 } })).to_string());
    pending.warn(warning());
    let wrong = end(pending, out);
    assert_eq!((&wrong["error"]["code"], &wrong["_warnings"][0]["code"]), (&json!("E3001"), &json!("W3009")));
}

#[test]
fn complete_text_beside_media_is_the_rationale() {
    let stop = || Some(FinishReason::Stop);
    let cases = [
        (painting(), "A red cat.", stop(), true, Some("A red cat.")),
        (painting(), "", stop(), true, Some("The model sent no text with the media.")),
        (painting(), "A red cat.", stop(), false, None),
        (plain(), "A red cat.", stop(), true, None),
        (painting(), "A red cat.", None, true, None),
        (painting(), "A red cat.", Some(FinishReason::Length), true, None),
        (painting(), "A red cat.", Some(FinishReason::ContentFilter), true, None),
        (painting(), "A red cat.", Some(FinishReason::Refusal(None)), true, None),
        (painting(), r#"A cat: {"ok": tr"#, stop(), true, None),
    ];
    for (rules, text, reason, has_media, expected) in cases {
        let (pending, _) = ended(&rules, text, reason.clone(), has_media);
        let data = pending.data().map(|data| data.to_serde());
        let expected = expected.map(|rationale| json!({ "rationale": rationale }));
        assert_eq!(data, expected, "{text} {reason:?} {has_media}");
    }
}

#[test]
fn field_of_media_is_not_checked_before_the_media_are_inserted() {
    let text = reply(json!({ "data": { "cover": null, "result": 7 } })).to_string();
    let (mut assembler, first) = Assembler::new(painting());
    let mut out = vec![first];
    let _ = assembler.event(ModelEvent::Text(text), Duration::ZERO, &mut out);
    let note = |chunk: &Chunk| match chunk {
        Chunk::Progress(progress) => progress.violation.as_ref().map(|note| note.path.clone()),
        _ => None,
    };
    assert_eq!(out.iter().filter_map(note).collect::<Vec<_>>(), ["data.result"]);
}

#[test]
fn snippets_are_compared_with_the_media_of_the_input() {
    let location = json!({ "text_snippet": "Revenue grew." });
    let entry = json!({ "source_type": "pdf_document", "source_id": "doc", "location": location });
    let data = json!({ "result": "Yes. <cite id=\"a\"/>", "citation_map": { "a": entry } });
    let text = reply(json!({ "data": data })).to_string();
    for (source, expected) in [("Revenue grew.", 0), ("Nothing of the kind.", 1)] {
        let (mut pending, out) = data_of(&painting(), &text);
        let source = cog_harmony::citation::Source::from_text(source);
        pending.set_sources([("doc".to_owned(), source)].into());
        let warnings = end(pending, out)["_warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.iter().filter(|one| one["code"] == "W3006").count(), expected, "{warnings:?}");
    }
}
