//! Which chunks a reply becomes, beside that they add up to its data.

use super::*;

/// Returns the field and the value of each snapshot; the field of all data is `data`.
fn snapshots(rules: &AnswerRules, text: &str) -> Vec<(String, serde_json::Value)> {
    let chunks = chunks(rules, text, text.len(), Some(FinishReason::Stop));
    let snapshot = |chunk: Chunk| match chunk {
        Chunk::Snapshot { field, data, .. } => Some((field.unwrap_or("data".to_owned()), data.to_serde())),
        _ => None,
    };
    chunks.into_iter().filter_map(snapshot).filter(|(field, _)| field != "meta").collect()
}

/// Returns the paths of the violations that were reported while the reply arrived.
fn reported(rules: &AnswerRules, text: &str) -> Vec<String> {
    let chunks = chunks(rules, text, 9, Some(FinishReason::Stop));
    let note = |chunk: Chunk| match chunk {
        Chunk::Progress(progress) => progress.violation.map(|note| note.path),
        _ => None,
    };
    chunks.into_iter().filter_map(note).collect()
}

fn streamed(rules: &AnswerRules, text: &str, size: usize) -> Option<serde_json::Value> {
    let mut streamed = DataAccumulator::default();
    chunks(rules, text, size, Some(FinishReason::Stop)).iter().for_each(|chunk| streamed.apply(chunk));
    streamed.into_data()
}

/// A plain module for a dialect that writes null for omitted members.
fn with_nulls(dialect: Dialect) -> AnswerRules {
    let properties = json!({
        "note": { "type": "string" },
        "maybe": { "type": ["string", "null"] },
        "list": { "type": "array", "items": { "type": ["object", "null"] } },
        "names": { "type": "array", "items": { "type": "string" } },
    });
    AnswerRules { dialect, ..rules(manifest(Tier::Decision), &schema(properties)) }
}

#[test]
fn nulls_that_count_are_emitted_last() {
    let text = reply(json!({ "data": { "list": [null, {}], "maybe": null, "note": null } })).to_string();
    let found = snapshots(&with_nulls(Dialect::Anthropic), &text);
    let expected = [
        ("data.list[0]".to_owned(), json!(null)),
        ("data.list[1]".to_owned(), json!({})),
        ("data.maybe".to_owned(), json!(null)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn value_that_a_null_replaces_is_not_left() {
    let text = r#"{"ok": true, "meta": {}, "data": {"result": "r", "note": "x", "note": null, "rationale": "y", "maybe": null}}"#;
    let answer = answer_text(&with_nulls(Dialect::Anthropic), text);
    assert_eq!(answer["data"], json!({ "result": "r", "rationale": "y", "maybe": null }));
}

#[test]
fn bare_data_without_content_are_emitted() {
    let output = json!({ "type": "object", "properties": { "note": { "type": "string" } } });
    let mut older = rules(Manifest::with_defaults("old", Format::V1, None), &json!({ "output": output }));
    older.dialect = Dialect::Anthropic;
    assert_eq!(answer_text(&older, r#"{"note": null}"#)["data"], json!({}));
}

#[test]
fn replaced_value_is_withdrawn_with_the_empty_value_of_the_new_kind() {
    let withdrawn = |values: &str| {
        let text = format!(r#"{{"ok": true, "meta": {{}}, "data": {{{values}, "rationale": "y"}}}}"#);
        let first = snapshots(&plain(), &text).into_iter().find(|(field, _)| field == "data.result");
        first.map(|(_, value)| value)
    };
    assert_eq!(withdrawn(r#""result": "first", "result": "second""#), Some(json!("")));
    assert_eq!(withdrawn(r#""result": "first", "result": ["second"]"#), Some(json!([])));
    assert_eq!(withdrawn(r#""result": "first", "result": {"a": "second"}"#), Some(json!({})));
}

#[test]
fn draft_is_retracted_only_if_it_was_emitted() {
    let good = reply(json!({}));
    let draft = reply(json!({ "data": { "result": "draft" } }));
    for chunk_type in [ChunkType::Delta, ChunkType::Snapshot] {
        let mut rules = plain();
        rules.response.chunk_type = chunk_type;
        let retractions = |text: String| {
            snapshots(&rules, &text).into_iter().filter(|one| *one == ("data".to_owned(), json!({}))).count()
        };
        assert_eq!(retractions(format!("Maybe {{\"a\": 1}}\n</think>\n{good}")), 0);
        let text = format!("Maybe {draft}\n</think>\nNo.");
        assert_eq!(streamed(&rules, &text, 5), Some(json!({})), "{chunk_type:?}");
    }
}

#[test]
fn violation_in_a_draft_is_reported_again_in_the_answer() {
    let wrong = reply(json!({ "meta": { "confidence": 2 } }));
    let draft = r#"{"ok": true, "meta": {"confidence": 2, "risk": "low", "explain": "x"}}"#;
    let paths = reported(&plain(), &format!("Maybe {draft}\n</think>\n{wrong}"));
    assert_eq!(paths, ["meta.confidence", "meta.confidence"]);
}

#[test]
fn last_draft_of_an_answer_without_partial_data_is_emitted() {
    let mut manifest = manifest(Tier::Decision);
    manifest.failure.partial_allowed = false;
    let mut rules = rules(manifest, &schema(json!({})));
    rules.response.chunk_type = ChunkType::Snapshot;
    let text = r#"{"ok": true, "meta": {}, "data": {"result": "half"#;
    assert_eq!(streamed(&rules, text, text.len() - 2), Some(json!({ "result": "half" })));
    assert_eq!(streamed(&rules, r#"{"ok": true, "meta": {}, "data": {"#, 9), None);
}

#[test]
fn wrapped_reply_is_emitted_once() {
    let mut rules = plain();
    rules.dialect = Dialect::OpenAiStrict;
    let inner = reply(json!({}));
    for text in [json!({ "envelope": inner }), inner] {
        assert_eq!(snapshots(&rules, &text.to_string()), []);
    }
}

#[test]
fn null_for_an_omitted_member_is_not_reported() {
    let null = reply(json!({ "data": { "note": null, "names": ["a"] } })).to_string();
    assert_eq!(reported(&with_nulls(Dialect::Anthropic), &null), [] as [&str; 0]);
    assert_eq!(reported(&with_nulls(Dialect::Prompt), &null), ["data.note"]);
    let wrong = reply(json!({ "data": { "note": 7, "names": [null] } })).to_string();
    for dialect in [Dialect::Anthropic, Dialect::Prompt] {
        let mut paths = reported(&with_nulls(dialect), &wrong);
        paths.sort();
        assert_eq!(paths, ["data.names[0]", "data.note"], "{dialect:?}");
    }
}

#[test]
fn text_that_is_no_answer_may_be_followed_by_tool_calls() {
    let twice = format!("{}{}", reply(json!({})), reply(json!({})));
    for text in [twice.as_str(), r#"{"ok": true, "data": }"#] {
        for (calls_tools, expected) in [(false, Step::Stop), (true, Step::Continue)] {
            let (mut assembler, _) = Assembler::new(AnswerRules { calls_tools, ..plain() });
            let step =
                assembler.event(ModelEvent::Text(text.to_owned()), Duration::ZERO, &mut Vec::<Chunk>::new());
            assert_eq!(step, expected, "{text} {calls_tools}");
        }
    }
}

#[test]
fn only_a_null_member_stands_for_an_omitted_one() {
    let start = r#"{"ok": true, "meta": {}, "data": {"#;
    for (data, path) in [(r#""note": 7, "#, "data.note"), (r#""names": [null, "#, "data.names[0]")] {
        assert_eq!(stopped_at(with_nulls(Dialect::Anthropic), &format!("{start}{data}")), path);
    }
}
