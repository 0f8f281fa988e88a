//! The cost of a run.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use cog_media::{Delivery, Media, StoredUrl, UrlStore};
use cog_module::Module;
use cog_provider::{
    Deadline, HttpProvider, Provider, ProviderError,
    vendors::{ModelPrice, ProviderSettings, Vendor},
};
use cog_run::{Budget, BudgetLimits, Providers, RunOptions, Runtime};
use cog_spec::{Amount, Chunk, Code, Cost, ErrorBody, FinishReason, ModelEvent, ModelMedia, Usage};
use futures_util::StreamExt as _;
use tokio::runtime::Handle;

use crate::{
    media_out,
    support::{ANSWER, Scripted, directory, runtime_with, sample_input},
};

fn reply(text: &str, usage: Option<Usage>) -> Vec<ModelEvent> {
    let usage = usage.map(ModelEvent::Usage);
    let text = ModelEvent::Text(text.to_owned());
    [Some(text), usage, Some(ModelEvent::Finished(FinishReason::Stop))].into_iter().flatten().collect()
}

fn tokens(input_tokens: u64, output_tokens: u64) -> Option<Usage> {
    Some(Usage { input_tokens, output_tokens, ..Usage::default() })
}

/// Returns the cost of a run, which is the same as sync and as stream.
async fn cost_of(provider: Scripted) -> Option<Cost> {
    let directory = directory("Answer.", &[]);
    let (_, runtime, module) = runtime_with(provider, &directory);
    let stream = runtime.stream(&module, sample_input(), RunOptions::default()).unwrap();
    let chunks: Vec<_> = stream.collect().await;
    assert!(matches!(chunks.last(), Some(Chunk::Final { .. })), "{chunks:?}");
    let streamed = chunks.into_iter().find_map(|chunk| match chunk {
        Chunk::Final { usage, .. } => usage?.cost,
        _ => None,
    });
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(envelope.meta.runtime.usage.and_then(|usage| usage.cost), streamed);
    streamed
}

async fn amount_of(provider: Scripted) -> Option<f64> {
    cost_of(provider).await.map(|cost| cost.amount.as_f64())
}

fn priced(replies: impl IntoIterator<Item = Vec<ModelEvent>>) -> Scripted {
    Scripted::new(replies).priced("openai", "gpt-6-luna")
}

#[tokio::test]
async fn cost_is_at_the_prices_of_the_model_that_answers() {
    let luna = amount_of(priced([reply(ANSWER, tokens(1_000, 100))])).await;
    assert_eq!(luna, Some(1_000.0 * 0.1e-6 + 100.0 * 0.5e-6));
    let started =
        |model: &str| ModelEvent::Started { model: Some(model.to_owned()), id: None, fingerprint: None };
    let mut other = reply(ANSWER, tokens(1_000, 100));
    other.insert(0, started("gpt-4o"));
    assert!(amount_of(priced([other])).await > luna);
    let mut unknown = reply(ANSWER, tokens(1_000, 100));
    unknown.insert(0, started("mock-model"));
    assert_eq!(amount_of(priced([unknown])).await, None);
}

#[tokio::test]
async fn cost_is_unknown_without_a_list_and_without_counts() {
    assert_eq!(cost_of(Scripted::new([reply(ANSWER, tokens(1_000, 100))])).await, None);
    assert_eq!(cost_of(priced([reply(ANSWER, None)])).await, None);
}

#[tokio::test]
async fn cost_of_generated_media_needs_their_own_count() {
    let image = ModelEvent::Media(ModelMedia {
        media_type: Some("image/png".to_owned()),
        data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
            .to_owned(),
        params: Vec::new(),
    });
    let amount = async |output_image_tokens| {
        let usage = Usage { output_image_tokens, ..tokens(0, 1_300).unwrap() };
        let mut reply = reply(ANSWER, Some(usage));
        reply.insert(1, image.clone());
        amount_of(Scripted::new([reply]).priced("google", "gemini-2.5-flash-image")).await
    };
    assert_eq!(amount(None).await, None);
    assert_eq!(amount(Some(1_290)).await, Some((1_290.0 * 30.0 + 10.0 * 2.5) / 1e6));
}

#[tokio::test]
async fn cost_of_a_retry_is_that_of_both_attempts() {
    let wrong = ANSWER.replace("\"fine\"", "1");
    let run = async |first| {
        let directory = directory("Answer.", &[]);
        let replies = [reply(&wrong, first), reply(ANSWER, tokens(2_000, 0))];
        let (_, runtime, module) = runtime_with(priced(replies), &directory);
        let meta = runtime.run(&module, sample_input(), RunOptions::default()).await.meta.runtime;
        assert_eq!(meta.attempts, Some(2));
        meta.usage.unwrap().cost.map(|cost| cost.amount)
    };
    assert_eq!(run(tokens(1_000, 0)).await, Amount::new(0.0003));
    assert_eq!(run(None).await, None);
}

#[tokio::test]
async fn cost_after_a_fallback_is_at_the_prices_of_the_next_provider() {
    let directory = directory("Answer.", &[]);
    let unavailable = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    };
    let second = Scripted::new([reply(ANSWER, tokens(1_000, 0))]).named("two");
    let order: Vec<Arc<dyn Provider>> = vec![
        Arc::new(Scripted::failing(unavailable).priced("openai", "gpt-6-luna").named("one")),
        Arc::new(second.priced("anthropic", "claude-sonnet-5-5")),
    ];
    let unknown = |name: &str| Err(ErrorBody::new(Code::UnsupportedValue, name.to_owned()));
    let runtime = Runtime::builder().providers(Providers::new(order, unknown)).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let meta = runtime.run(&module, sample_input(), RunOptions::default()).await.meta.runtime;
    assert_eq!(meta.usage.unwrap().cost.map(|cost| cost.amount), Amount::new(0.002));
}

#[tokio::test]
async fn call_that_times_out_counts_with_an_estimate() {
    let directory = directory("Answer.", &[]);
    let (deadline, limit) = (Deadline::Total, Duration::from_secs(1));
    let timeout = ProviderError::Timeout { vendor: "One", deadline, limit };
    let rejected = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    };
    for (error, is_estimated) in [(timeout, true), (rejected, false)] {
        let (_, runtime, module) = runtime_with(Scripted::failing(error), &directory);
        let budget = Budget::new("test", BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() });
        let options = RunOptions { budgets: vec![budget.clone()], ..RunOptions::default() };
        assert!(!runtime.run(&module, sample_input(), options).await.is_ok());
        let spent = budget.spent();
        assert_eq!((spent.calls, spent.is_estimated, spent.tokens > 0), (1, is_estimated, is_estimated));
    }
}

fn interrupted() -> ProviderError {
    ProviderError::Interrupted {
        vendor: "One",
        by: cog_provider::Interruption::Network,
        message: "reset".to_owned(),
    }
}

/// Returns the usage of a run that fails.
async fn usage_of_failure(provider: Scripted, options: RunOptions) -> Option<Usage> {
    let directory = directory("Answer.", &[]);
    let (_, runtime, module) = runtime_with(provider, &directory);
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert!(!envelope.is_ok());
    envelope.meta.runtime.usage
}

#[tokio::test(start_paused = true)]
async fn lost_reply_has_estimated_tokens_and_their_cost() {
    let short = RunOptions { timeout: Some(Duration::from_secs(1)), ..RunOptions::default() };
    let half = format!("{{\"ok\": true, \"meta\": {{\"explain\": \"{}", "x".repeat(401));
    let cut = usage_of_failure(priced([vec![ModelEvent::Text(half.clone())]]), RunOptions::default()).await;
    let late = Scripted::hanging(&half).priced("openai", "gpt-6-luna");
    let late = usage_of_failure(late, short).await;
    let early = Scripted::failing(interrupted()).priced("openai", "gpt-6-luna");
    let early = usage_of_failure(early, RunOptions::default()).await;
    for (usage, output) in [(cut, half.len().div_ceil(4)), (late, half.len().div_ceil(4)), (early, 0)] {
        let usage = usage.unwrap();
        assert!(usage.input_tokens > 10, "{usage:?}");
        assert_eq!((usage.output_tokens, usage.uncounted_calls), (output as u64, Some(1)));
        let expected = usage.input_tokens as f64 * 0.1e-6 + output as f64 * 0.5e-6;
        assert!((usage.cost.unwrap().amount.as_f64() - expected).abs() < 1e-11, "{usage:?}");
    }
    let free = usage_of_failure(Scripted::failing(interrupted()), RunOptions::default()).await.unwrap();
    assert_eq!((free.cost, free.uncounted_calls), (None, Some(1)), "no price is known");
    let down = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Network,
        message: "refused".to_owned(),
        retry_after: None,
    };
    let refused = Scripted::failing(down).priced("openai", "gpt-6-luna");
    assert_eq!(usage_of_failure(refused, RunOptions::default()).await, None, "nothing was sent");
}

#[tokio::test]
async fn call_that_is_lost_before_a_fallback_is_paid_for_as_well() {
    let directory = directory("Answer.", &[]);
    let order: Vec<Arc<dyn Provider>> = vec![
        Arc::new(Scripted::failing(interrupted()).priced("openai", "gpt-6-luna").named("one")),
        Arc::new(priced([reply(ANSWER, tokens(1_000, 0))]).named("two")),
    ];
    let unknown = |name: &str| Err(ErrorBody::new(Code::UnsupportedValue, name.to_owned()));
    let runtime = Runtime::builder().providers(Providers::new(order, unknown)).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let budget = Budget::new("test", BudgetLimits { max_calls: Some(9), ..BudgetLimits::default() });
    let options = RunOptions { budgets: vec![budget.clone()], ..RunOptions::default() };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let usage = envelope.meta.runtime.usage.unwrap();
    assert!(usage.input_tokens > 1_010, "{usage:?}");
    assert_eq!((usage.uncounted_calls, budget.spent().tokens), (Some(1), usage.input_tokens));
    assert!(usage.cost.unwrap().amount > Amount::new(0.0001).unwrap());
}

/// Spends a budget on another run while it stores a file: after the check of an answer, before the next attempt.
struct Spender {
    runtime: Runtime,
    module: Arc<Module>,
    budget: Budget,
}

impl UrlStore for Spender {
    fn store(&self, _: Option<&str>, _: &Media) -> Result<StoredUrl, ErrorBody> {
        let options = RunOptions { budgets: vec![self.budget.clone()], ..RunOptions::default() };
        let run = self.runtime.run(&self.module, sample_input(), options);
        assert!(Handle::current().block_on(run).is_ok());
        Ok(StoredUrl { url: "https://shop.test/1".to_owned(), expires_at: "2026-02-04T12:00:00Z".to_owned() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempt_that_another_run_leaves_no_budget_for_reports_the_failure_before_it() {
    let (other, artist) = (directory("Answer.", &[]), media_out::artist(&[]));
    let (_, runtime, module) = runtime_with(Scripted::replying(ANSWER), &other);
    let budget = Budget::new("test", BudgetLimits { max_calls: Some(2), ..BudgetLimits::default() });
    let spender = Spender { runtime, module, budget: budget.clone() };
    let options = RunOptions {
        budgets: vec![budget.clone()],
        delivery: Delivery::Store(Arc::new(spender)),
        ..RunOptions::default()
    };
    let wrong = media_out::ANSWER.replace("\"because\"", "7");
    let events = [vec![media_out::png()], reply(&wrong, tokens(1, 1))].concat();
    let (provider, runtime, module) = runtime_with(Scripted::new([events]), &artist);
    let envelope = runtime.run(&module, sample_input(), options).await;
    let error = envelope.error().unwrap();
    let details = error.details.as_ref().unwrap().to_serde();
    assert_eq!((error.code.as_str(), &details["limit"]), ("E4002", &"max_calls".into()));
    assert_eq!(details["failed"]["code"], "E3001", "{details}");
    assert_eq!((provider.requests().len(), budget.spent().calls), (1, 2));
    assert_eq!(envelope.meta.runtime.attempts, None);
}

#[test]
fn gateway_has_the_prices_that_the_operator_sets() {
    let price = ModelPrice { input: 3.0, output: 9.0, cached_input: None, cache_write: None };
    let settings = ProviderSettings {
        base_url: Some("https://gateway.example/v1".to_owned()),
        prices: [("gpt-*".to_owned(), price)].into_iter().collect(),
        ..ProviderSettings::default()
    };
    let provider = HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap();
    let usage = tokens(1_000_000, 100_000).unwrap();
    let cost = |model| provider.info().cost(model, &usage, UNIX_EPOCH).map(|cost| cost.amount.as_f64());
    assert_eq!((cost("gpt-6-luna"), cost("claude")), (Some(3.9), None));
    let info = provider.info();
    assert!(info.reply_cost("gpt-fast", "claude", &usage, UNIX_EPOCH).is_some(), "the alias of a gateway");
    assert!(info.reply_cost("", "claude", &usage, UNIX_EPOCH).is_some(), "its own model was requested");
    assert_eq!(info.reply_cost("fast", "claude", &usage, UNIX_EPOCH), None);
}

#[test]
fn gateway_has_no_prices() {
    let prices = |base_url: Option<&str>| {
        let settings = ProviderSettings { base_url: base_url.map(str::to_owned), ..Default::default() };
        HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap().info().prices
    };
    assert_eq!(prices(None), Some("openai"));
    assert_eq!(prices(Some("https://eu.api.openai.com/v1")), Some("openai"));
    assert_eq!(prices(Some("https://gateway.example/v1")), None);
}
