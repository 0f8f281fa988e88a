//! Fallbacks to other providers, and what a model receives when it is called again.

use std::{sync::Arc, time::Duration};

use cog_harmony::{Part, Role};
use cog_provider::{Deadline, Interruption, Provider, ProviderError};
use cog_run::{Providers, RunInput, RunOptions, Runtime};
use cog_spec::{Code, Dialect, ErrorBody, Generation};
use tempfile::TempDir;

use crate::support::{ANSWER, Scripted, code, directory, input, runtime_with, sample_input, write};

fn unavailable() -> ProviderError {
    ProviderError::Unavailable {
        vendor: "One",
        by: Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    }
}

/// Returns a runtime that calls these providers in order.
fn in_order<const N: usize>(providers: [Scripted; N]) -> ([Arc<Scripted>; N], Runtime) {
    let providers = providers.map(Arc::new);
    let order = providers.iter().map(|provider| Arc::clone(provider) as Arc<dyn Provider>).collect();
    let unknown = |name: &str| Err(ErrorBody::new(Code::UnsupportedValue, name.to_owned()));
    (providers, Runtime::builder().providers(Providers::new(order, unknown)).build().unwrap())
}

#[tokio::test]
async fn falls_back_to_the_next_provider() {
    let directory = directory("Answer.", &[]);
    let (providers, runtime) = in_order([
        Scripted::failing(unavailable()).named("one"),
        Scripted::failing(ProviderError::NoKey { vendor: "Two", variable: "TWO_KEY" }).named("two"),
        Scripted::replying(ANSWER).named("three"),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let options = RunOptions { model: Some("of-the-first".to_owned()), ..RunOptions::default() };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let meta = envelope.meta.runtime;
    assert_eq!(meta.model.as_deref(), Some("three/one"));
    let reported: Vec<_> =
        meta.fallbacks.iter().map(|fallback| (fallback.provider.as_str(), fallback.code)).collect();
    assert_eq!(reported, [("one", Code::ProviderUnavailable), ("two", Code::ProviderUnavailable)]);
    let models: Vec<_> = providers.iter().map(|provider| provider.requests()[0].model.clone()).collect();
    assert_eq!(models, ["of-the-first", "", ""]);
}

#[tokio::test]
async fn instructions_are_those_of_the_provider_that_is_called() {
    let directory = directory("Answer.", &[]);
    let dialects = [Dialect::JsonObject, Dialect::OpenAiStrict, Dialect::LlamaCpp];
    let (providers, runtime) = in_order([
        Scripted::failing(unavailable()).named("one").with_dialect(dialects[0]),
        Scripted::failing(unavailable()).named("two").with_dialect(dialects[1]),
        Scripted::replying(ANSWER).named("three").with_dialect(dialects[2]),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    for (provider, has_schema) in providers.iter().zip([true, false, false]) {
        let request = &provider.requests()[0];
        let system = request.messages.messages()[0].text();
        assert_eq!(system, format!("Answer.{}", request.output.as_ref().unwrap().instructions));
        assert_eq!(system.contains("JSON Schema:"), has_schema, "{system}");
    }
}

#[tokio::test]
async fn only_provider_errors_fall_back() {
    let late = |deadline| ProviderError::Timeout { vendor: "One", deadline, limit: Duration::from_secs(1) };
    let cases = [
        (unavailable(), true),
        (
            ProviderError::RateLimited {
                vendor: "One",
                is_quota: false,
                message: "slow".to_owned(),
                retry_after: None,
            },
            true,
        ),
        (ProviderError::KeyRejected { vendor: "One", variable: "K", message: "no".to_owned() }, true),
        (
            ProviderError::Interrupted {
                vendor: "One",
                by: Interruption::Network,
                message: "cut".to_owned(),
            },
            true,
        ),
        (late(Deadline::FirstToken), true),
        (late(Deadline::Total), false),
        (
            ProviderError::Rejected { vendor: "One", status: 400, message: "bad".to_owned(), part: None },
            false,
        ),
        (ProviderError::ContextOverflow { model: "m".to_owned(), message: "long".to_owned() }, true),
    ];
    let directory = directory("Answer.", &[]);
    for (error, is_passed_on) in cases {
        let (providers, runtime) = in_order([Scripted::failing(error.clone()), Scripted::replying(ANSWER)]);
        let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
        let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
        assert_eq!(
            (envelope.is_ok(), providers[1].requests().len() == 1),
            (is_passed_on, is_passed_on),
            "{error}"
        );
    }
}

#[tokio::test]
async fn last_error_is_returned_with_the_earlier_ones() {
    let directory = directory("Answer.", &[]);
    let slow = ProviderError::RateLimited {
        vendor: "Two",
        is_quota: false,
        message: "slow".to_owned(),
        retry_after: None,
    };
    let (_, runtime) = in_order([Scripted::failing(unavailable()).named("one"), Scripted::failing(slow)]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E4002"));
    assert_eq!(envelope.meta.runtime.fallbacks[0].provider, "one");
}

#[tokio::test]
async fn started_reply_does_not_fall_back() {
    let directory = directory("Answer.", &[]);
    let (providers, runtime) = in_order([Scripted::new([Vec::new()]), Scripted::replying(ANSWER)]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E2010"));
    assert_eq!(providers[1].requests(), []);
}

#[tokio::test]
async fn request_selects_a_configured_provider_by_name() {
    let directory = directory("Answer.", &[]);
    let (providers, runtime) =
        in_order([Scripted::replying("{}").named("one"), Scripted::replying(ANSWER).named("two")]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let named = |name: &str| RunOptions { provider: Some(name.to_owned()), ..RunOptions::default() };
    assert!(runtime.run(&module, sample_input(), named("two, one")).await.is_ok());
    assert_eq!(providers[0].requests(), []);
    assert_eq!(code(&runtime.run(&module, sample_input(), named("three")).await), Some("E1004"));
    let offline = runtime.run(&module, sample_input(), named("offline")).await;
    assert_eq!(offline.meta.runtime.model.as_deref(), Some("offline/sample"));
}

/// Returns a module that reads an image, and an input with a WebP image of one pixel.
fn looking() -> (TempDir, RunInput) {
    let directory =
        directory("Look at $MEDIA_INPUTS", &["modalities:", "  input: [text, image]", "  output: [text]"]);
    write(
        &directory,
        "schema.json",
        r##"{"input": {"type": "object", "properties": {"image": {"$ref": "#/$defs/MediaInput"}}},
            "data": {"type": "object", "properties": {"result": {"type": "string"}}}}"##,
    );
    let image = r#"{"type": "base64", "media_type": "image/webp",
        "data": "UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE="}"#;
    (directory, input(&format!(r#"{{"image": {image}}}"#)))
}

/// Returns the start of the image that a provider received.
fn sent(provider: &Scripted) -> String {
    let requests = provider.requests();
    let mut parts = requests[0].messages.messages().iter().flat_map(|message| &message.content);
    let image = parts.find_map(|part| match part {
        Part::Image(image) => Some(&image.url),
        _ => None,
    });
    image.unwrap().chars().take_while(|letter| *letter != ';').collect()
}

#[tokio::test]
async fn fallback_receives_media_in_a_supported_form() {
    let (directory, image) = looking();
    let (providers, runtime) = in_order([
        Scripted::failing(unavailable()).named("one").accepting_images(&["image/webp"]),
        Scripted::replying(ANSWER).named("two").accepting_images(&["image/jpeg"]),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, image, RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let types = providers.each_ref().map(|provider| sent(provider));
    assert_eq!(types, ["data:image/webp", "data:image/jpeg"]);
    let reported = envelope.meta.runtime.media_processed.unwrap();
    assert_eq!(reported.pointer("/0/sent/0/media_type").unwrap().as_str(), Some("image/jpeg"));
}

#[tokio::test]
async fn provider_without_the_media_type_is_skipped() {
    let (directory, image) = looking();
    let (providers, runtime) = in_order([
        Scripted::replying(ANSWER).named("blind"),
        Scripted::replying(ANSWER).named("seeing").accepting_images(&["image/png"]),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, image, RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let fallback = &envelope.meta.runtime.fallbacks[0];
    assert_eq!((fallback.provider.as_str(), fallback.code), ("blind", Code::MultimodalNotSupported));
    assert!(
        fallback.message.starts_with("input.image: the provider does not support image/webp"),
        "{}",
        fallback.message
    );
    assert_eq!(providers.each_ref().map(|provider| provider.requests().len()), [0, 1]);
}

#[tokio::test]
async fn unsupported_media_fail_without_a_call() {
    let (directory, image) = looking();
    let (providers, runtime) =
        in_order([Scripted::replying(ANSWER).named("one"), Scripted::replying(ANSWER).named("two")]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, image, RunOptions::default()).await;
    assert_eq!(code(&envelope), Some("E4011"));
    assert_eq!(envelope.meta.runtime.fallbacks.len(), 1);
    assert_eq!(providers.each_ref().map(|provider| provider.requests().len()), [0, 0]);
}

fn temperature() -> Generation {
    Generation { temperature: Some(0.0), max_tokens: Some(9), ..Generation::default() }
}

#[tokio::test]
async fn preferred_setting_that_the_model_does_not_support_is_omitted_with_a_warning() {
    let directory = directory("Answer.", &["generation: { temperature: 0, max_tokens: 9 }"]);
    let (providers, runtime) = in_order([Scripted::replying(ANSWER).rejecting("temperature")]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let warnings: Vec<_> =
        envelope.warnings.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
    let expected = "`temperature` was not sent: One does not support `temperature` with the model `one`";
    assert_eq!(warnings, [("W4015", expected)]);
    let sent = &providers[0].requests()[0].generation;
    assert_eq!((sent.temperature, sent.max_tokens), (None, Some(9)));
}

#[tokio::test]
async fn fallback_provider_gets_the_preferred_setting_that_it_supports() {
    let directory = directory("Answer.", &["generation: { temperature: 0 }"]);
    let (providers, runtime) = in_order([
        Scripted::failing(unavailable()).rejecting("temperature").named("one"),
        Scripted::replying(ANSWER).named("two"),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    assert!(runtime.run(&module, sample_input(), RunOptions::default()).await.is_ok());
    let sent = providers.map(|provider| provider.requests()[0].generation.temperature);
    assert_eq!(sent, [None, Some(0.0)]);

    let (providers, runtime) = in_order([
        Scripted::failing(unavailable()).named("one"),
        Scripted::replying(ANSWER).rejecting("temperature").named("two"),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(envelope.warnings[0].code.as_str(), "W4015");
    assert_eq!(providers.map(|provider| provider.requests()[0].generation.temperature), [Some(0.0), None]);
}

#[tokio::test]
async fn chosen_setting_that_no_provider_supports_is_an_error_before_the_call() {
    let directory = directory("Answer.", &[]);
    let options = RunOptions { generation: temperature(), ..RunOptions::default() };
    let (providers, runtime) = in_order([
        Scripted::replying(ANSWER).rejecting("temperature").named("one"),
        Scripted::replying(ANSWER).rejecting("max_tokens").named("two"),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let rejected = runtime.stream(&module, sample_input(), options.clone()).err().unwrap();
    assert_eq!(code(&rejected), Some("E1004"));
    assert_eq!(providers.each_ref().map(|provider| provider.requests().len()), [0, 0]);

    let (providers, runtime) = in_order([
        Scripted::replying(ANSWER).rejecting("temperature").named("one"),
        Scripted::replying(ANSWER).rejecting("max_tokens").named("two"),
        Scripted::replying(ANSWER).named("three"),
    ]);
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let fallbacks = &envelope.meta.runtime.fallbacks;
    let fallbacks: Vec<_> = fallbacks.iter().map(|it| (it.provider.as_str(), it.code)).collect();
    assert_eq!(fallbacks, [("one", Code::UnsupportedValue), ("two", Code::UnsupportedValue)]);
    assert_eq!(providers.each_ref().map(|provider| provider.requests().len()), [0, 0, 1]);
}

#[tokio::test]
async fn retry_contains_the_answer_and_its_violations() {
    let directory = directory("Answer.", &["response:", "  on_violation: retry", "  max_attempts: 3"]);
    let wrong = ANSWER.replace("\"fine\"", "1");
    let bare = "no JSON at all";
    let (provider, runtime, module) =
        runtime_with(Scripted::replying_in_turn([&wrong, bare, ANSWER]), &directory);
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.runtime.attempts, Some(3));
    let requests = provider.requests();
    let roles =
        |at: usize| requests[at].messages.messages().iter().map(|message| message.role).collect::<Vec<_>>();
    assert_eq!(roles(0), [Role::System, Role::User]);
    assert_eq!(roles(1), [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(roles(2), roles(1), "only the last answer is shown");
    let second = requests[1].messages.messages();
    assert_eq!(second[2].text(), wrong);
    assert!(second[3].text().contains("`data.result` (type)"), "{}", second[3].text());
    assert_eq!(requests[2].messages.messages()[2].text(), bare);
}

#[tokio::test]
async fn violation_is_retried_once_by_default() {
    let retry = cog_spec::OnViolation::Retry;
    let cases = [
        ("tier: decision", RunOptions::default(), 2),
        ("tier: exec", RunOptions::default(), 1),
        ("tier: exec\nresponse: { max_attempts: 2 }", RunOptions::default(), 2),
        ("tier: exec", RunOptions { on_violation: Some(retry), ..RunOptions::default() }, 2),
        ("tier: decision\nresponse: { on_violation: report, max_attempts: 3 }", RunOptions::default(), 1),
        ("tier: decision\nresponse: { on_violation: abort }", RunOptions::default(), 1),
        ("tier: decision\nresponse: { max_attempts: 3 }", RunOptions::default(), 3),
        ("tier: decision", RunOptions { max_attempts: Some(1), ..RunOptions::default() }, 1),
    ];
    let wrong = ANSWER.replace("\"fine\"", "1");
    for (manifest, options, calls) in cases {
        let directory = directory("Answer.", &[]);
        let head = "name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: [guessing]";
        write(&directory, "module.yaml", &format!("{head}\n{manifest}"));
        let (provider, runtime, module) = runtime_with(Scripted::replying(&wrong), &directory);
        let envelope = runtime.run(&module, sample_input(), options.clone()).await;
        assert_eq!(code(&envelope), Some("E3001"));
        assert_eq!(provider.requests().len(), calls, "{manifest:?}");
        let stream = runtime.stream(&module, sample_input(), options).unwrap();
        assert_eq!(stream.fold().await.error(), envelope.error(), "{manifest:?}");
        assert_eq!(provider.requests().len(), 2 * calls, "{manifest:?}");
    }
}

#[tokio::test]
async fn request_limits_the_attempts() {
    let directory = directory("Answer.", &[]);
    let wrong = ANSWER.replace("\"fine\"", "1");
    let (provider, runtime, module) = runtime_with(Scripted::replying(&wrong), &directory);
    let options = RunOptions {
        on_violation: Some(cog_spec::OnViolation::Retry),
        max_attempts: Some(4),
        ..RunOptions::default()
    };
    let envelope = runtime.run(&module, sample_input(), options).await;
    assert_eq!(code(&envelope), Some("E3001"));
    assert_eq!(envelope.meta.runtime.attempts, Some(4));
    assert_eq!(provider.requests().len(), 4);
}
