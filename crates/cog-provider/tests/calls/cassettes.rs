//! Tests that record a vendor's replies and play them back (docs/spec/golden-tests.md).

use std::path::Path;

use cog_provider::{
    HttpProvider, ModelRequest, Pace, Provider as _, ProviderError, Recording, vendors::ProviderSettings,
};
use cog_spec::Code;
use cog_testkit::{Mock, Reply, Wire};

use crate::support::{answer, ask, provider, question, settings, until_error, vendor};

fn replay(wire: Wire, directory: &Path, pace: Pace) -> HttpProvider {
    let model = Some("a-model".to_owned());
    HttpProvider::replay(
        vendor(wire),
        ProviderSettings { model, ..ProviderSettings::default() },
        directory,
        pace,
    )
    .unwrap()
}

/// Creates a request for another model, which has a different recording.
fn other_question() -> ModelRequest {
    ModelRequest { model: "another-model".to_owned(), ..question() }
}

#[tokio::test]
async fn what_was_recorded_is_played_without_key_and_network() {
    for wire in Wire::ALL {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start([Reply::text("{\"n\": 1}").pieces(2), Reply::text("{\"n\": 2}")]);
        let recording = provider(wire, &mock).record(directory.path()).unwrap();
        let first = ask(&recording, &question()).await.unwrap();
        let second = ask(&recording, &other_question()).await.unwrap();
        drop(mock);
        for pace in [Pace::Immediate, Pace::AsRecorded] {
            let replaying = replay(wire, directory.path(), pace);
            assert_eq!(ask(&replaying, &other_question()).await.unwrap(), second, "{}", wire.name());
            assert_eq!(ask(&replaying, &question()).await.unwrap(), first, "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_cassette_holds_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    ask(&provider(Wire::Anthropic, &mock).record(directory.path()).unwrap(), &question()).await.unwrap();
    let head = read(&directory.path().join("0001.json"));
    assert!(head.contains("\"x-api-key\": \"***\"") && head.contains("\"path\": \"/v1/messages\""), "{head}");
    assert!(!head.contains("canary") && !head.contains("127.0.0.1"), "{head}");
    let pieces = read(&directory.path().join("0001.ndjson"));
    assert!(
        pieces.lines().count() > 1 && pieces.lines().all(|line| line.starts_with("{\"t_ms\":")),
        "{pieces}"
    );
}

#[tokio::test]
async fn a_cassette_says_whom_it_is_of() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    let recorder = provider(Wire::Anthropic, &mock).record(directory.path()).unwrap();
    assert!(Recording::read(directory.path()).is_err(), "nothing is recorded yet");
    ask(&recorder, &question()).await.unwrap();
    let recording = Recording::read(directory.path()).unwrap();
    assert_eq!(
        (recording.provider.as_str(), recording.model.as_str()),
        ("anthropic", &*recorder.info().model)
    );
}

#[tokio::test]
async fn equal_requests_get_the_replies_in_turn() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("1"), Reply::text("2")]);
    let recording = provider(Wire::OpenAi, &mock).record(directory.path()).unwrap();
    for _ in 0..2 {
        ask(&recording, &question()).await.unwrap();
    }
    let replaying = replay(Wire::OpenAi, directory.path(), Pace::Immediate);
    for expected in ["1", "2", "1"] {
        assert_eq!(answer(&ask(&replaying, &question()).await.unwrap()), expected);
    }
}

#[tokio::test]
async fn attempts_are_recorded_and_played_too() {
    let directory = tempfile::tempdir().unwrap();
    let busy = Reply::error(503, "busy").header("retry-after-ms", "1");
    let mock = Mock::start([busy, Reply::text("{}")]);
    ask(&provider(Wire::Gemini, &mock).record(directory.path()).unwrap(), &question()).await.unwrap();
    assert!(directory.path().join("0002.json").exists());
    assert_eq!(
        answer(&ask(&replay(Wire::Gemini, directory.path(), Pace::Immediate), &question()).await.unwrap()),
        "{}"
    );
}

#[tokio::test]
async fn a_later_recording_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let mock = Mock::start([Reply::text("{}")]);
    for request in [question(), other_question()] {
        ask(&provider(Wire::Ollama, &mock).record(directory.path()).unwrap(), &request).await.unwrap();
    }
    let replaying = replay(Wire::Ollama, directory.path(), Pace::Immediate);
    for request in [question(), other_question()] {
        assert_eq!(answer(&ask(&replaying, &request).await.unwrap()), "{}");
    }
}

#[tokio::test]
async fn a_reply_that_was_cut_is_played_as_far_as_it_came() {
    let directory = tempfile::tempdir().unwrap();
    let pause = std::time::Duration::from_millis(5);
    let mock = Mock::start([Reply::text("{\"a\": \"long enough to be cut\"}").cut(900).pause(pause)]);
    let live =
        until_error(&provider(Wire::OpenAi, &mock).record(directory.path()).unwrap(), &question()).await;
    let played = until_error(&replay(Wire::OpenAi, directory.path(), Pace::Immediate), &question()).await;
    assert_eq!((live.0, live.1.code()), (played.0, played.1.code()));
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_e4001() {
    let directory = tempfile::tempdir().unwrap();
    let error = ask(&replay(Wire::OpenAi, directory.path(), Pace::Immediate), &question()).await.unwrap_err();
    assert_eq!((error.code(), error.recoverable()), (Code::ProviderUnavailable, false));
    assert!(matches!(error, ProviderError::NoRecording { .. }), "{error}");
    assert!(error.suggestion().unwrap().contains("--record"));
}

#[test]
fn a_cassette_that_cannot_be_used_is_told() {
    let missing = Path::new("/nowhere/at/all");
    let open = |directory: &Path| {
        HttpProvider::replay(vendor(Wire::OpenAi), ProviderSettings::default(), directory, Pace::Immediate)
    };
    assert!(matches!(open(missing).err(), Some(ProviderError::Cassette { .. })));
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("0001.json"), "{\"body\": {}}");
    let error = open(directory.path()).err().unwrap().to_string();
    assert!(error.contains("0001.json") && error.contains("status"), "{error}");
    let mock_less = HttpProvider::new(vendor(Wire::OpenAi), settings("http://127.0.0.1:1")).unwrap();
    assert!(matches!(mock_less.record("/dev/null/x").err(), Some(ProviderError::Cassette { .. })));
}

#[expect(clippy::disallowed_methods, reason = "a test reads what it recorded")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test writes a broken cassette")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
