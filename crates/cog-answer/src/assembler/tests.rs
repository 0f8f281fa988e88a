use cog_spec::{ChunkType, Code, Dialect, FinishReason, Format, Manifest, OnViolation, Tier};
use serde_json::json;

use super::*;
use crate::{DataAccumulator, Finish, fold, testing::*};

mod attempts;
mod checks;
mod emission;
mod forms;
mod media;
mod parts;
mod rounds;

fn emitted(rules: &AnswerRules, text: &str, piece: usize) -> Vec<serde_json::Value> {
    let chunks = chunks(rules, text, piece, Some(FinishReason::Stop));
    chunks.iter().map(|chunk| serde_json::from_str(&chunk.to_json()).unwrap()).collect()
}

#[test]
fn a_reply_becomes_a_stream() {
    let text = reply(json!({ "data": { "result": "a\nb", "count": 2, "tags": [] } })).to_string();
    let emitted = emitted(&plain(), &text, text.len());
    let fields: Vec<_> = emitted[1..emitted.len() - 1].iter().map(|chunk| &chunk["chunk"]).collect();
    assert_eq!(
        emitted[0],
        json!({
            "ok": true, "streaming": true, "session_id": "sess_1",
            "meta": { "confidence": null, "risk": "medium", "explain": "Running m" },
        })
    );
    assert_eq!(fields[0]["field"], "meta");
    let checkpoint = json!({ "offset": 3, "hash": "7e18f7" });
    assert_eq!(
        *fields[1],
        json!({ "seq": 2, "type": "delta", "field": "data.result", "delta": "a\nb", "checkpoint": checkpoint })
    );
    assert_eq!(*fields[3], json!({ "seq": 4, "type": "snapshot", "field": "data.count", "data": 2 }));
    assert_eq!(*fields[4], json!({ "seq": 5, "type": "snapshot", "field": "data.tags", "data": [] }));
    assert_eq!(emitted.last().unwrap()["final"], true);
}

#[test]
fn deltas_leave_as_they_arrive() {
    let (mut assembler, first) = Assembler::new(plain());
    let mut out = vec![first];
    let start = r#"{"ok": true, "meta": {}, "data": {"result": "half"#;
    assert_eq!(assembler.event(ModelEvent::Text(start.to_owned()), Duration::ZERO, &mut out), Step::Continue);
    assert!(matches!(out.last(), Some(Chunk::Delta { delta, .. }) if delta == "half"));
    assembler.fail(ErrorBody::new(cog_spec::Code::StreamTimeout, "Too late"), Duration::ZERO, &mut out);
    check_stream(&out);
    let envelope = envelope(fold(out));
    assert_eq!(envelope["error"]["code"], "E2002");
    assert_eq!(envelope["partial_data"], json!({ "result": "half" }));
    assert_eq!(envelope["meta"], json!({ "confidence": 0.0, "risk": "high", "explain": "Too late" }));
}

#[test]
fn envelope_with_late_ok_is_emitted_at_its_end() {
    let text = r#"{"meta": {"confidence": 1, "risk": "low", "explain": "x"}, "data": {"result": "r", "rationale": "y"}, "ok": true}"#;
    let envelope = answer_text(&plain(), text);
    assert_eq!(envelope["data"], json!({ "result": "r", "rationale": "y" }));
    assert_eq!(envelope["meta"].get("repairs"), None);
}

#[test]
fn duplicate_key_is_emitted_again() {
    for twice in [
        r#""result": "first", "result": "second""#,
        r#""result": {"a": 1, "b": {}}, "result": "second""#,
        r#""result": 7, "result": "second", "more": {"a": "x"}, "more": {"b": []}, "more": {}"#,
    ] {
        let text = format!(r#"{{"ok": true, "meta": {{}}, "data": {{{twice}, "rationale": "y"}}}}"#);
        let envelope = answer_text(&plain(), &text);
        assert_eq!(envelope["data"]["result"], "second");
        let rules: Vec<_> =
            envelope["meta"]["repairs"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
        assert!(rules.contains(&&json!("duplicate_key")));
    }
    let text =
        r#"{"ok": true, "data": {"result": "r", "old": 1}, "data": {"result": "s", "rationale": "y"}}"#;
    assert_eq!(answer_text(&plain(), text)["data"], json!({ "result": "s", "rationale": "y" }));
}

#[test]
fn member_after_the_wrapper_retracts_its_data() {
    let mut rules = plain();
    rules.dialect = Dialect::OpenAiStrict;
    let inner = reply(json!({ "data": { "result": "first" } }));
    let cases = [
        (r#""data": {"result": "second""#, json!({})),
        (r#""ok": true, "data": {"result": "second""#, json!({ "result": "second" })),
        (r#""envelope": {"ok": true, "data": {"result": "second""#, json!({})),
    ];
    for (member, data) in cases {
        let text = format!(r#"{{"envelope": {inner}, {member}"#);
        for size in [1, 7, text.len()] {
            let chunks = chunks(&rules, &text, size, None);
            let mut streamed = DataAccumulator::default();
            chunks.iter().for_each(|chunk| streamed.apply(chunk));
            assert_eq!(streamed.into_data(), Some(data.clone()), "{member}");
        }
    }
}

#[test]
fn only_the_first_key_wraps() {
    let mut rules = plain();
    rules.dialect = Dialect::OpenAiStrict;
    let outer = reply(json!({})).to_string();
    let inner = reply(json!({ "data": { "result": "inner" } }));
    let text = format!(r#"{}, "envelope": {inner}"#, outer.strip_suffix('}').unwrap());
    let chunks = chunks(&rules, &text, 5, None);
    let mut streamed = DataAccumulator::default();
    chunks.iter().for_each(|chunk| streamed.apply(chunk));
    assert_eq!(streamed.into_data(), Some(json!({ "result": "fine", "rationale": "It was asked." })));
}

#[test]
fn bare_data_are_emitted_at_once_if_requested() {
    let older = rules(
        Manifest::with_defaults("old", Format::V1, None),
        &json!({ "input": {}, "output": { "type": "object" } }),
    );
    let emitted = emitted(&older, r#"{"result": "x", "odd key": [true], "confidence": 0.7}"#, 4);
    assert_eq!(emitted[1]["chunk"]["field"], "data.result");
    let fields: Vec<_> = emitted.iter().map(|chunk| &chunk["chunk"]["field"]).collect();
    assert!(fields.contains(&&json!(r#"data["odd key"][0]"#)));
    assert_eq!(emitted.last().unwrap()["meta"]["confidence"], 0.7);
}

#[test]
fn snapshots_carry_all_of_the_data() {
    let mut rules = plain();
    rules.response.chunk_type = ChunkType::Snapshot;
    let text = reply(json!({ "data": { "rationale": "r".repeat(400) } })).to_string();
    let chunks = chunks(&rules, &text, 16, Some(FinishReason::Stop));
    let drafts: Vec<_> =
        chunks.iter().filter(|chunk| matches!(chunk, Chunk::Snapshot { field: None, .. })).collect();
    assert!((3..=16).contains(&drafts.len()), "{} drafts", drafts.len());
    assert!(!chunks.iter().any(|chunk| matches!(chunk, Chunk::Delta { .. })));
}

#[test]
fn buffer_collects_text_until_it_is_large_or_old() {
    let mut rules = plain();
    rules.response.buffer_size = 64;
    let text = reply(json!({ "data": { "rationale": "r".repeat(300) } })).to_string();
    let count = |rules: &AnswerRules| {
        let chunks = chunks(rules, &text, 16, Some(FinishReason::Stop));
        chunks.iter().filter(|chunk| matches!(chunk, Chunk::Delta { .. })).count()
    };
    assert!(count(&rules) < count(&plain()) / 2);
    let (mut assembler, _) = Assembler::new(rules);
    let mut out = Vec::new();
    let start = r#"{"ok": true, "data": {"result": "half"#;
    let now = Duration::from_millis(100);
    assembler.event(ModelEvent::Text(start.to_owned()), now, &mut out);
    assert!(out.is_empty());
    let due = assembler.due().unwrap();
    assert_eq!(due, now + Duration::from_millis(50));
    assembler.tick(due, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(assembler.due(), None);
    let _ = assembler.finish(due, &mut out);
}

#[test]
fn nulls_of_a_strict_dialect_are_members_left_out() {
    let schema = schema(json!({
        "note": { "type": "string" },
        "maybe": { "type": ["string", "null"] },
        "inner": { "type": "object", "properties": { "x": { "type": "string" } } },
    }));
    let text =
        reply(json!({ "data": { "note": null, "maybe": null, "inner": { "x": null } }, "error": null }));
    let mut strict = rules(manifest(Tier::Decision), &schema);
    strict.strict = true;
    let expected = json!({ "result": "fine", "rationale": "It was asked.", "maybe": null, "inner": {} });
    for dialect in [Dialect::OpenAiStrict, Dialect::Anthropic] {
        strict.dialect = dialect;
        assert_eq!(answer(&strict, &text)["data"], expected);
    }
    let nested =
        r#"{"ok": true, "meta": {}, "data": {"rationale": "y", "result": "r", "more": [{"a": null}, null]}}"#;
    strict.strict = false;
    assert_eq!(answer_text(&strict, nested)["data"]["more"], json!([{ "a": null }, null]));
    let other = rules(manifest(Tier::Decision), &schema);
    assert_eq!(answer(&other, &text)["error"]["code"], "E3001");
}

#[test]
fn snapshots_are_sent_when_the_data_have_grown_and_time_has_passed() {
    let mut rules = plain();
    rules.response.chunk_type = ChunkType::Snapshot;
    let (mut assembler, _) = Assembler::new(rules);
    let mut sent = |text: &str, at: u64| {
        let mut out = Vec::new();
        let text = ModelEvent::Text(text.to_owned());
        assembler.event(text, Duration::from_millis(at), &mut out);
        out.iter().filter(|chunk| matches!(chunk, Chunk::Snapshot { field: None, .. })).count()
    };
    assert_eq!(sent(r#"{"ok": true, "data": {"result": "rrrrrrrr"#, 0), 1);
    assert_eq!(sent("rrrrrrrrrrrrrrrrrrrr", 49), 0, "grown, and too soon");
    assert_eq!(sent("", 50), 1, "grown before, and now it is time");
    assert_eq!(sent("rrrr", 200), 0, "time enough, and hardly grown");
    assert_eq!(sent("rrrrrrrrrrrrrrrr", 201), 1);
}

#[test]
fn a_withdrawn_draft_leaves_no_checkpoint_to_resume_from() {
    let mut rules = plain();
    rules.recovery = Some(crate::RecoveryOffer { retry_after_ms: 1, max_retries: 1 });
    let (mut assembler, _) = Assembler::new(rules);
    let mut out = Vec::new();
    let draft = format!("Perhaps {}", reply(json!({})));
    assembler.event(ModelEvent::Text(draft), Duration::ZERO, &mut out);
    let offered = |chunk: &Chunk| matches!(chunk, Chunk::Delta { checkpoint: Some(_), .. });
    assert!(out.iter().any(offered));
    assembler.event(
        ModelEvent::Text("\n</think>\n{\"ok\": true, \"data\": {".to_owned()),
        Duration::ZERO,
        &mut out,
    );
    assembler.fail(ErrorBody::new(Code::StreamInterrupted, "Gone"), Duration::ZERO, &mut out);
    let Some(Chunk::Error { recovery: Some(recovery), .. }) = out.last() else { panic!("{:?}", out.last()) };
    assert_eq!(recovery.last_checkpoint, None);
}

#[test]
fn chunks_of_an_interrupted_stream_fold_in_the_order_of_their_numbers() {
    let text = reply(json!({ "data": { "rationale": "one two three", "list": [1, 2, 3] } })).to_string();
    let chunks = chunks(&plain(), &text, 3, Some(FinishReason::Stop));
    let (_, begun) = chunks.split_last().unwrap();
    let in_order = fold(begun.iter().cloned());
    let mut turned = begun.to_vec();
    turned.reverse();
    assert_eq!(fold(turned.clone()), in_order);
    turned.sort_by_key(|chunk| chunk.seq().map(|seq| (seq % 3, seq)));
    assert_eq!(fold(turned.clone()), in_order);
    turned.extend(begun.iter().cloned());
    assert_eq!(fold(turned), in_order, "what comes twice counts once");
    assert_eq!(envelope(in_order)["partial_data"]["list"], json!([1, 2, 3]));
}

#[test]
fn violation_is_reported_when_the_value_is_complete() {
    let text = reply(json!({ "data": { "result": 7 } })).to_string();
    let emitted = emitted(&plain(), &text, 1);
    let note = emitted.iter().find(|chunk| chunk.get("progress").is_some()).unwrap();
    assert_eq!(note["progress"]["violation"]["path"], "data.result");
    assert_eq!(emitted.iter().filter(|chunk| chunk.get("progress").is_some()).count(), 1);
    assert_eq!(emitted.last().unwrap()["error"]["code"], "E3001");
}

#[test]
fn abort_stops_at_the_first_violation() {
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Abort);
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    let text = r#"{"ok": true, "meta": {}, "data": {"rationale": "y", "result": 7, "#;
    assert_eq!(assembler.event(ModelEvent::Text(text.to_owned()), Duration::ZERO, &mut out), Step::Stop);
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    check_stream(&out);
    let envelope = envelope(fold(out));
    assert_eq!(envelope["error"]["details"]["violations"][0]["path"], "data.result");
    assert_eq!(envelope["partial_data"], json!({ "rationale": "y" }));
}

/// Returns the path of the violation at which a run with `on_violation: abort` stops, before the reply is complete.
fn stopped_at(mut rules: AnswerRules, text: &str) -> serde_json::Value {
    rules.response.on_violation = Some(OnViolation::Abort);
    for is_streamed in [true, false] {
        rules.is_streamed = is_streamed;
        let (mut assembler, first) = Assembler::new(rules.clone());
        let mut out = vec![first];
        let step = assembler.event(ModelEvent::Text(text.to_owned()), Duration::ZERO, &mut out);
        assert_eq!(step, Step::Stop, "{text}");
        let is_reported =
            out.iter().any(|chunk| matches!(chunk, Chunk::Progress(one) if one.violation.is_some()));
        assert_eq!(is_reported, is_streamed, "{text}");
        assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
        let envelope = envelope(fold(out));
        if !is_streamed {
            return envelope["error"]["details"]["violations"][0]["path"].clone();
        }
    }
    json!(null)
}

#[test]
fn every_part_of_the_contract_stops_the_provider() {
    let meta = r#"{"confidence": 0.95, "risk": "low", "explain": "x"}"#;
    let exec = || rules(manifest(Tier::Exec), &schema(json!({})));
    let start = format!(r#"{{"ok": true, "meta": {meta}, "data": "#);
    assert_eq!(stopped_at(exec(), &format!(r#"{start}{{"zz": 1, "#)), "data.zz");
    let mut closed = schema(json!({}));
    closed["data"]["additionalProperties"] = json!(false);
    let closed = rules(manifest(Tier::Exploration), &closed);
    assert_eq!(stopped_at(closed, &format!(r#"{start}{{"zz": 1, "#)), "data.zz");
    let insights = format!(r#"{start}{{"extensions": {{"insights": [{{"text": "t"}}"#);
    assert_eq!(
        stopped_at(plain(), &format!("{insights}, ")),
        "data.extensions.insights[0].suggested_mapping"
    );
    let mut without_overflow = manifest(Tier::Decision);
    without_overflow.overflow.enabled = false;
    let without_overflow = rules(without_overflow, &schema(json!({})));
    assert_eq!(stopped_at(without_overflow, &format!("{insights}]")), "data.extensions.insights");
}

#[test]
fn invalid_meta_stops_the_provider() {
    for (ok, meta, path) in [
        (true, r#"{"confidence": 2}"#, "meta.confidence"),
        (true, r#"{"risk": "bad"}"#, "meta.risk"),
        (false, r#"{"confidence": "high"}"#, "meta.confidence"),
        (true, "7", "meta"),
    ] {
        assert_eq!(stopped_at(plain(), &format!(r#"{{"ok": {ok}, "meta": {meta}, "#)), path);
    }
    let absent = r#"{"ok": true, "meta": {"confidence": null, "explain": " x "}, "#;
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Abort);
    let (mut assembler, _) = Assembler::new(rules);
    let text = ModelEvent::Text(absent.to_owned());
    assert_eq!(assembler.event(text, Duration::ZERO, &mut Vec::new()), Step::Continue, "it can be repaired");
}

#[test]
fn violations_found_at_the_end_are_reported_before_the_error() {
    let text = r#"{"result": 7, "rationale": "y"}"#;
    let emitted = emitted(&plain(), text, 3);
    let notes: Vec<_> = emitted.iter().filter_map(|chunk| chunk["progress"].get("violation")).collect();
    assert_eq!(notes.iter().map(|note| &note["path"]).collect::<Vec<_>>(), ["data.result"]);
    assert_eq!(emitted.last().unwrap()["error"]["code"], "E3001");
}

/// Returns the data to which the chunks of a failed stream add up, and its partial data.
fn streamed_and_partial(rules: &AnswerRules, text: &str, size: usize) -> [serde_json::Value; 2] {
    let chunks = chunks(rules, text, size, Some(FinishReason::Stop));
    let mut streamed = DataAccumulator::default();
    chunks.iter().for_each(|chunk| streamed.apply(chunk));
    let partial = envelope(fold(chunks))["partial_data"].clone();
    [streamed.into_data().unwrap_or_default(), partial]
}

#[test]
fn chunks_of_a_failed_stream_contain_its_partial_data() {
    let due = schema(json!({ "due": { "type": ["string", "null"] } }));
    let mut strict = rules(manifest(Tier::Decision), &due);
    strict.dialect = Dialect::OpenAiStrict;
    let mut snapshots = plain();
    snapshots.response.chunk_type = ChunkType::Snapshot;
    let bare = r#"{"result": "r", "list": [1, {}]}"#;
    let envelope = format!(r#"{{"ok": true, "meta": {{}}, "data": {bare}}}"#);
    let null = r#"{"ok": true, "meta": {}, "data": {"result": "r", "due": null}}"#;
    let reported = r#"{"ok": false, "meta": {}, "error": {"code": "E2006", "message": "x"}, "partial_data": {"result": "r"}}"#;
    let cases = [
        (plain(), bare),
        (snapshots.clone(), bare),
        (snapshots, &envelope),
        (strict, null),
        (plain(), reported),
    ];
    for (rules, text) in cases {
        for size in [3, text.len()] {
            for text in [text, text.strip_suffix('}').unwrap_or_default()] {
                let [streamed, partial] = streamed_and_partial(&rules, text, size);
                assert_eq!(streamed, partial, "{text}");
            }
        }
        assert_eq!(streamed_and_partial(&rules, text, 3)[1]["result"], "r", "{text}");
    }
}

#[test]
fn what_is_held_leaves_before_an_error() {
    let mut rules = plain();
    rules.response.buffer_size = 1 << 20;
    let text = r#"{"ok": true, "meta": {}, "data": {"result": "half"#;
    for chunk_type in [ChunkType::Delta, ChunkType::Snapshot] {
        rules.response.chunk_type = chunk_type;
        let chunks = chunks(&rules, text, 9, None);
        let mut image = crate::fold::DataAccumulator::default();
        chunks.iter().for_each(|chunk| image.apply(chunk));
        let partial = envelope(fold(chunks))["partial_data"].clone();
        assert_eq!(image.into_data(), Some(partial));
    }
}

#[test]
fn warnings_of_a_failure_are_for_the_envelope_and_not_for_its_chunk() {
    let broken = reply(json!({ "data": { "extra": 1, "result": 7 } })).to_string();
    let chunks = chunks(&plain(), &broken, 9, Some(FinishReason::Stop));
    let end = chunks.last().map(ToJson::to_json).unwrap();
    assert!(end.contains("E3001") && end.contains("W3007"), "{end}");
    assert_eq!(envelope(fold(chunks))["_warnings"][0]["code"], "W3007");
}

#[test]
fn reply_over_the_limit_is_reported_as_too_long() {
    let mut rules = plain();
    rules.limits.bytes = 100;
    let text = reply(json!({ "data": { "result": "r".repeat(200) } })).to_string();
    let chunks = chunks(&rules, &text, 50, Some(FinishReason::Stop));
    let answer = envelope(fold(chunks));
    assert_eq!(answer["error"]["code"], "E1000");
    assert_eq!(answer["error"]["message"], "The reply is too long: only 100 bytes are read");
}

#[test]
fn draft_in_reasoning_is_retracted() {
    let good = reply(json!({})).to_string();
    let draft = reply(json!({ "data": { "result": 7, "more": "of it" } })).to_string();
    let text = format!("I could say {draft} or {{\"ok\": ...}}, no.\n</think>\n{good}");
    let plain_answer = answer_text(&plain(), &good);
    for on_violation in [OnViolation::Report, OnViolation::Abort, OnViolation::Retry] {
        for chunk_type in [ChunkType::Delta, ChunkType::Snapshot] {
            let mut rules = plain();
            (rules.response.on_violation, rules.response.chunk_type) = (Some(on_violation), chunk_type);
            let answer = answer_text(&rules, &text);
            assert_eq!(answer["data"], plain_answer["data"]);
            assert_eq!(answer["meta"]["repairs"][0]["rule"], "surrounding_text");
        }
    }
    let strict = AnswerRules { strict: true, ..plain() };
    assert_eq!(answer_text(&strict, &text)["error"]["code"], "E3001");
}

#[test]
fn retracted_draft_with_nothing_after_it_is_an_error() {
    let draft = reply(json!({})).to_string();
    for before in [draft.clone(), format!("Maybe {draft}? No.")] {
        let answer = answer_text(&plain(), &format!("{before}\n</think>\nI'm sorry."));
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!("E1000")));
        assert_eq!(answer.get("partial_data"), None);
    }
}

#[test]
fn violation_in_a_draft_that_the_reply_begins_with_is_final() {
    let draft = reply(json!({ "data": { "result": 7 } })).to_string();
    let text = format!("{draft}</think>{}", reply(json!({})));
    let mut rules = plain();
    assert_eq!(answer_text(&rules, &text)["ok"], true);
    rules.response.on_violation = Some(OnViolation::Abort);
    for size in [1, 7, text.len()] {
        let end = fold(chunks(&rules, &text, size, Some(FinishReason::Stop)));
        assert_eq!(envelope(end)["error"]["code"], "E3001", "in chunks of {size} bytes");
    }
}
