//! Tests that record a vendor's replies and play them back (docs/spec/golden-tests.md).

use std::path::Path;

use cog_harmony::{Conversation, Message};
use cog_provider::{
    HttpProvider, ModelRequest, Pace, Provider as _, ProviderError, Recording,
    protocol::ProtocolKind,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{Code, Secret};
use cog_testkit::{Mock, Reply, Wire};

use crate::support::{
    KEY, answer, events_of, provider, request_with_grammar, settings, simple_request, until_error, vendor,
};

/// A key of another provider.
const OTHER_KEY: &str = "sk-ant-canary-9876";

fn replay(wire: Wire, directory: &Path, pace: Pace) -> HttpProvider {
    replay_of(vendor(wire), directory, pace)
}

fn replay_of(vendor: &'static Vendor, directory: &Path, pace: Pace) -> HttpProvider {
    let model = Some("a-model".to_owned());
    let settings = ProviderSettings { model, ..ProviderSettings::default() };
    HttpProvider::replay(vendor, settings, directory, pace).unwrap()
}

/// Creates a request for another model, which has a different recording.
fn other_request() -> ModelRequest {
    ModelRequest { model: "another-model".to_owned(), ..simple_request() }
}

#[tokio::test]
async fn replays_recording_without_key_and_network() {
    for wire in Wire::ALL {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start([Reply::text("{\"n\": 1}").chunk_size(2), Reply::text("{\"n\": 2}")]);
        let recording = provider(wire, &mock).record(directory.path()).unwrap();
        let first = events_of(&recording, &simple_request()).await.unwrap();
        let second = events_of(&recording, &other_request()).await.unwrap();
        drop(mock);
        for pace in [Pace::Immediate, Pace::AsRecorded] {
            let replaying = replay(wire, directory.path(), pace);
            assert_eq!(events_of(&replaying, &other_request()).await.unwrap(), second, "{}", wire.name());
            assert_eq!(events_of(&replaying, &simple_request()).await.unwrap(), first, "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn recording_has_the_grammar_that_is_sent_without_one() {
    let vendor = Vendor::by_name("llamacpp").unwrap();
    for (template, has_grammar) in [(Some("{{ messages }}"), true), (Some("<think>"), false), (None, false)] {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start([Reply::text("{}")]);
        let mock = template.into_iter().fold(mock, Mock::with_template);
        let provider = HttpProvider::new(vendor, settings(&mock.base_url(Wire::OpenAi))).unwrap();
        let recording = provider.record(directory.path()).unwrap();
        let request = request_with_grammar(&recording);
        events_of(&recording, &request).await.unwrap();
        assert_eq!(mock.requests()[0].body.get("grammar").is_some(), has_grammar, "{template:?}");
        // The question about the template is not in the cassette.
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
        let replaying = replay_of(vendor, directory.path(), Pace::Immediate);
        assert_eq!(answer(&events_of(&replaying, &request).await.unwrap()), "{}", "{template:?}");
    }
}

#[tokio::test]
async fn cassette_contains_neither_key_nor_host() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    events_of(&provider(Wire::Anthropic, &mock).record(directory.path()).unwrap(), &simple_request())
        .await
        .unwrap();
    let exchange = read(&directory.path().join("0001.json"));
    assert!(
        exchange.contains("\"x-api-key\": \"***\"") && exchange.contains("\"path\": \"/v1/messages\""),
        "{exchange}"
    );
    assert!(!exchange.contains("canary") && !exchange.contains("127.0.0.1"), "{exchange}");
    let chunks = read(&directory.path().join("0001.ndjson"));
    assert!(
        chunks.lines().count() > 1 && chunks.lines().all(|line| line.starts_with("{\"t_ms\":")),
        "{chunks}"
    );
}

#[tokio::test]
async fn cassette_masks_keys_in_requests_and_replays_them() {
    for wire in [Wire::OpenAi, Wire::Gemini] {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("Use {KEY} or the other one, {OTHER_KEY}");
        let mock = Mock::start([Reply::text(format!("not {OTHER_KEY}")).chunk_size(100)]);
        let other = ProviderSettings {
            secrets: vec![Secret::new(OTHER_KEY)],
            protocol: wire.protocol_setting().and_then(ProtocolKind::from_setting),
            ..settings(&mock.base_url(wire))
        };
        let recorder = HttpProvider::new(vendor(wire), other).unwrap().record(directory.path()).unwrap();
        let request = ModelRequest::new(Conversation::new([Message::user(text)]));
        assert_eq!(answer(&events_of(&recorder, &request).await.unwrap()), format!("not {OTHER_KEY}"));
        let exchange = read(&directory.path().join("0001.json"));
        assert!(exchange.contains("Use *** or the other one, ***"), "{exchange}");
        let replaying = replay(wire, directory.path(), Pace::Immediate);
        let masked = format!("not {}", "*".repeat(OTHER_KEY.len()));
        assert_eq!(answer(&events_of(&replaying, &request).await.unwrap()), masked, "{}", wire.name());
    }
}

#[tokio::test]
async fn recording_names_its_provider_and_model() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    let recorder = provider(Wire::Anthropic, &mock).record(directory.path()).unwrap();
    assert!(Recording::read(directory.path()).is_err(), "nothing is recorded yet");
    events_of(&recorder, &simple_request()).await.unwrap();
    let recording = Recording::read(directory.path()).unwrap();
    assert_eq!(
        (recording.provider.as_str(), recording.model.as_str()),
        ("anthropic", &*recorder.info().model)
    );
}

#[tokio::test]
async fn equal_requests_get_their_replies_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("1"), Reply::text("2")]);
    let recording = provider(Wire::OpenAi, &mock).record(directory.path()).unwrap();
    for _ in 0..2 {
        events_of(&recording, &simple_request()).await.unwrap();
    }
    let replaying = replay(Wire::OpenAi, directory.path(), Pace::Immediate);
    for expected in ["1", "2", "1"] {
        assert_eq!(answer(&events_of(&replaying, &simple_request()).await.unwrap()), expected);
    }
}

#[tokio::test]
async fn records_and_replays_retries() {
    let directory = tempfile::tempdir().unwrap();
    let busy = Reply::error(503, "busy").header("retry-after-ms", "1");
    let mock = Mock::start([busy, Reply::text("{}")]);
    events_of(&provider(Wire::Gemini, &mock).record(directory.path()).unwrap(), &simple_request())
        .await
        .unwrap();
    assert!(directory.path().join("0002.json").exists());
    assert_eq!(
        answer(
            &events_of(&replay(Wire::Gemini, directory.path(), Pace::Immediate), &simple_request())
                .await
                .unwrap()
        ),
        "{}"
    );
}

#[tokio::test]
async fn appends_to_existing_cassette() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    for request in [simple_request(), other_request()] {
        events_of(&provider(Wire::Ollama, &mock).record(directory.path()).unwrap(), &request).await.unwrap();
    }
    let replaying = replay(Wire::Ollama, directory.path(), Pace::Immediate);
    for request in [simple_request(), other_request()] {
        assert_eq!(answer(&events_of(&replaying, &request).await.unwrap()), "{}");
    }
}

#[tokio::test]
async fn replays_interrupted_reply() {
    let directory = tempfile::tempdir().unwrap();
    let pause = std::time::Duration::from_millis(5);
    let mock = Mock::start([Reply::text("{\"a\": \"long enough to be interrupted\"}")
        .interrupt_after(900)
        .pause(pause)]);
    let live =
        until_error(&provider(Wire::OpenAi, &mock).record(directory.path()).unwrap(), &simple_request())
            .await;
    let played =
        until_error(&replay(Wire::OpenAi, directory.path(), Pace::Immediate), &simple_request()).await;
    assert_eq!((live.0, live.1.code()), (played.0, played.1.code()));
}

/// The reply is paid for, so it is passed on, and the cassette stays usable for the next one.
#[tokio::test]
async fn reply_that_cannot_be_recorded_is_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    let recording = provider(Wire::OpenAi, &mock).record(directory.path()).unwrap();
    let fault = recording.recording_failure();
    assert!(fault.error().is_none());
    std::fs::remove_dir(directory.path()).unwrap();
    assert_eq!(answer(&events_of(&recording, &simple_request()).await.unwrap()), "{}");
    let error = fault.error().unwrap().to_string();
    assert!(error.starts_with("cannot use the cassette") && error.contains("0001.json: "), "{error}");
    std::fs::create_dir(directory.path()).unwrap();
    events_of(&recording, &simple_request()).await.unwrap();
    let replaying = replay(Wire::OpenAi, directory.path(), Pace::Immediate);
    assert_eq!(answer(&events_of(&replaying, &simple_request()).await.unwrap()), "{}");
}

#[tokio::test]
async fn unrecorded_request_is_e4001() {
    let directory = tempfile::tempdir().unwrap();
    let error = events_of(&replay(Wire::OpenAi, directory.path(), Pace::Immediate), &simple_request())
        .await
        .unwrap_err();
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, false));
    assert!(matches!(error, ProviderError::NoRecording { .. }), "{error}");
    assert!(error.suggestion().unwrap().contains("--record"));
}

#[test]
fn rejects_unusable_cassette() {
    let missing = Path::new("/nowhere/at/all");
    let open = |directory: &Path| {
        HttpProvider::replay(vendor(Wire::OpenAi), ProviderSettings::default(), directory, Pace::Immediate)
    };
    assert!(matches!(open(missing).err(), Some(ProviderError::Cassette { .. })));
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("0001.json"), "{\"body\": {}}");
    let error = open(directory.path()).err().unwrap().to_string();
    assert!(error.contains("0001.json") && error.contains("status"), "{error}");
    let without_mock = HttpProvider::new(vendor(Wire::OpenAi), settings("http://127.0.0.1:1")).unwrap();
    assert!(matches!(without_mock.record("/dev/null/x").err(), Some(ProviderError::Cassette { .. })));
}

#[expect(clippy::disallowed_methods, reason = "a test reads what it recorded")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test writes a broken cassette")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
