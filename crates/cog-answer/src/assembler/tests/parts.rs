//! Answers and failures of compositions.

use cog_spec::{PartReport, PartStatus};

use super::*;
use crate::RecoveryOffer;

fn summary() -> PartsSummary {
    PartsSummary {
        reports: vec![PartReport::new("m/a", "a", PartStatus::Done)],
        usage: Some(Usage { input_tokens: 10, ..Usage::default() }),
        risk: Some(Risk::High),
        warnings: vec![Warning::new(WarningCode::OptionalPartFailed, "`b` failed.")],
    }
}

#[test]
fn parts_give_the_answer_with_their_tokens_risk_and_warnings() {
    let (mut assembler, _) = Assembler::new(plain());
    assembler.add_parts(summary(), None);
    assembler.answer_from_parts("composition", "m");
    let mut out = Vec::new();
    for event in [ModelEvent::Text(reply(json!({})).to_string()), ModelEvent::Finished(FinishReason::Stop)] {
        let _ = assembler.event(event, Duration::ZERO, &mut out);
    }
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    let envelope = envelope(fold(out));
    let meta = &envelope["meta"];
    assert_eq!((&meta["model"], &meta["risk"]), (&json!("composition/m"), &json!("high")));
    assert_eq!((&meta["parts"][0]["path"], &meta["usage"]["input_tokens"]), (&json!("m/a"), &json!(10)));
    assert_eq!(meta["usage"].get("uncounted_calls"), None, "no model was called for the answer");
    assert_eq!(envelope["_warnings"][0]["code"], "W3002");
}

#[test]
fn assembler_knows_whether_its_chunks_are_read() {
    for is_streamed in [true, false] {
        let rules = AnswerRules { is_streamed, ..plain() };
        assert_eq!(Assembler::new(rules).0.is_streamed(), is_streamed);
    }
}

#[test]
fn interrupted_composition_can_be_resumed() {
    let cancelled = || error::details(|w| _ = w.field("reason", "cancelled"));
    let unavailable = || ErrorBody::new(Code::ProviderUnavailable, "Down");
    let interrupted = || ErrorBody::new(Code::StreamInterrupted, "Broken");
    let cases = [
        (unavailable(), false, false),
        (unavailable(), true, true),
        (interrupted(), false, true),
        (ErrorBody::new(Code::StreamTimeout, "Late"), false, true),
        (interrupted().with_details(cancelled()), false, false),
    ];
    for (error, is_interrupted, is_resumable) in cases {
        let rules =
            AnswerRules { recovery: Some(RecoveryOffer { retry_after_ms: 500, max_retries: 3 }), ..plain() };
        let (mut assembler, _) = Assembler::new(rules);
        assembler.add_parts(summary(), Some(Value::from(json!({ "a": 1 }))));
        let mut out = Vec::new();
        assembler.fail_parts(error.clone(), is_interrupted, Duration::ZERO, &mut out);
        let Some(Chunk::Error { recovery, partial_data, .. }) = out.pop() else { panic!("no error") };
        assert_eq!(partial_data.map(|data| data.to_serde()), Some(json!({ "a": 1 })));
        let offer =
            recovery.map(|recovery| (recovery.last_seq, recovery.retry_after_ms, recovery.max_retries));
        assert_eq!(offer, is_resumable.then_some((1, Some(500), Some(3))), "{error:?}");
    }
}
