//! Limits of rounds, calls, time, size, tokens and cost.

use std::{sync::Arc, time::Duration};

use cog_provider::ProviderError;
use cog_run::{
    Providers, RunOptions,
    provider::{ModelEvent, Provider, ToolChoice, Usage},
    tools::{ToolError, ToolOutput},
};
use cog_spec::{Code, Envelope, ErrorBody, Outcome};
use serde_json::json;

use super::script::{Setup, answer, calls, info, results};
use crate::support::{ANSWER, Scripted, code, sample_input};

/// Returns a run whose model calls a tool again and again.
fn endless() -> Setup {
    let again = calls(&[("", "again", "{}")]);
    Setup::new(&["again"], [again]).tool(info("again").function(async |_, _| Ok("again")))
}

#[tokio::test]
async fn endless_loop_stops_at_the_limit_of_rounds_with_its_calls() {
    let mut setup = endless();
    setup.limits.max_rounds = 3;
    let envelope = setup.run().await;
    let error = envelope.error().unwrap();
    assert_eq!(error.code.as_str(), "E2001");
    let details = error.details.as_ref().unwrap().to_serde();
    assert_eq!(
        (&details["limit"], &details["rounds"], &details["calls"]),
        (&json!("max_rounds"), &json!(3), &json!(3))
    );
    assert_eq!(details["tools"].as_array().unwrap().len(), 3);
    let choices: Vec<_> = setup
        .provider
        .requests()
        .iter()
        .map(|request| request.tools.as_ref().unwrap().choice.clone())
        .collect();
    use ToolChoice::{Auto, None};
    assert_eq!(choices, [Auto, Auto, Auto, None], "after the last round the model must answer");
}

#[tokio::test]
async fn run_that_reaches_a_limit_returns_the_answer_beside_its_calls() {
    let mut again = calls(&[("", "again", "{}")]);
    again.insert(0, ModelEvent::Text(ANSWER.to_owned()));
    let mut setup = Setup::new(&["again"], [again]).tool(info("again").function(async |_, _| Ok("again")));
    setup.limits.max_rounds = 1;
    let envelope = setup.run().await;
    assert_eq!(code(&envelope), Some("E2001"));
    let Outcome::Failure { partial_data, .. } = envelope.outcome else { panic!("it failed") };
    assert_eq!(partial_data.unwrap().to_serde(), json!({ "result": "fine", "rationale": "because" }));
}

#[tokio::test]
async fn request_may_only_lower_the_limits() {
    let mut setup = endless();
    setup.limits.max_rounds = 2;
    let options = |rounds| RunOptions { max_tool_rounds: Some(rounds), ..RunOptions::default() };
    for (rounds, expected) in [(1, 1), (100, 2)] {
        let before = setup.provider.requests().len();
        assert_eq!(code(&setup.run_with(options(rounds)).await), Some("E2001"));
        assert_eq!(setup.provider.requests().len() - before, expected + 1);
    }
}

#[tokio::test]
async fn calls_over_the_limit_are_not_executed() {
    let mut setup = endless();
    setup.limits.max_calls = 2;
    let options = RunOptions { max_tool_calls: Some(5), ..RunOptions::default() };
    let envelope = setup.run_with(options).await;
    let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
    assert_eq!((&details["limit"], &details["calls"]), (&json!("max_calls"), &json!(2)));
}

#[tokio::test]
async fn tokens_over_the_limit_end_the_run() {
    let usage = Usage { input_tokens: 60, output_tokens: 1, ..Usage::default() };
    let mut first = calls(&[("a", "again", "{}")]);
    first.insert(0, ModelEvent::Usage(usage));
    let mut setup = Setup::new(&["again"], [first]).tool(info("again").function(async |_, _| Ok("again")));
    setup.limits.max_tokens = Some(100);
    let envelope = setup.run().await;
    assert_eq!(code(&envelope), Some("E2003"));
    assert_eq!(envelope.meta.runtime.usage.unwrap().input_tokens, 120);
}

#[tokio::test]
async fn cost_over_the_limit_ends_the_run() {
    let usage = Usage { input_tokens: 1_000_000, output_tokens: 1, ..Usage::default() };
    let mut first = calls(&[("a", "again", "{}")]);
    first.insert(0, ModelEvent::Usage(usage));
    let mut setup = Setup::new(&["again"], []).tool(info("again").function(async |_, _| Ok("again")));
    let provider = crate::support::Scripted::new([first]).priced("openai", "gpt-5.4-mini");
    setup.provider = std::sync::Arc::new(provider);
    setup.limits.max_cost = Some(0.000_001);
    let envelope = setup.run().await;
    let error = envelope.error().unwrap();
    assert_eq!(error.details.as_ref().unwrap().to_serde()["limit"], "max_cost", "{error:?}");
}

#[tokio::test]
async fn limit_of_the_cost_requires_a_known_price() {
    let mut setup = endless();
    setup.limits.max_cost = Some(1.0);
    let envelope = setup.run().await;
    assert_eq!(code(&envelope), Some("E4001"));
    let message = &envelope.error().unwrap().message;
    assert!(message.contains("the price of scripted/one is unknown"), "{message}");
    assert!(setup.provider.requests().is_empty());
}

/// Runs the module with these providers in order.
async fn run_in_order<const N: usize>(setup: &Setup, providers: [&Arc<Scripted>; N]) -> Envelope {
    let order = providers.map(|provider| Arc::clone(provider) as Arc<dyn Provider>);
    let unknown = |name: &str| Err(ErrorBody::new(Code::UnsupportedValue, name.to_owned()));
    let runtime = setup.builder().providers(Providers::new(order.into(), unknown)).build().unwrap();
    runtime.run(&setup.module(), sample_input(), RunOptions::default()).await
}

/// Returns the provider and the code of each fallback.
fn fallbacks(envelope: &Envelope) -> Vec<(&str, Code)> {
    let fallbacks = envelope.meta.runtime.fallbacks.iter();
    fallbacks.map(|fallback| (fallback.provider.as_str(), fallback.code)).collect()
}

#[tokio::test]
async fn fallback_without_a_known_price_is_not_called_if_the_cost_is_limited() {
    let down = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    };
    let first = Arc::new(Scripted::failing(down).priced("openai", "gpt-5.4-mini"));
    let unpriced = Arc::new(Scripted::replying(ANSWER).named("unpriced"));
    let priced = Arc::new(Scripted::replying(ANSWER).named("priced").priced("openai", "gpt-5.4-mini"));
    let mut setup = Setup::new(&["again"], []).tool(info("again").function(async |_, _| Ok("again")));
    setup.limits.max_cost = Some(1.0);
    let envelope = run_in_order(&setup, [&first, &unpriced, &priced]).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!((unpriced.requests().len(), priced.requests().len()), (0, 1));
    let down = Code::ProviderUnavailable;
    assert_eq!(fallbacks(&envelope), [("scripted", down), ("unpriced", down)]);
}

#[tokio::test]
async fn results_over_the_context_window_are_sent_to_the_next_provider() {
    let chart = info("chart").function(async |_, _| Ok("bar ".repeat(20_000)));
    let setup = Setup::new(&["chart"], []).tool(chart);
    let small = Scripted::new([calls(&[("", "chart", "{}")])]).named("small");
    let small = Arc::new(small.with_window_of("openai", "gpt-4"));
    let large = Arc::new(Scripted::replying(ANSWER).named("large").with_window_of("openai", "gpt-4.1"));
    let envelope = run_in_order(&setup, [&small, &large]).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!((small.requests().len(), large.requests().len()), (1, 1));
    assert_eq!(fallbacks(&envelope), [("small", Code::InputTooLarge)]);
}

#[tokio::test]
async fn numbers_that_become_unknown_end_the_run_before_a_call() {
    let usage = ModelEvent::Usage(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
    let other = ModelEvent::Started { model: Some("mock-model".to_owned()), id: None, fingerprint: None };
    let unpriced = [vec![other, usage], calls(&[("a", "again", "{}")])].concat();
    let uncounted = calls(&[("a", "again", "{}")]);
    for (reply, limit) in [(unpriced, "max_cost"), (uncounted, "max_tokens")] {
        let never =
            info("again").function(async |_, _| -> Result<&str, ToolError> { panic!("it was called") });
        let mut setup = Setup::new(&["again"], []).tool(never);
        let provider = crate::support::Scripted::new([reply]).priced("openai", "gpt-5.4-mini");
        setup.provider = std::sync::Arc::new(provider);
        match limit {
            "max_cost" => setup.limits.max_cost = Some(1.0),
            _ => setup.limits.max_tokens = Some(1_000),
        }
        let envelope = setup.run().await;
        let error = envelope.error().unwrap();
        assert_eq!(error.code.as_str(), "E2003", "{error:?}");
        assert_eq!(error.details.as_ref().unwrap().to_serde()["limit"], limit);
        assert!(error.message.contains("cannot be determined"), "{}", error.message);
        assert_eq!(setup.provider.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_tool_is_stopped_and_the_model_continues() {
    let mut slow = info("slow");
    slow.timeout = Some(Duration::from_secs(2));
    let slow = slow.function(async |_, _| {
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        Ok("late")
    });
    let setup = Setup::new(&["slow"], [calls(&[("a", "slow", "{}")]), answer()]).tool(slow);
    assert!(setup.run().await.is_ok());
    assert_eq!(results(&setup)[0].1["code"], "E2002");
}

#[tokio::test(start_paused = true)]
async fn deadline_of_the_run_includes_its_tools() {
    let slow = info("slow").function(async |_, _| {
        tokio::time::sleep(Duration::from_secs(50)).await;
        Ok("late")
    });
    let setup = Setup::new(&["slow"], [calls(&[("a", "slow", "{}")]), answer()]).tool(slow);
    let envelope =
        setup.run_with(RunOptions { timeout: Some(Duration::from_secs(5)), ..RunOptions::default() }).await;
    assert_eq!(code(&envelope), Some("E2002"));
}

#[tokio::test]
async fn large_result_is_shortened() {
    let large = info("large").function(async |_, _| Ok("x".repeat(2_000_000)));
    let image = cog_harmony::Part::image_at(format!("data:image/png;base64,{}", "A".repeat(2_000_000)));
    let drawing = info("drawing").function(move |_, _| {
        let image = image.clone();
        async { Ok(ToolOutput { parts: vec![image], ..ToolOutput::default() }) }
    });
    let replies = [calls(&[("a", "large", "{}"), ("b", "drawing", "{}")]), answer()];
    let setup = Setup::new(&["large", "drawing"], replies).tool(large).tool(drawing);
    assert!(setup.run().await.is_ok());
    let sent = results(&setup);
    let text = sent[0].1["result"].as_str().unwrap();
    assert!(text.len() < (1 << 20) + 200 && text.contains("bytes are left out here"), "{}", text.len());
    assert_eq!(sent[1].1["left_out"].as_array().unwrap().len(), 1);
}

/// Returns a PNG of 2048×768, which counts 1,445 tokens at OpenAI: its header is enough.
fn image() -> cog_harmony::Part {
    cog_harmony::Part::image_at("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAACAAAAAMACAIAAAA=")
}

#[tokio::test]
async fn results_over_the_context_window_end_the_run_before_the_next_call() {
    let chart =
        info("chart").function(async |_, _| Ok(ToolOutput { parts: vec![image()], ..ToolOutput::default() }));
    let again = calls(&[("", "chart", "{}"), ("", "chart", "{}"), ("", "chart", "{}")]);
    let mut setup = Setup::new(&["chart"], []).tool(chart);
    let provider = crate::support::Scripted::new([again]).with_window_of("openai", "gpt-4");
    setup.provider = std::sync::Arc::new(provider.accepting_images(&["image/png"]));
    let envelope = setup.run().await;
    let error = envelope.error().unwrap();
    assert_eq!(error.code.as_str(), "E1005", "{error:?}");
    let details = error.details.as_ref().unwrap().to_serde();
    assert_eq!((&details["context_window"], &details["image_tokens"]), (&json!(8192), &json!(6 * 1445)));
    assert!(details["tokens"].as_u64().unwrap() > 6 * 1445, "{details}");
    assert!(error.suggestion.as_ref().unwrap().contains("max_result_bytes"));
    assert_eq!(setup.provider.requests().len(), 2, "nothing was dropped, and the third call was not made");
}
