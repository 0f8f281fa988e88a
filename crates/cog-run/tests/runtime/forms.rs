//! Answers of models that are asked for their data alone (ruling R91).

use std::{sync::Arc, time::Duration};

use cog_harmony::Role;
use cog_module::forms::BestForm;
use cog_run::{AnswerCache, Envelope, RunOptions, Runtime, ToJson as _, events::Trace};
use cog_spec::{Ask, Dialect, FinishReason, Form, Generation, ModelEvent, Risk, Usage};

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
