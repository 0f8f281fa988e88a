//! The context that an answer emits (docs/spec/context.md).

use cog_spec::{ContextRule, ContextTtl, Dialect, EmittedContext};

use super::*;

/// A module that emits `session_state`, with a `turn` and maybe a `note`.
fn emitting() -> AnswerRules {
    let mut manifest = manifest(Tier::Decision);
    manifest.context.emits = vec![EmittedContext {
        name: "session_state".to_owned(),
        ttl: ContextTtl::Request,
        key_pattern: EmittedContext::DEFAULT_KEY.to_owned(),
        schema: None,
    }];
    let properties = json!({ "turn": { "type": "integer" }, "note": { "type": "string" } });
    let state = json!({ "type": "object", "required": ["turn"], "properties": properties });
    let mut schema = schema(json!({}));
    schema["$context"] = json!({ "emits": { "session_state": state } });
    rules(manifest, &schema)
}

fn emit(rules: &AnswerRules, context: Value) -> Value {
    answer(rules, &reply(json!({ "_emitted_context": context })))
}

/// Returns the path and the rule of the only violation.
fn violation(envelope: &Value) -> [&str; 2] {
    let violations = envelope["error"]["details"]["violations"].as_array().unwrap();
    assert_eq!(violations.len(), 1, "{envelope}");
    ["path", "rule"].map(|key| violations[0][key].as_str().unwrap())
}

#[test]
fn declared_context_is_part_of_the_answer() {
    let context = json!({ "session_state": { "turn": 1 } });
    assert_eq!(emit(&emitting(), context.clone())["_emitted_context"], context);
}

#[test]
fn nulls_and_context_of_a_module_that_declares_none_are_no_context() {
    let null = json!({ "session_state": null });
    let undeclared = json!({ "session_state": { "turn": 1 } });
    for (rules, context) in [(emitting(), json!(null)), (emitting(), null), (plain(), undeclared)] {
        let envelope = emit(&rules, context);
        assert_eq!((&envelope["ok"], &envelope["_emitted_context"]), (&json!(true), &Value::Null));
    }
}

#[test]
fn context_of_another_form_is_a_violation() {
    let rules = emitting();
    assert_eq!(violation(&emit(&rules, json!("text"))), ["_emitted_context", "type"]);
    let unknown = emit(&rules, json!({ "sesion_state": { "turn": 1 } }));
    assert_eq!(violation(&unknown), ["_emitted_context.sesion_state", "context"]);
    assert_eq!(unknown["error"]["suggestion"], "Did you mean `session_state`?");
    let wrong = emit(&rules, json!({ "session_state": { "turn": "x" } }));
    assert_eq!(violation(&wrong), ["_emitted_context.session_state.turn", "type"]);
}

#[test]
fn context_has_a_maximum_size() {
    let context = |length: usize| json!({ "session_state": { "turn": 1, "note": "x".repeat(length) } });
    let room = ContextRule::MAX_BYTES - context(0).to_string().len();
    let judged = |length: usize| {
        let text = reply(json!({ "_emitted_context": context(length) })).to_string();
        envelope(fold(run(&emitting(), &text, text.len(), Some(FinishReason::Stop))))
    };
    assert_eq!(judged(room)["ok"], true);
    assert_eq!(violation(&judged(room + 1)), ["_emitted_context", "size"]);
}

#[test]
fn nulls_of_a_strict_dialect_are_members_left_out_of_the_context() {
    let context = json!({ "session_state": { "turn": 1, "note": null } });
    let mut rules = emitting();
    assert_eq!(emit(&rules, context.clone())["error"]["code"], "E3001");
    rules.dialect = Dialect::OpenAiStrict;
    assert_eq!(emit(&rules, context)["_emitted_context"], json!({ "session_state": { "turn": 1 } }));
}
