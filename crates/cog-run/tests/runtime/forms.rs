//! Answers of models that are asked for their data alone (ruling R91).

use std::{sync::Arc, time::Duration};

use cog_harmony::Role;
use cog_json::Value;
use cog_module::forms::BestForm;
use cog_run::{AnswerCache, Budget, BudgetLimits, Envelope, RunOptions, Runtime, ToJson as _, events::Trace};
use cog_spec::{
    Ask, Chunk, Dialect, FinishReason, Form, Generation, ModelEvent, Risk, TokenProbability, Usage,
};

use futures_util::StreamExt as _;
use serde_json::json;

use super::support::{Scripted, code, directory, runtime_with, sample_input, write};

fn asked(form: &'static Form) -> RunOptions {
    RunOptions {
        generation: Generation { ask: Some(Ask::Form(form)), ..Generation::default() },
        ..RunOptions::default()
    }
}

/// Returns the answer to these replies of an engine with a grammar, and the requests.
async fn run(
    replies: &[&str],
    manifest: &[&str],
    options: RunOptions,
) -> (Envelope, Vec<cog_provider::ModelRequest>) {
    let directory = directory("Answer.", manifest);
    let provider = Scripted::replying_in_turn(replies.iter().copied()).with_dialect(Dialect::LlamaCpp);
    let (provider, runtime, module) = runtime_with(provider, &directory);
    let envelope = runtime.run(&module, sample_input(), options).await;
    let requests = provider.requests();
    (envelope, requests)
}

#[tokio::test]
async fn rationale_is_asked_for_once_the_answer_is_known() {
    let (envelope, requests) =
        run(&[r#"{"result": "fine"}"#, r#"{"rationale": "It was asked."}"#], &[], RunOptions::default())
            .await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.data().unwrap().to_string(), r#"{"result":"fine","rationale":"It was asked."}"#);
    assert_eq!((envelope.meta.confidence, envelope.meta.explain.as_str()), (Some(0.5), "It was asked."));
    assert_eq!(envelope.meta.risk.level(), Risk::Medium);
    let [first, second] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(first.merges_system && second.merges_system);
    let messages = second.messages.messages();
    assert_eq!(messages[..2], first.messages.messages()[..2]);
    assert_eq!(messages[2].text(), r#"{"result":"fine"}"#);
    assert!(messages[3].text().starts_with("Explain"));
    let schema = second.output.as_ref().unwrap().schema.as_ref().unwrap().to_string();
    assert!(schema.contains(r#""required":["rationale"]"#), "{schema}");
}

#[tokio::test]
async fn answer_without_an_explanation_fails_with_its_data() {
    let options = RunOptions { max_attempts: Some(1), ..RunOptions::default() };
    let (envelope, requests) = run(&[r#"{"result": "fine"}"#, r#"{"rationale": " "}"#], &[], options).await;
    assert_eq!((code(&envelope), requests.len()), (Some("E3003"), 2));
    assert!(envelope.to_json().contains(r#""partial_data":{"result":"fine"}"#), "{}", envelope.to_json());
}

#[tokio::test]
async fn budget_of_one_call_has_no_second_call() {
    let data = r#"{"result": "fine", "rationale": "It was asked."}"#;
    let one = || Budget::new("b", BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() });
    for (mut options, warned) in [(RunOptions::default(), false), (asked(Form::ANSWER), true)] {
        options.budgets = vec![one()];
        let (envelope, requests) = run(&[data], &[], options).await;
        assert!(envelope.is_ok(), "{:?}", envelope.error());
        assert_eq!((requests.len(), requests[0].output.as_ref().unwrap().form), (1, Form::DATA));
        let warnings = envelope.warnings.iter().filter(|it| it.message.contains("no call left"));
        assert_eq!(warnings.count() == 1, warned, "{:?}", envelope.warnings);
    }
}

#[tokio::test]
async fn rationale_may_begin_like_an_object() {
    let replies = [r#"{"result": "fine"}"#, r#"{"rationale": "{x} was asked."}"#];
    let (envelope, _) = run(&replies, &[], RunOptions::default()).await;
    assert_eq!(envelope.data().unwrap().get_str("rationale"), Some("{x} was asked."));
    let options = RunOptions { max_attempts: Some(1), ..RunOptions::default() };
    let (envelope, _) = run(&[replies[0], r#"{"rationale": "cut"#], &[], options).await;
    assert_eq!(code(&envelope), Some("E3003"));
}

#[tokio::test]
async fn rationale_that_only_the_schema_requires_is_asked_for_too() {
    let replies = [r#"{"result": "fine"}"#, EXPLAINED];
    let (envelope, requests) = run(&replies, &["rationale: optional"], RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn wrong_answer_is_asked_for_again_before_it_is_explained() {
    let replies = [r#"{"result": 1}"#, r#"{"result": "fine"}"#, r#"{"rationale": "It was asked."}"#];
    let (envelope, requests) = run(&replies, &[], RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!((envelope.meta.runtime.attempts, requests.len()), (Some(2), 3));
}

#[tokio::test]
async fn own_error_of_the_model_is_not_explained() {
    let error = r#"{"error": {"code": "E2007", "message": "No text."}}"#;
    let (envelope, requests) = run(&[error], &[], RunOptions::default()).await;
    assert_eq!((code(&envelope), requests.len()), (Some("E2007"), 1));
}

#[tokio::test]
async fn form_can_be_chosen_and_a_module_may_need_its_envelope() {
    let data = r#"{"result": "fine", "rationale": "It was asked."}"#;
    let (envelope, requests) = run(&[data], &[], asked(Form::DATA)).await;
    assert!(envelope.is_ok() && !requests[0].merges_system, "{:?}", envelope.error());
    assert!(envelope.warnings.is_empty(), "{:?}", envelope.warnings);

    let answer = format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "Yes."}}, "data": {data}}}"#
    );
    let needs = ["context: {main: true, emits: [{type: notes}]}"];
    let (envelope, requests) = run(&[&answer], &needs, asked(Form::DATA)).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(requests[0].output.as_ref().unwrap().form, Form::ENVELOPE);
    assert!(envelope.warnings.iter().any(|warning| warning.message.contains("emits context")));
}

/// Returns the events of a reply with this text and these tokens, without its end.
fn events(text: &str, output_tokens: u64) -> Vec<ModelEvent> {
    let usage = Usage { input_tokens: 10, output_tokens, ..Usage::default() };
    vec![ModelEvent::Text(text.to_owned()), ModelEvent::Usage(usage)]
}

fn complete(text: &str, output_tokens: u64) -> Vec<ModelEvent> {
    [events(text, output_tokens), vec![ModelEvent::Finished(FinishReason::Stop)]].concat()
}

const EXPLAINED: &str = r#"{"rationale": "It was asked."}"#;

#[tokio::test]
async fn tokens_of_the_second_call_are_counted_or_estimated() {
    let text = ModelEvent::Text(EXPLAINED.to_owned());
    for (second, input_tokens, output_tokens, uncounted) in [
        (complete(EXPLAINED, 7), 20..=20, 10..=10, None),
        // The connection breaks: the tokens are at least those that the bytes show.
        (events(EXPLAINED, 1), 20..=500, 3 + 8..=3 + 12, Some(1)),
        (vec![text, ModelEvent::Finished(FinishReason::Stop)], 10..=10, 3..=3, Some(1)),
    ] {
        let directory = directory("Answer.", &[]);
        let provider = Scripted::new([complete(r#"{"result": "fine"}"#, 3), second.clone()]);
        let (_, runtime, module) = runtime_with(provider.with_dialect(Dialect::LlamaCpp), &directory);
        let options = RunOptions { max_attempts: Some(1), ..RunOptions::default() };
        let envelope = runtime.run(&module, sample_input(), options).await;
        let usage = envelope.meta.runtime.usage.clone().unwrap();
        assert!(input_tokens.contains(&usage.input_tokens), "{second:?}: {usage:?}");
        assert!(output_tokens.contains(&usage.output_tokens), "{second:?}: {usage:?}");
        assert_eq!(usage.uncounted_calls, uncounted, "{second:?}");
    }
}

#[tokio::test]
async fn second_call_is_recorded_and_cached_with_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory("Answer.", &[]);
    let replies = [complete(r#"{"result": "fine"}"#, 3), complete(EXPLAINED, 7)];
    let provider = Arc::new(Scripted::new(replies).with_dialect(Dialect::LlamaCpp));
    let runtime = Runtime::builder()
        .provider(provider.clone())
        .cache(AnswerCache::in_directory(folder.path(), Duration::from_secs(3_600), 1 << 20))
        .build()
        .unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let trace = Trace::default();
        let options = RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() };
        let envelope = runtime.run(&module, sample_input(), options).await;
        assert!(envelope.is_ok(), "{:?}", envelope.error());
        let messages = trace.messages().0;
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant]);
        assert_eq!(messages[4].text(), EXPLAINED);
        answers.push((envelope.data().unwrap().to_string(), envelope.meta.runtime.cache.is_some()));
    }
    assert_eq!(provider.requests().len(), 2, "the second run is answered from the cache");
    assert_eq!(answers[0].0, answers[1].0);
    assert_eq!((answers[0].1, answers[1].1), (false, true));
}

/// Returns the events of an answer whose `yes` has a probability of 3/4 among what the contract allows.
fn probable(text: &str) -> Vec<ModelEvent> {
    let (before, value) = text.split_at(text.find("true").unwrap());
    let token = |text: &str, probability: f64, others: &[(&str, f64)]| TokenProbability {
        text: text.to_owned(),
        logprob: probability.ln(),
        alternatives: others.iter().map(|(text, value)| ((*text).to_owned(), value.ln())).collect(),
    };
    vec![
        ModelEvent::Text(before.to_owned()),
        ModelEvent::Tokens(vec![token(before, 1.0, &[])]),
        ModelEvent::Text(value.to_owned()),
        ModelEvent::Tokens(vec![token(value, 0.3, &[("I", 0.6), ("false", 0.1)])]),
        ModelEvent::Finished(FinishReason::Stop),
    ]
}

#[tokio::test]
async fn confidence_is_the_probability_of_the_deciding_fields() {
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["yes"],
        "properties": {"yes": {"type": "boolean"}}}}"#;
    for (form, text, confidence) in [
        (Form::ANSWER, r#"{"yes":true}"#, 0.75),
        (Form::DATA, r#"{"yes":true}"#, 0.75),
        // What had to be repaired is not what the tokens say.
        (Form::DATA, r#"{"yes":true,}"#, 0.5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let directory = directory("Answer.", &["rationale: optional"]);
        write(&directory, "schema.json", schema);
        let provider = Arc::new(Scripted::new([probable(text)]).with_dialect(Dialect::LlamaCpp));
        let runtime = Runtime::builder()
            .provider(provider.clone())
            .cache(AnswerCache::in_directory(folder.path(), Duration::from_secs(3_600), 1 << 20))
            .build()
            .unwrap();
        let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
        for _ in ["asked", "from the cache"] {
            let envelope = runtime.run(&module, sample_input(), asked(form)).await;
            assert!(envelope.is_ok(), "{:?}", envelope.error());
            assert_eq!(envelope.meta.confidence, Some(confidence), "{form} {text}");
            let evidence = envelope.meta.runtime.evidence.clone();
            assert_eq!(evidence.is_some(), confidence != 0.5, "{form} {text}");
            let filled =
                envelope.meta.runtime.repairs.iter().find(|it| it.path == "meta.confidence").unwrap();
            assert_eq!(filled.after.as_ref().unwrap().to_string(), confidence.to_string());
        }
        assert_eq!(provider.requests().len(), 1, "the second answer is from the cache");
        assert!(provider.requests()[0].probabilities);
    }
}

/// Data that are hard to ask for: the schema of `data` without its rationale, and an answer.
fn hard_cases() -> Vec<(serde_json::Value, serde_json::Value)> {
    let object = |properties: serde_json::Value| json!({ "type": "object", "properties": properties });
    let fields = |value: &dyn Fn(usize) -> serde_json::Value| {
        (0..50).map(|index| (format!("field_{index}"), value(index))).collect::<serde_json::Map<_, _>>()
    };
    let values: Vec<String> = (0..200).map(|index| format!("value_{index}")).collect();
    let custom = object(json!({ "custom": { "type": "string" }, "reason": { "type": "string" } }));
    vec![
        (object(json!(fields(&|_| json!({ "type": "integer" })))), json!(fields(&|index| json!(index)))),
        (object(json!({ "label": { "enum": values } })), json!({ "label": "value_199" })),
        (
            object(json!({ "tree": { "$ref": "#/$defs/Tree" } })),
            json!({ "tree": { "name": "a", "children": [{ "name": "b", "children": [] }] } }),
        ),
        (
            object(json!({ "pair": {
                "type": "array", "items": [{ "type": "integer" }, { "type": "string" }],
                "minItems": 2, "maxItems": 2,
            } })),
            json!({ "pair": [1, "b"] }),
        ),
        (
            object(json!({ "kind": { "anyOf": [{ "enum": ["a", "b"] }, custom] } })),
            json!({ "kind": { "custom": "c", "reason": "It is neither." } }),
        ),
        (
            object(json!({ "label": { "enum": ["a", "b"] } })),
            json!({ "label": "a", "extensions": { "insights": [{ "text": "x", "suggested_mapping": "label" }] } }),
        ),
    ]
}

/// Returns a module with these data and a required rationale.
fn module_of(data: &serde_json::Value) -> tempfile::TempDir {
    let directory = directory(
        "Answer.",
        &["overflow: {enabled: true, recoverable: true}", "enums: {strategy: extensible}"],
    );
    let mut data = data.clone();
    data["required"] = json!(["rationale"]);
    data["properties"]["rationale"] = json!({ "type": "string" });
    let tree = json!({
        "type": "object", "required": ["name", "children"],
        "properties": {
            "name": { "type": "string" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
        },
    });
    let input = json!({ "type": "object" });
    let schema = json!({ "input": input, "data": data, "$defs": { "Tree": tree } });
    write(&directory, "schema.json", &schema.to_string());
    directory
}

/// Returns the replies of a model that gives this answer in a form.
fn replies_in(form: &Form, data: &serde_json::Value) -> Vec<String> {
    let mut complete = data.clone();
    complete["rationale"] = json!("It was asked.");
    match (form.is_data(), form.rationale) {
        (true, cog_spec::RationalePlace::Afterwards) => vec![data.to_string(), EXPLAINED.to_owned()],
        (true, _) => vec![complete.to_string()],
        (false, _) => {
            let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "Yes." });
            vec![json!({ "ok": true, "meta": meta, "data": complete, "error": null }).to_string()]
        }
    }
}

/// Streams a run, checks that the chunks give the envelope of a run at once, and returns that.
async fn run_both_ways(directory: &tempfile::TempDir, form: &'static Form, replies: &[String]) -> Envelope {
    let all = || replies.iter().map(String::as_str);
    let provider = Scripted::replying_in_turn(all()).with_dialect(Dialect::LlamaCpp);
    let (provider, runtime, module) = runtime_with(provider, directory);
    let chunks = runtime.stream(&module, sample_input(), asked(form)).unwrap();
    let chunks: Vec<Chunk> = chunks.collect().await;
    let ends = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Final { .. } | Chunk::Error { .. }));
    assert_eq!(ends.count(), 1, "{form}");
    assert_eq!(provider.requests().len(), replies.len(), "{form}");
    assert_eq!(provider.requests()[0].output.as_ref().unwrap().form, form);
    let streamed = cog_answer::fold(chunks);

    let provider = Scripted::replying_in_turn(all()).with_dialect(Dialect::LlamaCpp);
    let (_, runtime, module) = runtime_with(provider, directory);
    let envelope = runtime.run(&module, sample_input(), asked(form)).await;
    assert_eq!(streamed.data().map(Value::to_string), envelope.data().map(Value::to_string), "{form}");
    envelope
}

#[tokio::test]
async fn hard_data_leave_as_they_are_in_every_form() {
    for (schema, data) in hard_cases() {
        let directory = module_of(&schema);
        for form in Form::ALL {
            let envelope = run_both_ways(&directory, form, &replies_in(form, &data)).await;
            assert!(envelope.is_ok(), "{form} {schema}: {:?}", envelope.error());
            let mut left: serde_json::Value =
                serde_json::from_str(&envelope.data().unwrap().to_string()).unwrap();
            assert_eq!(left["rationale"], "It was asked.", "{form}");
            left.as_object_mut().unwrap().remove("rationale");
            assert_eq!(left, data, "{form}");
        }
    }
}

#[tokio::test]
async fn reply_is_repaired_and_asked_for_again_in_every_form() {
    let data = json!({ "label": "a" });
    let directory =
        module_of(&json!({ "type": "object", "properties": { "label": { "enum": ["a", "b"] } } }));
    for form in Form::ALL {
        let replies = replies_in(form, &data);
        let mut fenced = replies.clone();
        fenced[0] = format!("```json\n{}\n```", fenced[0]);
        let envelope = run_both_ways(&directory, form, &fenced).await;
        assert!(envelope.is_ok(), "{form}: {:?}", envelope.error());
        assert!(envelope.to_json().contains("code_fence"), "{form}: {}", envelope.to_json());

        let wrong = replies_in(form, &json!({ "label": 7 })).swap_remove(0);
        let again: Vec<String> = [vec![wrong], replies].concat();
        let envelope = run_both_ways(&directory, form, &again).await;
        assert!(envelope.is_ok(), "{form}: {:?}", envelope.error());
        assert_eq!(envelope.meta.runtime.attempts, Some(2), "{form}");
    }
}

#[tokio::test]
async fn text_that_reaches_the_bound_of_a_local_engine_is_cut() {
    let directory = directory("Answer.", &[]);
    let reply = |length: usize| json!({ "result": "x".repeat(length), "rationale": "r" }).to_string();
    for (length, expected) in [(1_998, None), (1_999, Some("E2003"))] {
        let provider = Scripted::replying(&reply(length)).with_dialect(Dialect::LlamaCpp);
        let (_, runtime, module) = runtime_with(provider, &directory);
        let options = RunOptions { max_attempts: Some(1), ..asked(Form::DATA) };
        let envelope = runtime.run(&module, sample_input(), options).await;
        assert_eq!(code(&envelope), expected);
        let hint = envelope.error().and_then(|error| error.suggestion.as_deref()).unwrap_or_default();
        assert!(expected.is_none() || hint.contains("`maxLength`"), "{hint}");
    }
}

#[tokio::test]
async fn grammar_follows_the_form_and_bounds_the_answer() {
    let (_, requests) = run(&[r#"{"result": "fine"}"#, EXPLAINED], &[], RunOptions::default()).await;
    let grammars: Vec<_> =
        requests.iter().map(|one| one.output.as_ref().unwrap().grammar.clone().unwrap()).collect();
    let [first, second] = grammars.as_slice() else { panic!("{grammars:?}") };
    assert!(first.text.contains(r#""\"result\": ""#) && !first.text.contains("rationale"), "{}", first.text);
    assert!(second.text.contains(r#""\"rationale\": ""#), "{}", second.text);
    // A free text has the usual limit, and 600 characters less.
    assert_eq!(first.max_tokens, 4_096);
    assert!(second.max_tokens < 4_096, "{}", second.max_tokens);
}

/// Returns the form in which a module is asked that was measured for this model of the provider `scripted`, and its answer. The
/// prompt is replaced after the measurement.
async fn form_after_measuring(model: &str, prompt: &str) -> (&'static Form, Envelope) {
    let directory = directory("Answer.", &[]);
    let module = cog_module::load(&cog_module::Origin::Directory(directory.path().to_owned())).unwrap();
    let (provider, model) = ("scripted".to_owned(), model.to_owned());
    module.keep_form(BestForm { provider, model, form: Form::DATA, cases: 20, right: 18 }).unwrap();
    write(&directory, "prompt.md", prompt);
    let data = r#"{"result": "fine", "rationale": "It was asked."}"#;
    let provider = Scripted::replying_in_turn([data, data]).with_dialect(Dialect::LlamaCpp);
    let (provider, runtime, module) = runtime_with(provider, &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    (provider.requests()[0].output.as_ref().unwrap().form, envelope)
}

#[tokio::test]
async fn measured_form_is_used_for_its_model_and_prompt_only() {
    let (form, envelope) = form_after_measuring("one", "Answer.").await;
    assert_eq!((form, envelope.warnings.len()), (Form::DATA, 0), "{:?}", envelope.warnings);
    let (form, envelope) = form_after_measuring("another", "Answer.").await;
    assert_eq!((form, envelope.warnings.len()), (Form::ANSWER, 0), "{:?}", envelope.warnings);
    let (form, envelope) = form_after_measuring("one", "Answer well.").await;
    assert_eq!(form, Form::ANSWER);
    let [warning] = envelope.warnings.as_slice() else { panic!("{:?}", envelope.warnings) };
    assert_eq!(warning.code.as_str(), "W4025");
    assert!(warning.message.contains("before the prompt or the schema changed"), "{}", warning.message);
}

#[tokio::test]
async fn forms_of_a_run_have_the_one_in_use_and_reasons() {
    let directory = directory("Answer.", &["constraints: {require_confidence: true}"]);
    let (_, runtime, module) = runtime_with(Scripted::replying_in_turn([""]), &directory);
    let found = runtime.forms(&module, sample_input(), RunOptions::default()).unwrap();
    assert_eq!((found.in_use, found.is_named), (Form::ENVELOPE, false));
    let possible: Vec<_> =
        found.forms.iter().filter(|it| it.obstacle.is_none()).map(|it| it.form.name).collect();
    assert_eq!(possible, ["envelope", "envelope-data-first"]);
    assert!(found.forms[2].obstacle.unwrap().contains("requires a confidence"));
    let named = runtime.forms(&module, sample_input(), asked(Form::ENVELOPE)).unwrap();
    assert!(named.is_named);
    let offline = cog_run::Runtime::offline();
    let refused = offline.forms(&module, sample_input(), RunOptions::default()).unwrap_err();
    assert_eq!(refused.code.as_str(), "E4001");
}
