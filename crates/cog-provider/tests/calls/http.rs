//! Tests of calls over HTTP, against a mock that replies like the vendors.

use std::time::Duration;

use cog_harmony::{Conversation, Message};
use cog_provider::{
    Deadline, HttpProvider, Interruption, ModelRequest, Provider, ProviderError,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{Code, Effort, FinishReason, ModelEvent};
use cog_testkit::{Finish, Mock, Reply, Wire};
use futures_util::StreamExt;
use tokio::task::JoinSet;

use crate::support::{
    KEY, answer, events_of, finish, provider, request_with_grammar, request_with_schema, settings,
    simple_request, until_error, vendor,
};

const ANSWER: &str = "{\"ok\": true, \"note\": \"é漢🙂\"}";

#[tokio::test]
async fn every_protocol_returns_the_answer() {
    for wire in Wire::ALL {
        let reply = Reply::text(ANSWER).reasoning("Let me see.").chunk_size(3).usage(20, 9);
        let mock = Mock::start([reply]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
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
        let headers = mock.requests().remove(0).headers;
        assert!(headers.iter().filter(|(name, _)| name == "accept").count() <= 1, "{headers:?}");
    }
}

#[tokio::test]
async fn model_that_reasons_gets_the_schema_instead_of_a_grammar() {
    const PLAIN: &str = "{% for message in messages %}{{ message.content }}{% endfor %}";
    const REASONING: &str = "{% if add_generation_prompt %}<think>{% endif %}";
    for (template, has_grammar) in [(Some(PLAIN), true), (Some(REASONING), false), (None, false)] {
        let mock = Mock::start([Reply::text("{}")]);
        let mock = template.into_iter().fold(mock, Mock::with_template);
        let vendor = Vendor::by_name("llamacpp").unwrap();
        let provider = HttpProvider::new(vendor, settings(&mock.base_url(Wire::OpenAi))).unwrap();
        let mut request = request_with_grammar(&provider);
        for _ in 0..2 {
            events_of(&provider, &request).await.unwrap();
        }
        for sent in mock.requests() {
            let found =
                ["grammar", "max_tokens", "response_format"].map(|name| sent.body.get(name).is_some());
            assert_eq!(found, [has_grammar, has_grammar, !has_grammar], "{template:?}");
        }
        assert_eq!(mock.request_count(), 2);
        // The caller says that the model is not to reason, so that nobody needs to know its template.
        request.generation.effort = Some(Effort::None);
        events_of(&provider, &request).await.unwrap();
        assert!(mock.requests()[2].body.get("grammar").is_some());
    }
}

#[tokio::test]
async fn server_without_responses_is_named() {
    let mock = Mock::start([Reply::raw("not found").status(404)]);
    let error = until_error(&provider(Wire::OpenAiResponses, &mock), &simple_request()).await.1;
    assert!(matches!(error, ProviderError::WrongInterface { .. }), "{error}");
    assert!(error.suggestion().unwrap().contains("set the protocol of this provider to chat"));
    let error = until_error(&provider(Wire::OpenAi, &mock), &simple_request()).await.1;
    assert!(!error.suggestion().unwrap().contains("protocol"));
}

/// Creates a reply that Gemini continues in another request.
fn to_be_continued(text: &str) -> Reply {
    Reply::text(text).usage(10, 4).finish(Finish::Other("CONTINUATION".to_owned()))
}

#[tokio::test]
async fn reply_is_continued_with_its_token() {
    let mock = Mock::start([
        to_be_continued("{\"ok\": "),
        Reply::error(503, "busy").header("retry-after-ms", "1"),
        to_be_continued("true, "),
        Reply::text("\"n\": 1}").usage(10, 3),
    ]);
    let events = events_of(&provider(Wire::Gemini, &mock), &simple_request()).await.unwrap();
    assert_eq!((answer(&events).as_str(), finish(&events)), ("{\"ok\": true, \"n\": 1}", FinishReason::Stop));
    let started = events.iter().filter(|event| matches!(event, ModelEvent::Started { .. }));
    assert_eq!(started.count(), 1);
    let usage = events.iter().rev().find_map(|event| match event {
        ModelEvent::Usage(usage) => Some((usage.input_tokens, usage.output_tokens)),
        _ => None,
    });
    assert_eq!(usage, Some((30, 11)));
    let bodies: Vec<_> = mock.requests().into_iter().map(|request| request.body).collect();
    let tokens: Vec<_> = bodies.iter().map(|body| body["continuationToken"].as_str()).collect();
    assert_eq!(tokens, [None, Some("bW9jaw=="), Some("bW9jaw=="), Some("bW9jaw==")]);
    assert!(bodies.iter().all(|body| body["contents"] == bodies[0]["contents"]), "{bodies:?}");
}

#[tokio::test]
async fn endless_continuation_ends_as_truncated() {
    let mock = Mock::start([to_be_continued("[1, ")]);
    let events = events_of(&provider(Wire::Gemini, &mock), &simple_request()).await.unwrap();
    assert_eq!((finish(&events), mock.requests().len()), (FinishReason::Length, 17));
    assert_eq!(answer(&events), "[1, ".repeat(17));
}

#[tokio::test]
async fn error_in_continuation_interrupts_the_reply() {
    let mock = Mock::start([to_be_continued("[1, "), Reply::error(400, "token expired")]);
    let (events, error) = until_error(&provider(Wire::Gemini, &mock), &simple_request()).await;
    assert_eq!(answer(&events), "[1, ");
    assert!(error.to_string().contains("token expired"), "{error}");
}

#[tokio::test]
async fn key_is_sent_in_the_vendors_header() {
    for (wire, header, value) in [
        (Wire::OpenAi, "authorization", format!("Bearer {KEY}")),
        (Wire::Anthropic, "x-api-key", KEY.to_owned()),
        (Wire::Gemini, "x-goog-api-key", KEY.to_owned()),
    ] {
        let mock = Mock::start([Reply::text(ANSWER)]);
        events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        let request = mock.requests().remove(0);
        assert_eq!(request.header(header), Some(value.as_str()));
        assert!(!request.path.contains(KEY) && !request.body.to_string().contains(KEY));
        assert!(request.header("user-agent").unwrap().starts_with("cog/"));
    }
}

#[tokio::test]
async fn reply_may_arrive_in_packets_of_any_size() {
    for wire in Wire::ALL {
        for bytes in [1, 7, 4096] {
            let mock = Mock::start([Reply::text(ANSWER).packet_size(bytes)]);
            let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
            assert_eq!(answer(&events), ANSWER, "{} in packets of {bytes}", wire.name());
        }
    }
}

#[tokio::test]
async fn finish_reasons_are_the_same_for_every_vendor() {
    for wire in Wire::ALL {
        let mock = Mock::start([Reply::text("{").finish(Finish::Length)]);
        assert_eq!(
            finish(&events_of(&provider(wire, &mock), &simple_request()).await.unwrap()),
            FinishReason::Length
        );
    }
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let mock = Mock::start([Reply::text("").refusal("No.")]);
        let reason = finish(&events_of(&provider(wire, &mock), &simple_request()).await.unwrap());
        assert_eq!(reason, FinishReason::Refusal(Some("No.".to_owned())), "{}", wire.name());
    }
    for wire in [Wire::OpenAi, Wire::Gemini] {
        let mock = Mock::start([Reply::text("{").finish(Finish::ContentFilter)]);
        assert_eq!(
            finish(&events_of(&provider(wire, &mock), &simple_request()).await.unwrap()),
            FinishReason::ContentFilter
        );
    }
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let retry_soon = |status| Reply::error(status, "busy").header("retry-after-ms", "1");
    for wire in Wire::ALL {
        let mock = Mock::start([retry_soon(503), retry_soon(429), Reply::text(ANSWER)]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 3), "{}", wire.name());
    }
}

#[tokio::test]
async fn retries_are_bounded_and_the_last_error_is_returned() {
    let mock = Mock::start([Reply::error(503, "busy").header("retry-after-ms", "1")]);
    let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
    assert_eq!(mock.requests().len(), 3);
    assert_eq!(error.to_string(), "OpenAI is unavailable: busy (server_error) (503)");
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, true));
}

#[tokio::test]
async fn long_retry_after_is_not_waited_for() {
    let mock = Mock::start([Reply::error(429, "slow down").header("retry-after", "3600")]);
    let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
    assert_eq!(mock.requests().len(), 1);
    assert_eq!((error.code(), error.retry_after()), (Code::RateLimited, Some(Duration::from_secs(3600))));
    assert_eq!(error.suggestion().unwrap(), "Try again in 3600 s.");
}

#[tokio::test]
async fn error_before_the_first_token_is_retried() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let overloaded = Reply::text("").stream_error("Overloaded");
        let mock = Mock::start([overloaded, Reply::text(ANSWER)]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 2));
    }
}

#[tokio::test]
async fn nothing_is_retried_after_the_first_token() {
    for wire in Wire::ALL {
        let mock = Mock::start([Reply::text(ANSWER).stream_error("Overloaded"), Reply::text("another")]);
        let (events, error) = until_error(&provider(wire, &mock), &simple_request()).await;
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 1), "{}", wire.name());
        assert_eq!((error.code(), error.reason()), (Code::StreamInterrupted, Some("provider")));
        assert!(error.to_string().contains("Overloaded"), "{error}");
    }
}

#[tokio::test]
async fn interrupted_connection_returns_the_events_so_far() {
    for wire in Wire::ALL {
        let complete = wire.stream(&Reply::text(ANSWER).chunk_size(4)).concat().len();
        let pause = Duration::from_millis(5);
        let mock =
            Mock::start([Reply::text(ANSWER).chunk_size(4).interrupt_after(complete * 3 / 4).pause(pause)]);
        let (events, error) = until_error(&provider(wire, &mock), &simple_request()).await;
        assert!(ANSWER.starts_with(&answer(&events)) && !answer(&events).is_empty(), "{}", wire.name());
        assert!(matches!(error, ProviderError::Interrupted { by: Interruption::Network, .. }), "{error:?}");
        assert_eq!((error.code(), mock.requests().len()), (Code::StreamInterrupted, 1));
    }
}

#[tokio::test]
async fn rejected_key_is_not_shown_and_its_variable_is() {
    for status in [401, 403] {
        let mock = Mock::start([Reply::error(status, format!("Incorrect API key provided: {KEY}."))]);
        let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
        assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, false));
        let text = format!("{error} {error:?} {:?}", error.suggestion());
        assert!(text.contains("OPENAI_API_KEY") && !text.contains("canary"), "{text}");
        assert_eq!(mock.requests().len(), 1);
    }
}

#[tokio::test]
async fn missing_key_is_reported_before_the_call() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let mut settings = settings(&mock.base_url(Wire::OpenAi));
    settings.key = None;
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    let error = events_of(&provider, &simple_request()).await.unwrap_err();
    assert_eq!(error.to_string(), "OpenAI requires an API key, but OPENAI_API_KEY is not set");
    assert!(mock.requests().is_empty());
}

#[tokio::test]
async fn errors_have_their_codes() {
    for (reply, code, text) in [
        (
            Reply::error(404, "The model `x` does not exist"),
            Code::ProviderUnavailable,
            "does not know the model `a-model`",
        ),
        (
            Reply::error(400, "Invalid schema for response_format"),
            Code::ProviderUnavailable,
            "rejected the request (400)",
        ),
        (
            Reply::error(400, "maximum context length is 8192 tokens"),
            Code::ContextOverflow,
            "exceeds the context window of `a-model`",
        ),
        (
            Reply::error(429, "You exceeded your current quota"),
            Code::RateLimited,
            "the quota of the OpenAI account is used up",
        ),
        (
            Reply::raw("not found").status(404),
            Code::ProviderUnavailable,
            "is not an API of OpenAI: it returned 404, not found",
        ),
        (
            Reply::raw("").status(302).header("location", "https://e.org/login?token=1"),
            Code::ProviderUnavailable,
            "a redirect to https://e.org/login",
        ),
        (Reply::raw("<html><title>Sign in</title>"), Code::ProviderUnavailable, "a web page: Sign in"),
        (Reply::raw("data: {nope}\n\n"), Code::ParseError, "not valid JSON"),
        (Reply::raw("hello there"), Code::ParseError, "begins with `hello there`"),
    ] {
        let mock = Mock::start([reply]);
        let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!((error.code(), mock.requests().len()), (code, 1), "{error}");
    }
}

#[tokio::test]
async fn empty_reply_is_retried() {
    let mock = Mock::start([Reply::raw(""), Reply::text(ANSWER)]);
    assert_eq!(answer(&events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap()), ANSWER);
    let mock = Mock::start([Reply::raw("")]);
    let mut settings = settings(&mock.base_url(Wire::OpenAi));
    settings.retries = 0;
    let provider = HttpProvider::new(vendor(Wire::OpenAi), settings).unwrap();
    let error = events_of(&provider, &simple_request()).await.unwrap_err();
    assert_eq!((error.code(), error.reason()), (Code::StreamInterrupted, Some("provider")));
}

#[tokio::test]
async fn refused_connection_names_the_url() {
    let closed = Mock::start([]).base_url(Wire::Ollama);
    let mut settings = settings(&closed);
    settings.retries = 0;
    let provider = HttpProvider::new(vendor(Wire::Ollama), settings).unwrap();
    let error = events_of(&provider, &simple_request()).await.unwrap_err();
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, true));
    let text = error.to_string();
    assert!(text.contains(&closed) && text.to_lowercase().contains("refused"), "{text}");
    assert!(error.suggestion().unwrap().contains("`ollama serve`"));
}

#[tokio::test]
async fn missing_model_of_a_local_server_names_the_command_that_downloads_it() {
    let mock = Mock::start([Reply::error(404, "model 'a-model' not found")]);
    let error = events_of(&provider(Wire::Ollama, &mock), &simple_request()).await.unwrap_err();
    assert!(error.suggestion().unwrap().contains("`ollama pull a-model`"), "{error}");
    let mock = Mock::start([Reply::error(404, "model 'a-model' not found")]);
    let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
    assert!(!error.suggestion().unwrap().contains("ollama"), "{error}");
}

#[tokio::test]
async fn each_deadline_ends_the_call() {
    let short = Duration::from_millis(60);
    let cases = [
        (Reply::text(ANSWER).delay(Duration::from_secs(60)), Deadline::FirstToken),
        (Reply::text(ANSWER).pause(Duration::from_secs(60)).chunk_size(4), Deadline::Idle),
    ];
    for (reply, deadline) in cases {
        let mock = Mock::start([reply]);
        let mut settings = settings(&mock.base_url(Wire::Ollama));
        (settings.first_token_timeout, settings.idle_timeout) = (short, short);
        let provider = HttpProvider::new(vendor(Wire::Ollama), settings).unwrap();
        let (_, error) = until_error(&provider, &simple_request()).await;
        assert!(
            matches!(error, ProviderError::Timeout { deadline: found, .. } if found == deadline),
            "{error:?}"
        );
        assert_eq!(error.code(), Code::StreamTimeout);
    }
    let mock = Mock::start([Reply::text(ANSWER).pause(Duration::from_secs(60)).chunk_size(4)]);
    let mut request = simple_request();
    request.timeout = Some(short);
    let (_, error) = until_error(&provider(Wire::Ollama, &mock), &request).await;
    assert_eq!(error.to_string(), "the call to Ollama took longer than 60 ms");
}

async fn send_a_large_request() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let settings = ProviderSettings { block_in_place: true, ..settings(&mock.base_url(Wire::Ollama)) };
    let provider = HttpProvider::new(vendor(Wire::Ollama), settings).unwrap();
    let text = "x".repeat(300 << 10);
    let request = ModelRequest::new(Conversation::new([Message::user(&text)]));
    events_of(&provider, &request).await.unwrap();
    assert!(mock.requests().remove(0).body.to_string().contains(&text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_request_is_sent_from_a_runtime_with_several_threads() {
    let mut worker = JoinSet::from_iter([send_a_large_request()]);
    worker.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn large_request_is_sent_from_a_runtime_with_one_thread() {
    send_a_large_request().await;
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mock = Mock::start([Reply::text(ANSWER).hang()]);
    let provider = provider(Wire::Anthropic, &mock);
    let request = simple_request();
    let mut stream = provider.call(&request).await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    assert_eq!(mock.interrupted(), 0);
    drop(stream);
    while mock.interrupted() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn rejects_answer_over_eight_megabytes() {
    const LIMIT: usize = 8 << 20;
    let mock = Mock::start([Reply::text("x".repeat(LIMIT)).chunk_size(1 << 20)]);
    assert_eq!(
        answer(&events_of(&provider(Wire::Ollama, &mock), &simple_request()).await.unwrap()).len(),
        LIMIT
    );
    let mock = Mock::start([Reply::text("x".repeat(LIMIT + 1)).chunk_size(1 << 20)]);
    let (_, error) = until_error(&provider(Wire::Ollama, &mock), &simple_request()).await;
    assert_eq!(error.to_string(), "the reply of Ollama has more than 8388608 bytes");
}

#[tokio::test]
async fn request_with_schema_is_not_streamed_if_the_vendor_cannot() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let settings = settings(&mock.base_url(Wire::OpenAi));
    let groq = Vendor::by_name("groq").unwrap();
    let provider = HttpProvider::new(groq, settings).unwrap();
    assert_eq!(answer(&events_of(&provider, &request_with_schema(&provider)).await.unwrap()), ANSWER);
    assert_eq!(mock.requests()[0].body["stream"], false);
}

#[tokio::test]
async fn lists_the_models_of_a_vendor() {
    for wire in Wire::ALL {
        let mock = Mock::start([]);
        let models = provider(wire, &mock).models().await.unwrap();
        assert!(models[0].is_named("mock-model"), "{}: {models:?}", wire.name());
        let is_documented = matches!(wire, Wire::Anthropic | Wire::Gemini);
        assert_eq!(models[0].max_input_tokens.is_some(), is_documented, "{}", wire.name());
    }
}

#[tokio::test]
async fn only_the_vendors_own_program_identifies_itself() {
    let mock = Mock::start([]);
    let ollama = provider(Wire::Ollama, &mock);
    assert_eq!(ollama.identify().await.unwrap()[0].name, "mock-model:latest");
    assert_eq!(provider(Wire::OpenAi, &mock).identify().await, None);
    let nothing = HttpProvider::new(ollama.vendor(), settings("http://127.0.0.1:1")).unwrap();
    assert_eq!(nothing.identify().await, None);
}

#[tokio::test]
async fn reuses_connection() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let provider = provider(Wire::OpenAi, &mock);
    for _ in 0..20 {
        events_of(&provider, &simple_request()).await.unwrap();
    }
    assert!(mock.requests().windows(2).any(|pair| pair[0].peer == pair[1].peer));
}
