//! Replies of models that were asked for their data alone (ruling R91).

use cog_spec::Form;

use super::*;

fn asked(tier: Tier, form: &'static Form) -> AnswerRules {
    AnswerRules { form, ..rules(manifest(tier), &schema(json!({ "confidence": { "type": "number" } }))) }
}

const TEXT: &str = r#"{"result": "fine", "confidence": 0.99, "rationale": "It was asked."}"#;

#[test]
fn data_alone_are_an_answer_whose_meta_is_filled() {
    let rules = asked(Tier::Decision, Form::DATA);
    let envelope = answer_text(&rules, TEXT);
    assert_eq!(envelope["ok"], true);
    assert_eq!(envelope["data"], serde_json::from_str::<serde_json::Value>(TEXT).unwrap());
    let meta = &envelope["meta"];
    // The field of the data is the module's own, and no statement of the model about its answer.
    assert_eq!(
        (&meta["confidence"], &meta["risk"], &meta["explain"]),
        (&json!(0.5), &json!("medium"), &json!("It was asked."))
    );
    let repairs: Vec<_> = meta["repairs"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
    assert_eq!(repairs, ["fill_confidence", "fill_risk", "fill_explain"]);
}

#[test]
fn data_alone_are_streamed_from_their_first_field() {
    let rules = asked(Tier::Decision, Form::DATA);
    let (mut assembler, first) = Assembler::new(rules);
    let mut out = vec![first];
    let _ = assembler.event(ModelEvent::Text(r#"{"result": "ha"#.to_owned()), Duration::ZERO, &mut out);
    assert!(matches!(out.last(), Some(Chunk::Delta { delta, .. }) if delta == "ha"));
}

#[test]
fn filled_meta_is_no_repair_of_a_strict_run() {
    let rules = AnswerRules { strict: true, ..asked(Tier::Decision, Form::DATA) };
    assert_eq!(answer_text(&rules, TEXT)["ok"], true);
    let fenced = answer_text(&rules, &format!("```json\n{TEXT}\n```"));
    assert_eq!(fenced["error"]["code"], "E3001");
}

#[test]
fn exec_has_no_confidence_without_evidence() {
    let envelope = answer_text(&asked(Tier::Exec, Form::DATA), TEXT);
    assert_eq!(envelope["error"]["code"], "E2001");
    assert_eq!(envelope["partial_data"]["result"], "fine");
}

#[test]
fn error_alone_is_the_models_own_error() {
    let text = r#"{"error": {"code": "E2007", "message": "No text was given."}}"#;
    for size in [1, 7, text.len()] {
        let chunks = chunks(&asked(Tier::Decision, Form::DATA), text, size, Some(FinishReason::Stop));
        let envelope = envelope(fold(chunks));
        assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("E2007")));
    }
    // With data of its own it is no error, and in a form with an envelope it is none either.
    let both = r#"{"error": {"code": "E2007", "message": "No."}, "result": "fine"}"#;
    assert_eq!(answer_text(&asked(Tier::Decision, Form::DATA), both)["error"]["code"], "E3003");
    assert_eq!(answer_text(&asked(Tier::Decision, Form::ENVELOPE), text)["error"]["code"], "E3001");
}

#[test]
fn envelope_is_read_although_it_was_not_asked_for() {
    let text = reply(json!({})).to_string();
    let envelope = answer_text(&asked(Tier::Decision, Form::DATA), &text);
    assert_eq!((&envelope["ok"], &envelope["meta"]["confidence"]), (&json!(true), &json!(0.95)));
    assert_eq!(envelope["meta"].get("repairs"), None);
}

#[test]
fn next_provider_may_be_asked_in_another_form() {
    let (mut assembler, first) = Assembler::new(asked(Tier::Decision, Form::DATA));
    let mut out = vec![first];
    let _ = assembler.event(ModelEvent::Text(r#"{"result": "ha"#.to_owned()), Duration::ZERO, &mut out);
    let failed =
        Fallback { provider: "a".to_owned(), code: Code::StreamInterrupted, message: "cut".to_owned() };
    assembler.fall_back_to("b", "m", failed);
    assembler.set_request(Dialect::Prompt, Form::ENVELOPE);
    let text = reply(json!({})).to_string();
    let _ = assembler.event(ModelEvent::Text(text), Duration::ZERO, &mut out);
    let _ = assembler.event(ModelEvent::Finished(FinishReason::Stop), Duration::ZERO, &mut out);
    assert!(matches!(assembler.finish(Duration::ZERO, &mut out), Finish::Ended));
    let envelope = envelope(fold(out));
    assert_eq!(
        (&envelope["data"]["result"], &envelope["meta"]["confidence"]),
        (&json!("fine"), &json!(0.95))
    );
}
