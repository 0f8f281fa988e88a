//! Helpers for tests: modules from a schema, runs of a reply, and the rules of every stream.

use std::{sync::Arc, time::Duration};

use cog_schema::{Contract, Rules};
use cog_spec::{
    Chunk, Envelope, ErrorCode, Fallback, FinishReason, Format, Manifest, ModelEvent, OnViolation, Tier,
};
use serde_json::json;

use crate::{AnswerRules, Assembler, DataAccumulator, Finish, Step, fold, verify::ModuleRules};

/// A manifest of v2.2.
pub(crate) fn manifest(tier: Tier) -> Manifest {
    let mut manifest = Manifest::with_defaults("m", Format::V22, Some(tier));
    manifest.responsibility = "Answer a question".to_owned();
    manifest
}

/// A schema whose data have a `result`, a `rationale`, and these properties.
pub(crate) fn schema(more: serde_json::Value) -> serde_json::Value {
    let mut properties = json!({ "result": { "type": "string" }, "rationale": { "type": "string" } });
    if let (Some(all), serde_json::Value::Object(more)) = (properties.as_object_mut(), more) {
        all.extend(more);
    }
    json!({
        "input": { "type": "object" },
        "data": { "type": "object", "required": ["result", "rationale"], "properties": properties },
    })
}

/// Returns the contract of a module of tier decision whose data have these properties, and no others are required.
pub(crate) fn contract_of(properties: &str) -> Contract {
    let properties: serde_json::Value = serde_json::from_str(properties).unwrap();
    let schema = json!({ "input": {}, "data": { "type": "object", "properties": properties } });
    Contract::compile(&schema, &Rules::from(&manifest(Tier::Decision))).unwrap()
}

/// Rules that allow one attempt.
pub(crate) fn rules(manifest: Manifest, schema: &serde_json::Value) -> AnswerRules {
    let contract = Contract::compile(schema, &Rules::from(&manifest)).unwrap();
    let mut rules = AnswerRules::new("sess_1", Arc::new(manifest), Arc::new(contract));
    rules.response.on_violation = Some(OnViolation::Report);
    rules
}

/// The rules of a plain module of tier decision.
pub(crate) fn plain() -> AnswerRules {
    rules(manifest(Tier::Decision), &schema(json!({})))
}

/// A reply that the plain module takes, with the given members of `data` in addition to `rationale`.
pub(crate) fn reply(more: serde_json::Value) -> serde_json::Value {
    let mut reply = json!({
        "ok": true,
        "meta": { "confidence": 0.95, "risk": "low", "explain": "Answered." },
        "data": { "result": "fine", "rationale": "It was asked." },
    });
    merge(&mut reply, more);
    reply
}

fn merge(into: &mut serde_json::Value, more: serde_json::Value) {
    match (into, more) {
        (serde_json::Value::Object(into), serde_json::Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(json!(null)), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// Returns the chunks of a reply that arrives in parts of `size` bytes and finishes with `reason`. A retry and the next provider get
/// the same reply.
pub(crate) fn chunks(
    rules: &AnswerRules,
    text: &str,
    size: usize,
    reason: Option<FinishReason>,
) -> Vec<Chunk> {
    let out = run(rules, text, size, reason);
    check_stream_of(Some(ModuleRules::new(&rules.manifest, &rules.contract)), &out);
    out
}

/// As `chunks`, unchecked: without a reader the chunks are not a complete stream.
pub(crate) fn run(rules: &AnswerRules, text: &str, size: usize, reason: Option<FinishReason>) -> Vec<Chunk> {
    let (assembler, first) = Assembler::new(rules.clone());
    let mut assembler = Box::new(assembler);
    let mut out = vec![first];
    let mut now = Duration::ZERO;
    assembler.tick(now, &mut out);
    loop {
        let texts = parts(text, size).into_iter().map(ModelEvent::Text);
        for event in texts.chain(reason.clone().map(ModelEvent::Finished)) {
            now += Duration::from_millis(10);
            if assembler.event(event, now, &mut out) == Step::Stop {
                break;
            }
        }
        match assembler.finish(now, &mut out) {
            Finish::Ended => break,
            Finish::Again(again, _) => assembler = again,
            Finish::Next(next, error) => {
                assembler = next;
                let ErrorCode::Standard(code) = error.code else { panic!("{error:?}") };
                let failed = Fallback { provider: "p".to_owned(), code, message: error.message };
                assembler.fall_back_to("q", "m", failed);
                assembler.set_request(rules.dialect, rules.form);
                assembler.set_next(false);
            }
        }
    }
    out
}

/// Returns the envelope of a reply, which must not depend on the size of its parts.
pub(crate) fn answer(rules: &AnswerRules, reply: &serde_json::Value) -> serde_json::Value {
    answer_text(rules, &reply.to_string())
}

/// As `answer`, for any text.
pub(crate) fn answer_text(rules: &AnswerRules, text: &str) -> serde_json::Value {
    let complete = envelope(fold(chunks(rules, text, text.len().max(1), Some(FinishReason::Stop))));
    for size in [1, 7] {
        let split = envelope(fold(chunks(rules, text, size, Some(FinishReason::Stop))));
        assert_eq!(split, complete, "in parts of {size}");
    }
    complete
}

/// Returns an envelope as JSON, without the processing time.
pub(crate) fn envelope(mut envelope: Envelope) -> serde_json::Value {
    envelope.meta.runtime.processing_time_ms = None;
    serde_json::from_str(&cog_json::ToJson::to_json(&envelope)).unwrap()
}

/// Splits text, never within a character.
pub(crate) fn parts(text: &str, size: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.ceil_char_boundary(size));
        parts.push(part.to_owned());
        rest = after;
    }
    parts
}

/// Checks the rules of every stream: its first chunk, its numbers, its end, and its data.
pub(crate) fn check_stream(chunks: &[Chunk]) {
    check_stream_of(None, chunks);
}

/// As `check_stream`. The module may allow a code that is nobody else's, and exclude one of the runtime.
fn check_stream_of(module: Option<ModuleRules<'_>>, chunks: &[Chunk]) {
    assert!(matches!(chunks.first(), Some(Chunk::Meta { .. })), "the first chunk is meta");
    assert_eq!(chunks.iter().filter(|chunk| matches!(chunk, Chunk::Meta { .. })).count(), 1);
    let before = chunks.first().and_then(|first| match first {
        Chunk::Meta { resume_from_seq, .. } => *resume_from_seq,
        _ => None,
    });
    let first = before.unwrap_or(0) + 1;
    let numbers: Vec<u64> = chunks.iter().filter_map(Chunk::seq).collect();
    assert_eq!(numbers, (first..first + numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1);
    let last = chunks.last().unwrap();
    assert!(last.is_end(), "nothing follows the end");
    if let Chunk::Final { data, .. } = last {
        let mut streamed = DataAccumulator::default();
        chunks.iter().for_each(|chunk| streamed.apply(chunk));
        assert_eq!(streamed.into_data(), Some(data.to_serde()));
    }
    let lines: Vec<String> = chunks.iter().map(cog_json::ToJson::to_json).collect();
    let text = lines.join("\n");
    let verdict = crate::verify::verify(&text, None, None);
    let is_valid = verdict.valid || module.is_some() && crate::verify::verify(&text, None, module).valid;
    assert!(is_valid, "{:?}\n{}", verdict.violations, lines.join("\n"));
}
