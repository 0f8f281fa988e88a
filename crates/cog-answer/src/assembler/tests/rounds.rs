//! What an assembler receives from its caller: tokens, warnings, dialects, and the ends of rounds and attempts.

use cog_spec::{Amount, Currency, Form, PriceDate, PriceSource};

use super::*;

fn usage(input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens: 5, ..Usage::default() }
}

fn cost() -> Option<Cost> {
    let amount = Amount::new(0.5)?;
    let date = PriceDate::new("2026-11-22")?;
    Some(Cost { amount, currency: Currency::Usd, source: PriceSource::GenaiPrices, date })
}

fn send(assembler: &mut Assembler, event: ModelEvent) -> Vec<Chunk> {
    let mut out = Vec::new();
    let _ = assembler.event(event, Duration::ZERO, &mut out);
    out
}

const STOP: ModelEvent = ModelEvent::Finished(FinishReason::Stop);

fn finish(assembler: Assembler) -> serde_json::Value {
    let mut out = Vec::new();
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    envelope(fold(out))
}

#[test]
fn tokens_count_when_their_reply_has_ended() {
    let mut rules = plain();
    rules.runtime.model = Some("gpt".to_owned());
    let (mut assembler, _) = Assembler::new(rules);
    assert!(!assembler.is_uncounted());
    assert_eq!(
        (assembler.usage(), assembler.reply_usage(), assembler.usage_with_reply()),
        (None, None, None)
    );

    send(&mut assembler, ModelEvent::Usage(usage(10)));
    assembler.set_cost(|_, _| cost());
    assert!(assembler.is_uncounted());
    assert_eq!(assembler.reply_usage(), Some(usage(10)), "the cost of a part is none of the reply");
    assert_eq!(assembler.usage_with_reply(), Some(Usage { uncounted_calls: Some(1), ..usage(10) }));

    send(&mut assembler, STOP);
    assert!(!assembler.is_uncounted());
    let complete = Usage { cost: cost(), ..usage(10) };
    assert_eq!(assembler.reply_usage().as_ref(), Some(&complete));
    assembler.end_round(&mut Vec::new());
    assert_eq!((assembler.usage(), assembler.reply_usage()), (Some(&complete), None));
}

#[test]
fn calls_without_tokens_are_counted() {
    let (mut assembler, _) = Assembler::new(plain());
    send(&mut assembler, STOP);
    assert!(assembler.is_uncounted());
    assembler.end_round(&mut Vec::new());
    assembler.add_usage(&Usage { uncounted_calls: Some(2), ..usage(1) });
    assembler.lose_reply(usage(5));
    assert!(assembler.is_uncounted());
    let expected = Usage { uncounted_calls: Some(4), output_tokens: 10, ..usage(6) };
    assert_eq!(assembler.usage_with_reply(), Some(expected));
}

#[test]
fn lost_reply_has_the_cost_of_its_estimate() {
    let mut rules = plain();
    rules.runtime.model = Some("gpt".to_owned());
    let (mut assembler, _) = Assembler::new(rules.clone());
    assembler.lose_reply(usage(5));
    assembler.set_cost(|_, _| cost());
    let expected = Usage { uncounted_calls: Some(1), cost: cost(), ..usage(5) };
    assert_eq!(assembler.usage_with_reply(), Some(expected));

    let (mut assembler, _) = Assembler::new(rules.clone());
    send(&mut assembler, ModelEvent::Usage(usage(10)));
    send(&mut assembler, STOP);
    assembler.lose_reply(usage(500));
    assert_eq!(assembler.usage_with_reply(), Some(usage(10)), "complete counts are better");

    let (mut assembler, _) = Assembler::new(rules.clone());
    send(&mut assembler, ModelEvent::Text("{".to_owned()));
    assembler.end_round(&mut Vec::new());
    assembler.add_lost_call(&Usage { cost: cost(), ..usage(3) });
    let expected = Usage { uncounted_calls: Some(2), ..usage(3) };
    assert_eq!(assembler.usage_with_reply(), Some(expected), "the tokens of the first reply are unknown");
}

#[test]
fn only_a_part_whose_model_was_called_reports_calls_without_tokens() {
    let calls = |change: fn(&mut AnswerRules)| {
        let mut rules = plain();
        change(&mut rules);
        let (mut assembler, _) = Assembler::new(rules);
        send(&mut assembler, ModelEvent::Text(reply(json!({})).to_string()));
        send(&mut assembler, STOP);
        finish(assembler)["meta"]["usage"]["uncounted_calls"].clone()
    };
    assert_eq!(calls(|rules| rules.is_part = true), 1);
    assert_eq!(calls(|_| {}), json!(null));
    assert_eq!(calls(|rules| (rules.is_part, rules.is_from_parts) = (true, true)), json!(null));
    let offline = |rules: &mut AnswerRules| {
        rules.is_part = true;
        rules.warnings = vec![Warning::new(WarningCode::NoModelCalled, "A sample.")];
    };
    assert_eq!(calls(offline), json!(null));
}

#[test]
fn data_before_tool_calls_are_retracted() {
    let start = |data: &str| {
        let meta = r#"{"confidence": 1, "risk": "low", "explain": "x"}"#;
        format!(r#"{{"ok": true, "meta": {meta}, "data": {{{data}"#)
    };
    for (data, is_emitted) in [(r#""result": "half"#, true), (r#""count": 1, "#, true), ("", false)] {
        let (mut assembler, _) = Assembler::new(plain());
        send(&mut assembler, ModelEvent::Text(start(data)));
        let mut out = Vec::new();
        assembler.end_round(&mut out);
        let retracted = Chunk::Snapshot { seq: 3, field: None, data: Value::parse("{}").unwrap() };
        assert_eq!(out, if is_emitted { vec![retracted] } else { Vec::new() }, "{data}");
    }
}

#[test]
fn media_and_warnings_are_part_of_the_envelope() {
    let (mut assembler, _) = Assembler::new(plain());
    assembler.set_media(Value::from(json!([{ "type": "image" }])), Value::from(json!([])));
    assembler.set_media_warnings(vec![Warning::new(WarningCode::MediaInPart, "Only its first page.")]);
    assembler.warn([Warning::new(WarningCode::ToolUnavailable, "No search.")]);
    send(&mut assembler, ModelEvent::Text(reply(json!({})).to_string()));
    send(&mut assembler, STOP);
    let envelope = finish(assembler);
    assert_eq!(envelope["meta"]["media_processed"], json!([{ "type": "image" }]));
    assert_eq!(envelope["meta"]["media_validation"], json!([]));
    let codes: Vec<_> = envelope["_warnings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["W4017", "W4011"]);
}

#[test]
fn another_dialect_starts_the_reply_again() {
    let (mut assembler, _) = Assembler::new(plain());
    send(&mut assembler, ModelEvent::Text("The beginning".to_owned()));
    assembler.set_request(Dialect::OpenAiStrict, Form::ENVELOPE);
    send(&mut assembler, ModelEvent::Text(json!({ "envelope": reply(json!({})) }).to_string()));
    send(&mut assembler, STOP);
    let envelope = finish(assembler);
    assert_eq!((&envelope["ok"], &envelope["meta"]["repairs"]), (&json!(true), &json!(null)), "{envelope}");
}

#[test]
fn refused_attempt_names_the_failure_of_the_one_before() {
    let mut rules = plain();
    rules.response.on_violation = None;
    let (mut assembler, _) = Assembler::new(rules);
    assembler.end_attempts(ErrorBody::new(Code::PermissionDenied, "Over the budget"));
    send(&mut assembler, ModelEvent::Text(reply(json!({ "data": { "result": 7 } })).to_string()));
    send(&mut assembler, STOP);
    let error = &finish(assembler)["error"];
    assert_eq!(error["code"], "E4007");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("Over the budget; the answer before failed: E3001: "), "{message}");
}

#[test]
fn answer_that_is_requested_again_emits_only_its_retraction() {
    let mut rules = plain();
    (rules.response.on_violation, rules.response.chunk_type) = (None, ChunkType::Snapshot);
    let (mut assembler, _) = Assembler::new(rules);
    send(&mut assembler, ModelEvent::Text(reply(json!({ "data": { "result": 7 } })).to_string()));
    send(&mut assembler, STOP);
    let mut out = Vec::new();
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Again(..)));
    let data = out.iter().filter_map(|chunk| match chunk {
        Chunk::Snapshot { field: None, data, .. } => Some(data.to_serde()),
        _ => None,
    });
    assert_eq!(data.collect::<Vec<_>>(), [json!({})]);
}

#[test]
fn number_of_violations_in_progress_is_bounded() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let rules = rules(manifest(Tier::Decision), &schema(json!({ "list": list })));
    let (mut assembler, _) = Assembler::new(rules);
    let text = reply(json!({ "data": { "list": vec!["x"; 70] } })).to_string();
    let out = send(&mut assembler, ModelEvent::Text(text));
    let reports: Vec<_> = out
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Progress(progress) => Some(progress),
            _ => None,
        })
        .collect();
    assert_eq!(reports.len(), 64);
    assert!(reports.iter().all(|one| one.percent == 50 && one.stage.as_deref() == Some("checking")));
}

#[test]
fn silent_run_emits_only_what_its_envelope_needs() {
    let mut rules = plain();
    rules.is_streamed = false;
    let text = reply(json!({ "data": { "result": 7 } })).to_string();
    let out = run(&rules, &text, 9, Some(FinishReason::Stop));
    let kinds = out.iter().map(|chunk| match chunk {
        Chunk::Snapshot { field, .. } => field.as_deref().unwrap_or("data"),
        other => other.event_name(),
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["meta", "meta", "error"]);
}

#[test]
fn reply_of_reasoning_alone_is_distinguished_from_an_empty_one() {
    let draft = r#"{"result": "r", "rationale": "y"}"#;
    for (reasoning, text, reason) in [
        (Some(draft), "", "reasoning"),
        (Some("Hm."), " \n", "reasoning"),
        (None, "", "empty"),
        (None, "\n", "empty"),
    ] {
        let (mut assembler, _) = Assembler::new(plain());
        if let Some(reasoning) = reasoning {
            send(&mut assembler, ModelEvent::Reasoning(reasoning.to_owned()));
        }
        send(&mut assembler, ModelEvent::Text(text.to_owned()));
        send(&mut assembler, ModelEvent::Finished(FinishReason::Stop));
        let envelope = finish(assembler);
        assert_eq!(envelope["error"]["code"], "E1000");
        assert_eq!(envelope["error"]["details"]["reason"], reason, "{reasoning:?} {text:?}");
    }
    let (mut assembler, _) = Assembler::new(plain());
    send(&mut assembler, ModelEvent::Reasoning("Hm.".to_owned()));
    send(&mut assembler, ModelEvent::Text("I cannot say.".to_owned()));
    send(&mut assembler, ModelEvent::Finished(FinishReason::Stop));
    assert_eq!(finish(assembler)["error"]["details"].get("reason"), None, "the text is no answer");
}
