//! Tests of calls over HTTP, against a mock that replies like the vendors.

use std::time::Duration;

use cog_provider::{Deadline, HttpProvider, Interruption, Provider, ProviderError, vendors::Vendor};
use cog_spec::{Code, FinishReason, ModelEvent};
use cog_testkit::{Finish, Mock, Reply, Wire};
use futures_util::StreamExt;

use crate::support::{
    KEY, answer, ask, finish, provider, question, settings, until_error, vendor, with_schema,
};

const ANSWER: &str = "{\"ok\": true, \"note\": \"é漢🙂\"}";

#[tokio::test]
async fn every_protocol_brings_the_answer() {
    for wire in Wire::ALL {
        let reply = Reply::text(ANSWER).reasoning("Let me see.").pieces(3).usage(20, 9);
        let mock = Mock::start([reply]);
        let events = ask(&provider(wire, &mock), &question()).await.unwrap();
        assert_eq!(answer(&events), ANSWER, "{}", wire.name());
        assert_eq!(events.last(), Some(&ModelEvent::Finished(FinishReason::Stop)));
        let reasoning = events.iter().filter_map(|event| match event {
            ModelEvent::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(reasoning.collect::<String>(), "Let me see.");
        let usage = events.iter().rev().find_map(|event| match event {
            ModelEvent::Usage(usage) => Some((usage.input_tokens, usage.output_tokens)),
            _ => None,
        });
        assert_eq!(usage, Some((20, 9)), "{}", wire.name());
    }
}

#[tokio::test]
async fn the_key_travels_in_the_vendors_header() {
    for (wire, header, value) in [
        (Wire::OpenAi, "authorization", format!("Bearer {KEY}")),
        (Wire::Anthropic, "x-api-key", KEY.to_owned()),
        (Wire::Gemini, "x-goog-api-key", KEY.to_owned()),
    ] {
        let mock = Mock::start([Reply::text(ANSWER)]);
        ask(&provider(wire, &mock), &question()).await.unwrap();
        let request = mock.requests().remove(0);
        assert_eq!(request.header(header), Some(value.as_str()));
        assert!(!request.path.contains(KEY) && !request.body.to_string().contains(KEY));
        assert!(request.header("user-agent").unwrap().starts_with("cog/"));
    }
}

#[tokio::test]
async fn the_reply_may_come_in_packets_of_any_size() {
    for wire in Wire::ALL {
        for bytes in [1, 7, 4096] {
            let mock = Mock::start([Reply::text(ANSWER).network(bytes)]);
            let events = ask(&provider(wire, &mock), &question()).await.unwrap();
            assert_eq!(answer(&events), ANSWER, "{} in packets of {bytes}", wire.name());
        }
    }
}

#[tokio::test]
async fn reasons_to_stop_have_one_name() {
    for wire in Wire::ALL {
        let mock = Mock::start([Reply::text("{").finish(Finish::Length)]);
        assert_eq!(finish(&ask(&provider(wire, &mock), &question()).await.unwrap()), FinishReason::Length);
    }
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let mock = Mock::start([Reply::text("").refusal("No.")]);
        let reason = finish(&ask(&provider(wire, &mock), &question()).await.unwrap());
        assert_eq!(reason, FinishReason::Refusal(Some("No.".to_owned())), "{}", wire.name());
    }
    for wire in [Wire::OpenAi, Wire::Gemini] {
        let mock = Mock::start([Reply::text("{").finish(Finish::ContentFilter)]);
        assert_eq!(
            finish(&ask(&provider(wire, &mock), &question()).await.unwrap()),
            FinishReason::ContentFilter
        );
    }
}

#[tokio::test]
async fn a_failure_that_passes_is_tried_again() {
    let soon = |status| Reply::error(status, "busy").header("retry-after-ms", "1");
    for wire in Wire::ALL {
        let mock = Mock::start([soon(503), soon(429), Reply::text(ANSWER)]);
        let events = ask(&provider(wire, &mock), &question()).await.unwrap();
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 3), "{}", wire.name());
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_the_last_failure_is_told() {
    let mock = Mock::start([Reply::error(503, "busy").header("retry-after-ms", "1")]);
    let error = ask(&provider(Wire::OpenAi, &mock), &question()).await.unwrap_err();
    assert_eq!(mock.requests().len(), 3);
    assert_eq!(error.to_string(), "OpenAI is unavailable: busy (server_error) (503)");
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, true));
}

#[tokio::test]
async fn too_long_a_wait_is_told_at_once() {
    let mock = Mock::start([Reply::error(429, "slow down").header("retry-after", "3600")]);
    let error = ask(&provider(Wire::OpenAi, &mock), &question()).await.unwrap_err();
    assert_eq!(mock.requests().len(), 1);
    assert_eq!((error.code(), error.retry_after()), (Code::RateLimited, Some(Duration::from_secs(3600))));
    assert_eq!(error.suggestion().unwrap(), "Try again in 3600 s.");
}

#[tokio::test]
async fn a_fault_before_the_first_token_is_tried_again() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let overloaded = Reply::text("").fault("Overloaded");
        let mock = Mock::start([overloaded, Reply::text(ANSWER)]);
        let events = ask(&provider(wire, &mock), &question()).await.unwrap();
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 2));
    }
}

#[tokio::test]
async fn after_the_first_token_nothing_is_tried_again() {
    for wire in Wire::ALL {
        let mock = Mock::start([Reply::text(ANSWER).fault("Overloaded"), Reply::text("another")]);
        let (events, error) = until_error(&provider(wire, &mock), &question()).await;
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 1), "{}", wire.name());
        assert_eq!((error.code(), error.reason()), (Code::StreamInterrupted, Some("provider")));
        assert!(error.to_string().contains("Overloaded"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_what_came() {
    for wire in Wire::ALL {
        let whole = wire.stream(&Reply::text(ANSWER).pieces(4)).concat().len();
        let pause = Duration::from_millis(5);
        let mock = Mock::start([Reply::text(ANSWER).pieces(4).cut(whole * 3 / 4).pause(pause)]);
        let (events, error) = until_error(&provider(wire, &mock), &question()).await;
        assert!(ANSWER.starts_with(&answer(&events)) && !answer(&events).is_empty(), "{}", wire.name());
        assert!(matches!(error, ProviderError::Interrupted { by: Interruption::Network, .. }), "{error:?}");
        assert_eq!((error.code(), mock.requests().len()), (Code::StreamInterrupted, 1));
    }
}

#[tokio::test]
async fn refused_keys_name_their_variable_and_never_show() {
    for status in [401, 403] {
        let mock = Mock::start([Reply::error(status, format!("Incorrect API key provided: {KEY}."))]);
        let error = ask(&provider(Wire::OpenAi, &mock), &question()).await.unwrap_err();
        assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, false));
        let text = format!("{error} {error:?} {:?}", error.suggestion());
        assert!(text.contains("OPENAI_API_KEY") && !text.contains("canary"), "{text}");
        assert_eq!(mock.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_missing_key_is_told_before_the_call() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let mut settings = settings(&mock.base_url(Wire::OpenAi));
    settings.key = None;
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    let error = ask(&provider, &question()).await.unwrap_err();
    assert_eq!(error.to_string(), "OpenAI needs a key: OPENAI_API_KEY is not set");
    assert!(mock.requests().is_empty());
}

#[tokio::test]
async fn faults_have_their_codes() {
    for (reply, code, words) in [
        (
            Reply::error(404, "The model `x` does not exist"),
            Code::ProviderUnavailable,
            "does not know the model `a-model`",
        ),
        (
            Reply::error(400, "Invalid schema for response_format"),
            Code::ProviderUnavailable,
            "refuses the request (400)",
        ),
        (
            Reply::error(400, "maximum context length is 8192 tokens"),
            Code::ContextOverflow,
            "longer than `a-model` can read",
        ),
        (Reply::error(429, "You exceeded your current quota"), Code::RateLimited, "limits the rate"),
        (
            Reply::raw("not found").status(404),
            Code::ProviderUnavailable,
            "is not OpenAI's interface: 404, not found",
        ),
        (
            Reply::raw("").status(302).header("location", "https://e.org/login?token=1"),
            Code::ProviderUnavailable,
            "a redirect to https://e.org/login",
        ),
        (Reply::raw("<html><title>Sign in</title>"), Code::ProviderUnavailable, "a web page: Sign in"),
        (Reply::raw("data: {nope}\n\n"), Code::ParseError, "a piece that is not JSON"),
        (Reply::raw("hello there"), Code::ParseError, "begins with `hello there`"),
    ] {
        let mock = Mock::start([reply]);
        let error = ask(&provider(Wire::OpenAi, &mock), &question()).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!((error.code(), mock.requests().len()), (code, 1), "{error}");
    }
}

#[tokio::test]
async fn an_empty_reply_is_an_interruption_and_is_tried_again() {
    let mock = Mock::start([Reply::raw(""), Reply::text(ANSWER)]);
    assert_eq!(answer(&ask(&provider(Wire::OpenAi, &mock), &question()).await.unwrap()), ANSWER);
    let mock = Mock::start([Reply::raw("")]);
    let mut settings = settings(&mock.base_url(Wire::OpenAi));
    settings.retries = 0;
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    let error = ask(&provider, &question()).await.unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::StreamInterrupted, Some("provider")));
}

#[tokio::test]
async fn nobody_at_the_address_is_told_with_the_address() {
    let gone = Mock::start([]).base_url(Wire::Ollama);
    let mut settings = settings(&gone);
    settings.retries = 0;
    let provider = HttpProvider::new(vendor(Wire::Ollama), settings).unwrap();
    let error = ask(&provider, &question()).await.unwrap_err();
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, true));
    let text = error.to_string();
    assert!(text.contains(&gone) && text.to_lowercase().contains("refused"), "{text}");
}

#[tokio::test]
async fn each_deadline_is_kept() {
    let short = Duration::from_millis(60);
    let cases = [
        (Reply::text(ANSWER).delay(Duration::from_secs(60)), Deadline::FirstToken),
        (Reply::text(ANSWER).pause(Duration::from_secs(60)).pieces(4), Deadline::Idle),
    ];
    for (reply, deadline) in cases {
        let mock = Mock::start([reply]);
        let mut settings = settings(&mock.base_url(Wire::Ollama));
        (settings.first_token_timeout, settings.idle_timeout) = (short, short);
        let provider = HttpProvider::new(vendor(Wire::Ollama), settings).unwrap();
        let (_, error) = until_error(&provider, &question()).await;
        assert!(
            matches!(error, ProviderError::Timeout { deadline: found, .. } if found == deadline),
            "{error:?}"
        );
        assert_eq!(error.code(), Code::StreamTimeout);
    }
    let mock = Mock::start([Reply::text(ANSWER).pause(Duration::from_secs(60)).pieces(4)]);
    let mut request = question();
    request.timeout = Some(short);
    let (_, error) = until_error(&provider(Wire::Ollama, &mock), &request).await;
    assert_eq!(error.to_string(), "Ollama took longer than 60 ms: the call has a time limit");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mock = Mock::start([Reply::text(ANSWER).hang()]);
    let provider = provider(Wire::Anthropic, &mock);
    let request = question();
    let mut stream = provider.call(&request).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    assert_eq!(mock.broken_off(), 0);
    drop(stream);
    while mock.broken_off() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_answer_over_eight_megabytes_is_refused() {
    const LIMIT: usize = 8 << 20;
    let mock = Mock::start([Reply::text("x".repeat(LIMIT)).pieces(1 << 20)]);
    assert_eq!(answer(&ask(&provider(Wire::Ollama, &mock), &question()).await.unwrap()).len(), LIMIT);
    let mock = Mock::start([Reply::text("x".repeat(LIMIT + 1)).pieces(1 << 20)]);
    let (_, error) = until_error(&provider(Wire::Ollama, &mock), &question()).await;
    assert_eq!(error.to_string(), "Ollama sent more than 8388608 bytes");
}

#[tokio::test]
async fn a_vendor_that_does_not_stream_schemas_is_asked_for_a_body() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let settings = settings(&mock.base_url(Wire::OpenAi));
    let groq = Vendor::by_name("groq").unwrap();
    let provider = HttpProvider::new(groq, settings).unwrap();
    assert_eq!(answer(&ask(&provider, &with_schema(&provider)).await.unwrap()), ANSWER);
    assert_eq!(mock.requests()[0].body["stream"], false);
}

#[tokio::test]
async fn the_models_of_a_vendor_are_listed() {
    for wire in Wire::ALL {
        let mock = Mock::start([]);
        assert_eq!(provider(wire, &mock).models().await.unwrap(), ["mock-model"], "{}", wire.name());
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let provider = provider(Wire::OpenAi, &mock);
    for _ in 0..20 {
        ask(&provider, &question()).await.unwrap();
    }
    assert!(mock.requests().windows(2).any(|pair| pair[0].peer == pair[1].peer));
}
