//! The assembler: one end for every reply, the same envelope in any split, and no answer from a reply that was cut.
#![no_main]

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use cog_answer::{AnswerRules, Assembler, Finish, Step, fold};
use cog_fuzz::text_chunks;
use cog_json::ToJson;
use cog_schema::{Contract, Rules};
use cog_spec::{Chunk, ChunkType, FinishReason, Format, Manifest, ModelEvent, OnViolation, Tier};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static RULES: LazyLock<[AnswerRules; 3]> =
    LazyLock::new(|| [Tier::Exec, Tier::Decision, Tier::Exploration].map(rules_for));

fuzz_target!(|data: &[u8]| {
    let Some((&[tier, kind, size], text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut rules = RULES[usize::from(tier) % 3].clone();
    rules.response.chunk_type = if kind & 1 == 0 { ChunkType::Delta } else { ChunkType::Snapshot };
    let on_violation = if kind & 2 == 0 { OnViolation::Report } else { OnViolation::Abort };
    rules.response.on_violation = Some(on_violation);
    rules.response.buffer_size = u64::from(kind >> 4);
    let reason = (kind & 4 == 0).then_some(FinishReason::Stop);
    let whole = run(&rules, text, text.len().max(1), reason.clone());
    let split = run(&rules, text, usize::from(size) + 1, reason.clone());
    if on_violation == OnViolation::Report {
        assert_eq!(without_time(&split), without_time(&whole));
    }
    assert!(reason.is_some() || !is_success(&whole), "a reply that was cut");
});

fn rules_for(tier: Tier) -> AnswerRules {
    let manifest = Manifest::with_defaults("m", Format::V22, Some(tier));
    let text = json!({ "type": "string" });
    let data = json!({
        "type": "object",
        "required": ["result", "rationale"],
        "properties": { "result": text, "rationale": text, "items": { "type": "array", "items": text }, "any": {} },
    });
    let schema = json!({ "input": { "type": "object" }, "data": data });
    let contract = Contract::compile(&schema, &Rules::from(&manifest)).expect("the schema is valid");
    AnswerRules::new("sess_1", Arc::new(manifest), Arc::new(contract))
}

fn run(rules: &AnswerRules, text: &str, size: usize, reason: Option<FinishReason>) -> Vec<Chunk> {
    let (mut assembler, first) = Assembler::new(rules.clone());
    let mut out = vec![first];
    let texts = text_chunks(text, size).map(|chunk| ModelEvent::Text(chunk.to_owned()));
    for event in texts.chain(reason.map(ModelEvent::Finished)) {
        if assembler.event(event, Duration::ZERO, &mut out) == Step::Stop {
            break;
        }
    }
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    assert!(out.last().is_some_and(Chunk::is_end) && out.iter().filter(|chunk| chunk.is_end()).count() == 1);
    out
}

fn is_success(chunks: &[Chunk]) -> bool {
    matches!(chunks.last(), Some(Chunk::Final { .. }))
}

fn without_time(chunks: &[Chunk]) -> String {
    let mut envelope = fold(chunks.to_vec());
    envelope.meta.runtime.processing_time_ms = None;
    envelope.to_json()
}
