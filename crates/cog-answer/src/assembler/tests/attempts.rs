//! Attempts after a violation, other providers, and the usage and cost of all attempts.

use std::slice;

use cog_spec::{Amount, Currency, PriceDate, PriceSource};

use super::*;

#[test]
fn default_retries_once_at_the_end_of_the_reply() {
    let mut rules = plain();
    rules.response.on_violation = None;
    let bad = reply(json!({ "data": { "result": 7 } })).to_string();
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    for event in [ModelEvent::Text(bad.clone()), ModelEvent::Finished(FinishReason::Stop)] {
        assert_eq!(assembler.event(event, Duration::ZERO, &mut out), Step::Continue, "not at the violation");
    }
    let Finish::Again(mut assembler, correction) = assembler.finish(Duration::ZERO, &mut out) else {
        panic!("no retry")
    };
    assert_eq!(correction.answer, bad);
    assert!(correction.feedback.contains("`data.result` (type)"), "{}", correction.feedback);
    for event in [ModelEvent::Text(bad), ModelEvent::Finished(FinishReason::Stop)] {
        let _ = assembler.event(event, Duration::ZERO, &mut out);
    }
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended), "only once");
    check_stream(&out);
    let envelope = envelope(fold(out));
    assert_eq!((&envelope["error"]["code"], &envelope["meta"]["attempts"]), (&json!("E3001"), &json!(2)));
}

#[test]
fn retry_calls_again_in_the_same_stream() {
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Retry);
    rules.provider = "openai".to_owned();
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let bad = reply(json!({ "data": { "result": 7 } })).to_string();
    assert_eq!(assembler.event(ModelEvent::Usage(usage.clone()), Duration::ZERO, &mut out), Step::Continue);
    assert_eq!(assembler.event(ModelEvent::Text(bad.clone()), Duration::ZERO, &mut out), Step::Stop);
    let Finish::Again(mut assembler, correction) = assembler.finish(Duration::ZERO, &mut out) else {
        panic!("no retry")
    };
    assert_eq!(correction.answer, bad);
    assert!(correction.feedback.contains("`data.result` (type)"), "{}", correction.feedback);
    let good = reply(json!({})).to_string();
    let started = ModelEvent::Started { model: Some("gpt".to_owned()), id: None, fingerprint: None };
    for event in
        [started, ModelEvent::Text(good), ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::Stop)]
    {
        assert_eq!(assembler.event(event, Duration::ZERO, &mut out), Step::Continue);
    }
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    check_stream(&out);
    let envelope = envelope(fold(out));
    assert_eq!(envelope["meta"]["attempts"], 2);
    assert_eq!(envelope["meta"]["usage"]["input_tokens"], 20);
    assert_eq!(envelope["meta"]["model"], "openai/gpt");
}

/// Passes a reply with one thousandth of a dollar per token of the input.
fn priced(assembler: &mut Assembler, counts: &[ModelEvent], text: &serde_json::Value) {
    let text = ModelEvent::Text(text.to_string());
    for event in counts.iter().chain([&text]) {
        let _ = assembler.event(event.clone(), Duration::ZERO, &mut Vec::new());
    }
    assembler.set_cost(|model, usage| {
        assert_eq!(model, "gpt");
        let amount = Amount::new(0.001 * f64::from(u32::try_from(usage.input_tokens).unwrap()))?;
        let date = PriceDate::new("2026-11-22")?;
        Some(Cost { amount, currency: Currency::Usd, source: PriceSource::GenaiPrices, date })
    });
}

/// Returns the amount of a run whose first attempt violates the contract.
fn amount_of_two(first: &[ModelEvent], second: &[ModelEvent]) -> serde_json::Value {
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Retry);
    (rules.provider, rules.runtime.model) = ("openai".to_owned(), Some("openai/gpt".to_owned()));
    let (mut assembler, chunk) = Assembler::new(rules);
    let mut out = vec![chunk];
    priced(&mut assembler, first, &reply(json!({ "data": { "result": 7 } })));
    let Finish::Again(mut assembler, _) = assembler.finish(Duration::ZERO, &mut out) else {
        panic!("no retry")
    };
    priced(&mut assembler, second, &reply(json!({})));
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    envelope(fold(out))["meta"]["usage"]["cost"]["amount"].clone()
}

#[test]
fn cost_is_that_of_all_attempts() {
    let usage = |input_tokens| ModelEvent::Usage(Usage { input_tokens, ..Usage::default() });
    let end = ModelEvent::Finished(FinishReason::Stop);
    let ten = [usage(10), end.clone()];
    let five = [usage(5), end.clone()];
    assert_eq!(amount_of_two(&ten, &five), 0.015);
    assert_eq!(
        amount_of_two(slice::from_ref(&end), &five),
        json!(null),
        "tokens of the first attempt are unknown"
    );
    assert_eq!(
        amount_of_two(slice::from_ref(&ten[0]), &five),
        json!(null),
        "the first attempt was stopped before its last counts"
    );
    assert_eq!(amount_of_two(&ten, &[end]), json!(null), "tokens of the second attempt are unknown");
}

#[test]
fn usage_states_how_many_calls_are_not_counted() {
    let usage = ModelEvent::Usage(Usage { input_tokens: 7, ..Usage::default() });
    let end = ModelEvent::Finished(FinishReason::Stop);
    for (first, uncounted) in [(vec![], json!(1)), (vec![usage.clone(), end.clone()], json!(null))] {
        let mut rules = plain();
        rules.response.on_violation = Some(OnViolation::Retry);
        let (mut assembler, chunk) = Assembler::new(rules);
        let mut out = vec![chunk];
        let bad = ModelEvent::Text(reply(json!({ "data": { "result": 7 } })).to_string());
        for event in first.into_iter().chain([bad]) {
            let _ = assembler.event(event, Duration::ZERO, &mut out);
        }
        let Finish::Again(mut assembler, _) = assembler.finish(Duration::ZERO, &mut out) else {
            panic!("no retry")
        };
        let good = ModelEvent::Text(reply(json!({})).to_string());
        for event in [good, usage.clone(), end.clone()] {
            let _ = assembler.event(event, Duration::ZERO, &mut out);
        }
        assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
        assert_eq!(envelope(fold(out))["meta"]["usage"]["uncounted_calls"], uncounted);
    }
}

#[test]
fn call_that_is_refused_after_an_attempt_reports_its_failure() {
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Retry);
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    let bad = reply(json!({ "data": { "result": 7, "rationale": "because" } })).to_string();
    let usage = ModelEvent::Usage(Usage { input_tokens: 7, ..Usage::default() });
    for event in [usage, ModelEvent::Text(bad), ModelEvent::Finished(FinishReason::Stop)] {
        let _ = assembler.event(event, Duration::ZERO, &mut out);
    }
    let Finish::Again(assembler, _) = assembler.finish(Duration::ZERO, &mut out) else { panic!("no retry") };
    let refusal = ErrorBody::new(Code::RateLimited, "the budget is spent")
        .with_details(Value::from(json!({ "reason": "budget" })));
    assembler.refuse(refusal, Duration::ZERO, &mut out);
    check_stream(&out);
    let envelope = envelope(fold(out));
    let error = &envelope["error"];
    assert_eq!((&error["code"], &error["details"]["reason"]), (&json!("E4002"), &json!("budget")));
    assert_eq!(error["details"]["failed"]["code"], "E3001");
    assert!(error["message"].as_str().unwrap().contains("; the answer before failed: E3001"), "{error}");
    assert_eq!(envelope["partial_data"], json!({ "rationale": "because" }));
    assert_eq!(
        (&envelope["meta"]["attempts"], &envelope["meta"]["usage"]["input_tokens"]),
        (&json!(null), &json!(7))
    );
}

#[test]
fn final_check_is_reported_before_a_retry() {
    let mut rules = plain();
    rules.response.on_violation = Some(OnViolation::Retry);
    let (mut assembler, _) = Assembler::new(rules);
    let mut out = Vec::new();
    let mut bad = reply(json!({}));
    bad["data"].as_object_mut().unwrap().remove("rationale");
    assembler.event(ModelEvent::Text(bad.to_string()), Duration::ZERO, &mut out);
    assembler.event(ModelEvent::Finished(FinishReason::Stop), Duration::ZERO, &mut out);
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Again(..)));
    let emitted = out.iter().filter_map(|chunk| match chunk {
        Chunk::Progress(progress) => progress.violation.as_ref(),
        _ => None,
    });
    assert_eq!(emitted.map(|violation| violation.path.as_str()).collect::<Vec<_>>(), ["data.rationale"]);
    assert!(matches!(out.last(), Some(Chunk::Snapshot { field: None, .. })));
}

#[test]
fn another_provider_answers_by_its_own_name_and_dialect() {
    let mut rules = plain();
    rules.provider = "openai".to_owned();
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    let failed =
        Fallback { provider: "openai".to_owned(), code: Code::RateLimited, message: "slow".to_owned() };
    assembler.fall_back_to("anthropic", "claude", failed.clone());
    assembler.set_request(Dialect::OpenAiStrict, Form::ENVELOPE);
    let answer = reply(json!({ "error": null })).to_string();
    for event in [ModelEvent::Text(answer), ModelEvent::Finished(FinishReason::Stop)] {
        assembler.event(event, Duration::ZERO, &mut out);
    }
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    let envelope = fold(out);
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("anthropic/claude"));
    assert_eq!(envelope.meta.runtime.fallbacks, [failed]);
}

#[test]
fn another_provider_is_read_in_its_own_dialect() {
    let schema = schema(json!({ "note": { "type": "string" } }));
    let text = reply(json!({ "data": { "note": null } })).to_string();
    for (dialect, is_ok) in [(Dialect::OpenAiStrict, true), (Dialect::Prompt, false)] {
        let mut rules = rules(manifest(Tier::Decision), &schema);
        rules.dialect = if is_ok { Dialect::Prompt } else { Dialect::OpenAiStrict };
        let (mut assembler, first) = Assembler::new(rules);
        let mut out = vec![first];
        let failed =
            Fallback { provider: "a".to_owned(), code: Code::RateLimited, message: "slow".to_owned() };
        assembler.fall_back_to("b", "m", failed);
        assembler.set_request(dialect, Form::ENVELOPE);
        for event in [ModelEvent::Text(text.clone()), ModelEvent::Finished(FinishReason::Stop)] {
            assembler.event(event, Duration::ZERO, &mut out);
        }
        assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
        assert_eq!(out.iter().any(|chunk| matches!(chunk, Chunk::Progress(_))), !is_ok, "{dialect:?}");
        assert_eq!(fold(out).is_ok(), is_ok, "{dialect:?}");
    }
}
