//! Tests of errors that vendors report instead of an answer: with status 200, in their own words, or with what the model
//! wrote.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cog_harmony::{Conversation, Message, Part, Role};
use cog_provider::{
    HttpProvider, Interruption, ModelRequest, OptionalPart, ProviderError, RejectedPart, ReplyHook,
    ToolRequest, vendors::Vendor,
};
use cog_spec::{Code, FinishReason, ModelEvent};
use cog_testkit::{Mock, Reply, Wire};
use serde_json::json;

use crate::support::{
    answer, events_of, finish, provider, request_with_schema, settings, simple_request, until_error,
};

const ANSWER: &str = "{\"ok\": true}";

/// Creates the provider of a vendor's row that calls the mock over Chat Completions.
fn vendor(name: &str, mock: &Mock) -> HttpProvider {
    HttpProvider::new(Vendor::by_name(name).unwrap(), settings(&mock.base_url(Wire::OpenAi))).unwrap()
}

/// Returns the error of a call to a server that sends this body with status 200, and the number of requests.
async fn error_of(wire: Wire, body: &str) -> (ProviderError, usize) {
    let mock = Mock::start([Reply::raw(body)]);
    let error = events_of(&provider(wire, &mock), &simple_request()).await.unwrap_err();
    (error, mock.requests().len())
}

#[tokio::test]
async fn error_in_a_successful_reply_has_the_status_that_it_states() {
    for (body, code, text) in [
        (
            r#"{"error": {"message": "prompt is long", "code": 413}}"#,
            Code::ContextOverflow,
            "exceeds the context window",
        ),
        (
            r#"{"error": {"message": "no such key", "type": "authentication_error"}}"#,
            Code::ProviderUnavailable,
            "rejected the API key in OPENAI_API_KEY: no such key",
        ),
        (
            r#"{"error": {"message": "Pay", "code": "402"}}"#,
            Code::RateLimited,
            "the quota of the OpenAI account is used up: Pay",
        ),
        (
            "event: error\ndata: {\"message\": \"top_k is unknown\", \"type\": \"BadRequestError\"}\n\n",
            Code::ProviderUnavailable,
            "rejected the request (400): top_k is unknown",
        ),
        (
            "error: {\"message\": \"the model m is not here\", \"code\": 404}\n\n",
            Code::ProviderUnavailable,
            "does not know the model `a-model`: the model m is not here",
        ),
        (
            r#"data: {"choices": null, "error_type": "BadRequestError", "error_message": "maximum context length", "error_code": 400}"#,
            Code::ContextOverflow,
            "maximum context length",
        ),
    ] {
        let (error, requests) = error_of(Wire::OpenAi, &format!("{body}\n\n")).await;
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!((error.code(), requests), (code, 1), "{error}");
    }
}

#[tokio::test]
async fn error_of_status_200_is_retried_as_that_of_its_own_status() {
    let busy = Reply::raw(r#"{"error": {"message": "no capacity", "code": 503}}"#);
    let slow = Reply::raw(
        r#"{"error": {"message": "Provider returned error", "code": 500, "metadata": {"raw": "{\"error\": {\"message\": \"slow down, try again in 1ms\", \"code\": 429}}"}}}"#,
    );
    let mock = Mock::start([busy, slow, Reply::text(ANSWER)]);
    let events = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap();
    assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 3));
}

#[tokio::test]
async fn wait_that_only_the_body_names_is_reported_with_the_head() {
    let body = r#"{"error": {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.002s"}]}}"#;
    let limited = Reply::raw(body).status(429);
    let mock = Mock::start([limited.clone(), limited.header("retry-after-ms", "1"), Reply::text(ANSWER)]);
    let heads = Arc::<Mutex<Vec<_>>>::default();
    let all = Arc::clone(&heads);
    let mut request = simple_request();
    request.on_reply =
        Some(ReplyHook::new(move |head| all.lock().unwrap().push((head.status, head.retry_after))));
    events_of(&provider(Wire::Gemini, &mock), &request).await.unwrap();
    let wait = |millis| Some(Duration::from_millis(millis));
    assert_eq!(*heads.lock().unwrap(), [(429, wait(2)), (429, wait(1)), (200, None)]);
}

#[tokio::test]
async fn finish_reason_of_a_failure_is_the_providers_error() {
    let failed = |text: &str, reason: &str| {
        Reply::text(text).chunk_size(4).finish(cog_testkit::Finish::Other(reason.to_owned()))
    };
    for (wire, reason) in [
        (Wire::OpenAi, "error"),
        (Wire::OpenAi, "insufficient_system_resource"),
        (Wire::OpenAi, "function_call_filter: MALFORMED_FUNCTION_CALL"),
        (Wire::Gemini, "UNEXPECTED_TOOL_CALL"),
        (Wire::Ollama, "error"),
        (Wire::Anthropic, "malformed_tool_use"),
        (Wire::OpenAiResponses, "server_error"),
    ] {
        let mock = Mock::start([failed("", reason), failed("", reason), Reply::text(ANSWER)]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 3), "{}", wire.name());

        let mock = Mock::start([failed("{\"ok\": tr", reason), Reply::text(ANSWER)]);
        let (events, error) = until_error(&provider(wire, &mock), &simple_request()).await;
        assert_eq!((answer(&events).as_str(), mock.requests().len()), ("{\"ok\": tr", 1), "{}", wire.name());
        assert!(matches!(error, ProviderError::Interrupted { by: Interruption::Provider, .. }), "{error:?}");
        assert!(error.to_string().ends_with(&format!("it ended with `{reason}`")), "{error}");
        assert!(error.allows_fallback());
    }
    let mock = Mock::start([failed("CUDA out of memory", "error")]);
    let (_, error) = until_error(&provider(Wire::OpenAi, &mock), &simple_request()).await;
    assert!(error.to_string().ends_with("it ended with `error`: CUDA out of memory"), "{error}");
}

#[tokio::test]
async fn finish_reason_of_a_filter_is_a_filter_in_any_words() {
    for (wire, reason) in [
        (Wire::OpenAi, "sensitive"),
        (Wire::OpenAi, "ERROR_TOXIC"),
        (Wire::Anthropic, "guardrail_intervened"),
        (Wire::Gemini, "IMAGE_PROHIBITED_CONTENT"),
    ] {
        let mock = Mock::start([Reply::text("{").finish(cog_testkit::Finish::Other(reason.to_owned()))]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        assert_eq!(finish(&events), FinishReason::ContentFilter, "{reason}");
    }
}

#[tokio::test]
async fn text_that_the_vendor_rejects_is_the_reply_of_the_model() {
    let rejected = |status, body: &str| Reply::raw(body).status(status);
    for (reply, text) in [
        (
            rejected(
                400,
                r#"{"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed", "failed_generation": "{\"ok\":"}}"#,
            ),
            "{\"ok\":",
        ),
        (
            rejected(
                400,
                r#"{"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<function=a>"}}"#,
            ),
            "<function=a>",
        ),
        (
            rejected(
                200,
                "event: error\ndata: {\"error\": {\"message\": \"x\", \"code\": \"json_validate_failed\", \"failed_generation\": \"\"}}\n\n",
            ),
            "",
        ),
    ] {
        let mock = Mock::start([reply]);
        let groq = vendor("groq", &mock);
        let events = events_of(&groq, &request_with_schema(&groq)).await.unwrap();
        assert_eq!((answer(&events).as_str(), finish(&events)), (text, FinishReason::Stop));
        assert_eq!(mock.requests().len(), 1);
    }
}

#[tokio::test]
async fn done_marker_ends_a_reply_of_every_protocol() {
    for wire in Wire::ALL {
        let stream = wire.stream(&Reply::text(ANSWER)).concat();
        let done = if wire == Wire::Ollama { "[DONE]\n" } else { "data: [DONE]\n\n" };
        let mock = Mock::start([Reply::raw(format!("{stream}{done}"))]);
        let events = events_of(&provider(wire, &mock), &simple_request()).await.unwrap();
        assert_eq!(
            (answer(&events).as_str(), finish(&events)),
            (ANSWER, FinishReason::Stop),
            "{}",
            wire.name()
        );
        let count = events.iter().filter(|event| matches!(event, ModelEvent::Finished(_))).count();
        assert_eq!(count, 1, "{}", wire.name());
    }
}

#[tokio::test]
async fn model_that_refuses_media_is_no_bad_request() {
    let image = Part::image_at("data:image/png;base64,iVBORw0KGgo=");
    let with_image = Message::new(Role::User, vec![Part::text("Look."), image]);
    let with_image = ModelRequest::new(Conversation::new([with_image]));
    let mention =
        ModelRequest::new(Conversation::new([Message::user(r#"{"type":"image_url","images":[]}"#)]));
    for wire in [Wire::OpenAi, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini, Wire::Ollama] {
        let mock = Mock::start([Reply::error(400, "This model does not support image input")]);
        let error = events_of(&provider(wire, &mock), &with_image).await.unwrap_err();
        assert!(matches!(error, ProviderError::MediaRejected { .. }), "{}: {error:?}", wire.name());
        assert_eq!((error.code(), error.recoverable()), (Code::MultimodalNotSupported, false));
        assert!(error.allows_fallback());
        let error = events_of(&provider(wire, &mock), &mention).await.unwrap_err();
        assert!(matches!(error, ProviderError::Rejected { .. }), "{}: {error:?}", wire.name());
    }
}

/// Returns the part of the request that the server rejects with this message.
async fn rejected_part(status: u16, message: &str) -> Option<RejectedPart> {
    rejected_part_of(true, status, message).await
}

/// Returns the part of a request, which may have tools together with a schema.
async fn rejected_part_of(has_tools: bool, status: u16, message: &str) -> Option<RejectedPart> {
    let mock = Mock::start([Reply::error(status, message)]);
    let custom = vendor("openrouter", &mock);
    let mut request = request_with_schema(&custom);
    request.tools = has_tools.then(|| Arc::new(ToolRequest { parallel: true, ..ToolRequest::default() }));
    request.generation.max_tokens = Some(700);
    request.generation.stop = vec!["END".to_owned()];
    match events_of(&custom, &request).await.unwrap_err() {
        ProviderError::Rejected { part, .. } => part,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rejected_limit_of_tokens_has_another_name() {
    let renamed = Some(RejectedPart::Name { name: "max_tokens", other: "max_completion_tokens" });
    let left_out = |name| Some(RejectedPart::Field { name, part: OptionalPart::Setting(name) });
    for (message, expected) in [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            renamed,
        ),
        ("Extra inputs are not permitted (body.max_tokens)", renamed),
        ("max_tokens is too large: 700. This model supports at most 100.", left_out("max_tokens")),
        ("'stop' is not supported with this model", left_out("stop")),
        ("Unrecognized request argument supplied: stop", left_out("stop")),
        ("please stop", None),
        ("Invalid schema for response_format 'answer'", Some(RejectedPart::Schema)),
        ("Invalid schema for function 'search': 'oops' is not permitted", None),
        ("tools.0.custom.input_schema: JSON schema is invalid", None),
        ("GenerateContentRequest.tools[0].function_declarations[0].parameters: the schema has no type", None),
    ] {
        assert_eq!(rejected_part(400, message).await, expected, "{message}");
    }
    let grammar = "The compiled grammar is too large. Simplify your tool schemas, or tools.0 of them.";
    assert_eq!(rejected_part_of(false, 400, grammar).await, Some(RejectedPart::Schema));
}

#[tokio::test]
async fn system_text_of_a_model_without_a_system_role_is_in_the_first_message() {
    for message in ["System role not supported", "Conversation roles must alternate user/assistant"] {
        assert_eq!(rejected_part(400, message).await, Some(RejectedPart::SystemRole), "{message}");
    }
    let mock = Mock::start([Reply::text(ANSWER)]);
    let custom = vendor("custom", &mock);
    let image = Part::image_at("data:image/png;base64,iVBORw0KGgo=");
    let with_image = Message::new(Role::User, vec![Part::text("Look."), image]);
    for messages in [
        vec![Message::system("Answer in JSON."), Message::user("{}"), Message::assistant("?")],
        vec![Message::system("Answer in JSON."), with_image],
        vec![Message::system("Answer in JSON.")],
    ] {
        let mut request = ModelRequest::new(Conversation::new(messages));
        assert!(request.merge_system());
        assert!(!request.merge_system());
        events_of(&custom, &request).await.unwrap();
    }
    let bodies: Vec<_> =
        mock.requests().into_iter().map(|request| request.body["messages"].clone()).collect();
    assert_eq!(bodies[0][0], json!({ "role": "user", "content": "Answer in JSON.\n\n{}" }));
    assert_eq!(bodies[0][1]["role"], "assistant");
    assert_eq!(bodies[1][0]["content"][0], json!({ "type": "text", "text": "Answer in JSON." }));
    assert_eq!(bodies[1][0]["content"].as_array().unwrap().len(), 3);
    assert_eq!(bodies[2], json!([{ "role": "user", "content": "Answer in JSON." }]));
}

#[tokio::test]
async fn renamed_limit_of_tokens_is_sent_once_under_each_name() {
    for (name, names) in [
        ("custom", ["max_tokens", "max_completion_tokens"]),
        ("groq", ["max_completion_tokens", "max_tokens"]),
    ] {
        let mock = Mock::start([Reply::text(ANSWER)]);
        let provider = vendor(name, &mock);
        let mut request = simple_request();
        assert!(!request.rename_token_limit(), "there is none");
        request.generation.max_tokens = Some(5);
        events_of(&provider, &request).await.unwrap();
        assert!(request.rename_token_limit());
        assert!(!request.rename_token_limit());
        events_of(&provider, &request).await.unwrap();
        let bodies: Vec<_> = mock.requests().into_iter().map(|request| request.body).collect();
        assert_eq!((&bodies[0][names[0]], &bodies[1][names[1]]), (&5.into(), &5.into()));
        assert!(bodies[0].get(names[1]).is_none() && bodies[1].get(names[0]).is_none());
    }
}

#[tokio::test]
async fn error_of_the_provider_behind_a_gateway_decides_over_the_status_of_the_gateway() {
    let raw = r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"no\"}}"}}}"#;
    let words = |inner: &str| {
        let message = format!("gateway.APIError: PException - {inner}. Group=m");
        json!({ "error": { "message": message, "type": null, "code": "500" } }).to_string()
    };
    for (status, body, code, text) in [
        (502, raw.to_owned(), Code::ProviderUnavailable, "rejected the API key in OPENAI_API_KEY: no"),
        (
            500,
            words(r#"{"error": {"message": "maximum context length", "code": 400}}"#),
            Code::ContextOverflow,
            "maximum context length",
        ),
        (
            503,
            words("{'error': {'message': 'buy more', 'type': 'insufficient_quota', 'code': 402}}"),
            Code::RateLimited,
            "the quota of the OpenAI account is used up: buy more",
        ),
        (200, r#"{"statusCode": 402}"#.to_owned(), Code::RateLimited, "used up: status 402"),
        (
            200,
            r#"{"base_resp": {"status_code": 2049, "status_msg": "bad"}}"#.to_owned(),
            Code::ProviderUnavailable,
            "rejected the API key in OPENAI_API_KEY: bad",
        ),
    ] {
        let mock = Mock::start([Reply::raw(&body).status(status)]);
        let error = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!((error.code(), mock.requests().len()), (code, 1), "{error}");
    }
    // A limit of tokens in a minute passes.
    let limited = Reply::raw(r#"{"base_resp": {"status_code": 1039, "status_msg": "token limit"}}"#);
    let mock = Mock::start([limited, Reply::text(ANSWER)]);
    let events = events_of(&provider(Wire::OpenAi, &mock), &simple_request()).await.unwrap();
    assert_eq!((answer(&events).as_str(), mock.requests().len()), (ANSWER, 2));
}
