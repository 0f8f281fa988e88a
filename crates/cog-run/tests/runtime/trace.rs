//! The recorded messages of a run and their metadata.

use std::sync::Arc;

use cog_harmony::{Message, Metadata, Role};
use cog_provider::{Provider, ProviderError};
use cog_run::{Providers, RunContext, RunOptions, Runtime, events::Trace, tools::ToolOutput};
use cog_spec::{Amount, Chunk, Code, Cost, ErrorBody, FinishReason, ModelEvent, Usage};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::{
    support::{ANSWER, Scripted, directory, run_in, runtime_with, sample_input},
    tools::script::{Setup, calls, info},
};

fn usage(input_tokens: u64, output_tokens: u64) -> ModelEvent {
    ModelEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() })
}

fn reply(text: &str, input_tokens: u64) -> Vec<ModelEvent> {
    let fingerprint = Some("fp_1".to_owned());
    vec![
        ModelEvent::Started { model: None, id: None, fingerprint },
        ModelEvent::Text(text.to_owned()),
        usage(input_tokens, 10),
        ModelEvent::Finished(FinishReason::Stop),
    ]
}

fn metadata(message: &Message) -> Metadata {
    Metadata::read(message.metadata.as_ref().unwrap()).unwrap()
}

fn roles(messages: &[Message]) -> Vec<Role> {
    messages.iter().map(|message| message.role).collect()
}

/// Returns the tokens of all messages, and their cost if each is known.
fn sum(messages: &[Message]) -> (u64, u64, Option<Amount>) {
    let all = messages.iter().map(metadata).filter(|metadata| metadata.token_usage.is_some());
    all.fold((0, 0, Some(Amount::default())), |(input, output, cost), metadata| {
        let tokens = metadata.token_usage.unwrap();
        assert_eq!(tokens.total_cost_usd, metadata.cost.map(|cost| cost.amount.as_f64()));
        (
            input + tokens.prompt_tokens.unwrap_or(0),
            output + tokens.completion_tokens.unwrap_or(0),
            cost.zip(metadata.cost).map(|(sum, one)| sum.plus(one.amount)),
        )
    })
}

fn reported(usage: &Usage) -> (u64, u64, Option<Amount>) {
    (usage.input_tokens, usage.output_tokens, usage.cost.map(|cost: Cost| cost.amount))
}

/// Returns a message without its times and its session, which differ between runs.
fn timeless(message: Message) -> Message {
    let mut metadata = metadata(&message);
    metadata.session_id = None;
    metadata.latency_ms = None;
    Message { metadata: Some(metadata.to_value()), created_at: None, ..message }
}

#[tokio::test]
async fn trace_is_the_same_in_sync_and_stream() {
    let directory = directory("Answer.", &[]);
    let provider = Scripted::new([reply(ANSWER, 1_000)]).priced("openai", "gpt-6-luna");
    let (_, runtime, module) = runtime_with(provider, &directory);
    let (sync, stream) = (Trace::default(), Trace::default());
    let options = |trace: &Trace| RunOptions {
        events: vec![Arc::new(trace.clone())],
        trace_id: Some("t-1".to_owned()),
        ..RunOptions::default()
    };
    let mut context = RunContext::default();
    context.session_id = Some("s-1".to_owned());
    let envelope = run_in(&runtime, &module, options(&sync), context.clone()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let chunks = runtime.prepare(&module, sample_input(), options(&stream), context).unwrap();
    let chunks: Vec<Chunk> = chunks.collect().await;
    assert!(matches!(chunks.last(), Some(Chunk::Final { .. })));
    let messages = sync.messages().0;
    assert_eq!(roles(&messages), [Role::System, Role::User, Role::Assistant]);
    assert_eq!(messages[2].text(), ANSWER);
    for message in &messages {
        let metadata = metadata(message);
        assert_eq!(
            (metadata.session_id.as_deref(), metadata.trace_id.as_deref()),
            (Some("s-1"), Some("t-1"))
        );
        assert!(message.created_at.is_some_and(|time| time > 1e9));
    }
    let answer = metadata(&messages[2]);
    assert_eq!(answer.model_version.as_deref(), Some("gpt-6-luna"));
    assert_eq!(answer.system_fingerprint.as_deref(), Some("fp_1"));
    assert_eq!(answer.safety_check, Some(cog_harmony::SafetyCheck::default()));
    let latency = answer.latency_ms.unwrap();
    assert!(latency.ttft.is_some_and(|ttft| ttft <= latency.total_time));
    assert_eq!(sum(&messages), reported(&envelope.meta.runtime.usage.unwrap()));
    let timeless = |messages: Vec<Message>| messages.into_iter().map(timeless).collect::<Vec<_>>();
    assert_eq!(timeless(messages), timeless(stream.messages().0));
}

#[tokio::test]
async fn trace_contains_every_attempt() {
    let directory = directory("Answer.", &[]);
    let wrong = ANSWER.replace("\"fine\"", "1");
    let provider = Scripted::new([reply(&wrong, 1_000), reply(ANSWER, 2_000)]);
    let (_, runtime, module) = runtime_with(provider.priced("openai", "gpt-6-luna"), &directory);
    let trace = Trace::default();
    let options = RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
    let messages = trace.messages().0;
    let expected = [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant];
    assert_eq!(roles(&messages), expected);
    assert_eq!((messages[2].text(), messages[4].text()), (wrong, ANSWER.to_owned()));
    let sum = sum(&messages);
    assert_eq!(sum, reported(&envelope.meta.runtime.usage.unwrap()));
    assert!(sum.0 == 3_000 && sum.2.is_some(), "{sum:?}");
}

#[tokio::test]
async fn trace_contains_calls_results_and_the_tokens_of_tools() {
    let add = info("add").function(async |_, _| {
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        let mut output = ToolOutput::from(json!({ "sum": 3 }));
        output.usage = Some(usage);
        Ok(output)
    });
    let mut round = calls(&[("call_1", "add", r#"{"a": 1, "b": 2}"#)]);
    round.insert(1, usage(100, 5));
    let setup = Setup::new(&["add"], [round, reply(ANSWER, 200)]).tool(add);
    let trace = Trace::default();
    let envelope =
        setup.run_with(RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() }).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let messages = trace.messages().0;
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant];
    assert_eq!(roles(&messages), expected);
    assert_eq!(messages[2].tool_calls[0].id, "call_1");
    assert_eq!(messages[3].tool_call_id.as_deref(), Some("call_1"));
    let tool = metadata(&messages[3]);
    assert_eq!(tool.token_usage.unwrap().prompt_tokens, Some(7));
    assert!(tool.latency_ms.is_some() && tool.session_id.is_some());
    assert_eq!(sum(&messages), reported(&envelope.meta.runtime.usage.unwrap()));
}

/// Two calls at the same time: each result has the time of its own end.
#[tokio::test]
async fn result_has_the_time_at_which_its_call_ended() {
    let first = Arc::new(tokio::sync::Notify::new());
    let ended = Arc::clone(&first);
    let quick = info("quick").function(move |_, _| {
        ended.notify_one();
        async { Ok(json!({})) }
    });
    let slow = info("slow").function(move |_, _| {
        let first = Arc::clone(&first);
        async move {
            first.notified().await;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            Ok(json!({}))
        }
    });
    let arguments = r#"{"a": 1, "b": 2}"#;
    let round = calls(&[("call_1", "quick", arguments), ("call_2", "slow", arguments)]);
    let setup = Setup::new(&["quick", "slow"], [round, reply(ANSWER, 200)]).tool(quick).tool(slow);
    let trace = Trace::default();
    let envelope =
        setup.run_with(RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() }).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let messages = trace.messages().0;
    assert!(messages[3].created_at < messages[4].created_at, "{messages:?}");
}

#[tokio::test]
async fn trace_after_a_fallback_is_that_of_the_next_provider() {
    let directory = directory("Answer.", &[]);
    let down = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    };
    let second = Scripted::new([reply(ANSWER, 1_000)]).named("two");
    let order: Vec<Arc<dyn Provider>> = vec![
        Arc::new(Scripted::failing(down).named("one")),
        Arc::new(second.priced("anthropic", "claude-sonnet-5-5")),
    ];
    let unknown = |name: &str| Err(ErrorBody::new(Code::UnsupportedValue, name.to_owned()));
    let runtime = Runtime::builder().providers(Providers::new(order, unknown)).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let trace = Trace::default();
    let envelope = runtime
        .run(
            &module,
            sample_input(),
            RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() },
        )
        .await;
    let messages = trace.messages().0;
    assert_eq!(roles(&messages), [Role::System, Role::User, Role::Assistant]);
    assert_eq!(metadata(&messages[2]).model_version.as_deref(), Some("claude-sonnet-5-5"));
    let sum = sum(&messages);
    assert_eq!(sum, reported(&envelope.meta.runtime.usage.unwrap()));
    assert!(sum.2.is_some(), "{sum:?}");
}

#[tokio::test]
async fn refusals_and_filtered_replies_are_flagged() {
    for (reason, category) in [
        (FinishReason::ContentFilter, "content_filter"),
        (FinishReason::Refusal(Some("No.".to_owned())), "refusal"),
    ] {
        let directory = directory("Answer.", &[]);
        let provider = Scripted::new([vec![usage(9, 0), ModelEvent::Finished(reason)]]);
        let (_, runtime, module) = runtime_with(provider, &directory);
        let trace = Trace::default();
        let envelope = runtime
            .run(
                &module,
                sample_input(),
                RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() },
            )
            .await;
        assert!(envelope.error().is_some());
        let last = metadata(trace.messages().0.last().unwrap());
        let check = last.safety_check.unwrap();
        assert_eq!((check.flagged, check.categories), (true, vec![category.to_owned()]));
        assert_eq!(last.token_usage.unwrap().total_cost_usd, None);
        assert_eq!(last.latency_ms.unwrap().ttft, None);
    }
}
