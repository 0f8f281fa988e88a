//! Tests of the batch interfaces: entries and jobs as sent, jobs and results as received. The files are in
//! `tests/batch`.

use std::sync::Arc;

use cog_harmony::{Conversation, Message};
use cog_json::Value;
use cog_provider::{
    BatchClient, HttpProvider, ModelRequest, PlainClient, PlainRequest, Provider, WireRequest,
    batch::{
        BATCH_VENDORS, BatchJob, BatchLimits, BatchOutcome, BatchPart, BatchPhase, BatchReply, EntryError,
        batch_interface,
    },
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{Code, ModelEvent, Secret, ServiceTier};
use cog_testkit::{Batches, Mock, Reply, Wire};
use futures_util::TryStreamExt;

const WIRES: [Wire; 4] = [Wire::OpenAi, Wire::OpenAiResponses, Wire::Anthropic, Wire::Gemini];

const TEXTS: [&str; 7] =
    ["fine", "wrong", "MOCK-EXPIRED", "MOCK-CANCELLED", "MOCK-LOST", "MOCK-TWICE", "MOCK-STRANGER"];

/// A client of the mock.
struct Session {
    mock: Mock,
    provider: Arc<HttpProvider>,
    client: BatchClient,
    _directory: tempfile::TempDir,
}

impl Session {
    fn start(wire: Wire) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let replies = [Reply::text("{\"é\": 1}"), Reply::error(400, "the prompt is wrong").when("wrong")];
        let mock = Mock::with_batches(replies, Batches::new(directory.path())).unwrap();
        let settings = ProviderSettings {
            base_url: Some(mock.base_url(wire)),
            key: Some(Secret::new("a-secret-key")),
            protocol: wire.protocol_setting().and_then(cog_provider::protocol::ProtocolKind::from_setting),
            model: Some("a-model".to_owned()),
            ..ProviderSettings::default()
        };
        let vendor = Vendor::by_name(wire.provider()).unwrap();
        let provider = Arc::new(HttpProvider::new(vendor, settings).unwrap());
        let client = BatchClient::new(Arc::clone(&provider)).unwrap();
        Self { mock, provider, client, _directory: directory }
    }

    fn part(&self, texts: &[&str]) -> BatchPart {
        let interface = self.client.interface();
        let mut part = BatchPart::new(interface.limits());
        for (row, text) in texts.iter().enumerate() {
            let wire = self.provider.render(&request(text)).unwrap().unwrap();
            assert!(interface.add(&mut part, &format!("cog-test-{row}"), &wire).unwrap());
        }
        part
    }

    async fn ended(&self, texts: &[&str]) -> BatchJob {
        let created = self.client.create("cog-test", &self.part(texts)).await.unwrap();
        assert_eq!(created.phase, BatchPhase::Running);
        assert_eq!(self.client.job(&created.id).await.unwrap().phase, BatchPhase::Running);
        self.client.job(&created.id).await.unwrap()
    }
}

fn request(text: &str) -> ModelRequest {
    ModelRequest::new(Conversation::new([Message::system("Answer in JSON."), Message::user(text)]))
}

#[tokio::test]
async fn job_gives_the_result_of_each_entry() {
    for wire in WIRES {
        let session = Session::start(wire);
        let job = session.ended(&TEXTS).await;
        let mut found = Vec::new();
        let unreadable = session.client.results(&job, |result| {
            found.push(match result.outcome {
                BatchOutcome::Replied(reply) => format!("{} {}", result.id, reply.status),
                outcome => format!("{} {outcome:?}", result.id),
            });
            true
        });
        assert_eq!(unreadable.await.unwrap(), 0);
        found.sort();
        let expected = [
            "a-stranger Expired",
            "cog-test-0 200",
            "cog-test-1 400",
            "cog-test-2 Expired",
            "cog-test-3 Cancelled",
            "cog-test-5 200",
            "cog-test-5 200",
            "cog-test-6 200",
        ];
        assert_eq!(found, expected, "{wire:?}");
        assert_eq!(job.counts.total, Some(if wire == Wire::Anthropic { 8 } else { 7 }));
    }
}

#[tokio::test]
async fn reply_in_a_job_is_decoded_as_a_live_one() {
    for wire in WIRES {
        let session = Session::start(wire);
        let job = session.ended(&["fine", "wrong"]).await;
        let mut replies: Vec<BatchReply> = Vec::new();
        let sink = |result: cog_provider::batch::BatchResult| {
            replies.push(result.outcome.reply().unwrap());
            true
        };
        session.client.results(&job, sink).await.unwrap();
        replies.sort_by_key(|reply| reply.status);
        for (text, reply) in ["fine", "wrong"].into_iter().zip(replies) {
            let request = request(text);
            let batch = session.provider.read_batch_reply(&request, reply).await;
            match (batch, session.provider.call(&request).await) {
                (Ok(batch), Ok(live)) => {
                    let events: Vec<ModelEvent> = batch.try_collect().await.unwrap();
                    let tier = events.iter().find_map(|event| match event {
                        ModelEvent::Usage(usage) => usage.service_tier.clone(),
                        _ => None,
                    });
                    assert_eq!(tier.as_deref(), Some("batch"));
                    assert_eq!(answer(&events), answer(&live.try_collect::<Vec<_>>().await.unwrap()));
                }
                (Err(batch), Err(live)) => assert_eq!(batch, live, "{wire:?}"),
                _ => panic!("{wire:?}: the batch differs from the call"),
            }
        }
    }
}

fn answer(events: &[ModelEvent]) -> String {
    let text =
        |event: &ModelEvent| if let ModelEvent::Text(text) = event { Some(text.clone()) } else { None };
    events.iter().filter_map(text).collect()
}

#[tokio::test]
async fn job_is_found_again_and_cancelled() {
    for wire in WIRES {
        let session = Session::start(wire);
        let first = session.client.create("cog-first", &session.part(&["fine"])).await.unwrap();
        let second = session.client.create("cog-second", &session.part(&["fine", "fine"])).await.unwrap();
        let jobs = session.client.newest(|_| false).await.unwrap();
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids, [&second.id, &first.id], "{wire:?}");
        assert_eq!(jobs[1].name.as_deref(), session.client.interface().has_names().then_some("cog-first"));
        assert_eq!(session.client.newest(|job| job.id == second.id).await.unwrap().len(), 1);
        session.client.cancel(&first.id).await.unwrap();
        let cancelled = session.client.job(&first.id).await.unwrap();
        assert_eq!((cancelled.phase, cancelled.counts.failed), (BatchPhase::Ended, Some(1)), "{wire:?}");
        let sent = session.mock.requests();
        assert!(sent.iter().all(|request| !request.path.contains("a-secret-key")));
    }
}

#[tokio::test]
async fn forms_are_as_the_files() {
    for wire in WIRES {
        let session = Session::start(wire);
        let job = session.ended(&TEXTS[..4]).await;
        session.client.newest(|_| false).await.unwrap();
        session.client.results(&job, |_| true).await.unwrap();
        // The job has ended, so it is not cancelled; what counts is the request.
        session.client.cancel(&job.id).await.unwrap_err();
        let base = session.mock.url();
        let is_form = |name: &str| matches!(name, "accept" | "content-type" | "anthropic-version");
        let requests = session.mock.requests().into_iter().map(|request| {
            let headers = request.headers.iter().filter(|(name, _)| is_form(name));
            let headers = headers.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
            serde_json::json!({
                "method": request.method, "path": request.path, "headers": headers, "body": request.body,
            })
        });
        let requests: Vec<_> = requests.collect();
        snapshot(wire, "requests", &serde_json::Value::from(requests.clone()));
        let client = PlainClient::new(&base, std::time::Duration::from_secs(9), 1 << 20).unwrap();
        for (index, request) in requests.iter().enumerate().filter(|(_, request)| request["method"] == "GET")
        {
            let url = format!("{base}{}", request["path"].as_str().unwrap());
            let request = PlainRequest { method: "GET".to_owned(), url, ..PlainRequest::default() };
            let body = String::from_utf8(client.send(&request).await.unwrap().body).unwrap();
            let lines: Result<Vec<serde_json::Value>, _> = body.lines().map(serde_json::from_str).collect();
            snapshot(wire, &format!("reply-{index}"), &lines.unwrap().into());
        }
        let part = session.part(&TEXTS[..4]);
        let entries = part.entries().iter().map(|entry| serde_json::from_str(entry));
        snapshot(wire, "entries", &entries.collect::<Result<Vec<serde_json::Value>, _>>().unwrap().into());
    }
}

fn snapshot(wire: Wire, name: &str, value: &serde_json::Value) {
    let path = format!("../batch/{}", wire.name());
    let text = serde_json::to_string_pretty(value).unwrap();
    insta::with_settings!({ snapshot_path => path, prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[expect(clippy::disallowed_methods, reason = "the files are the test's own")]
fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Every request of the other tests has an entry, which the vendors' clients validate.
#[test]
fn entries_of_live_requests_are_as_the_files() {
    for wire in WIRES {
        let interface = batch_interface(wire.provider()).unwrap();
        let mut entries = Vec::new();
        let directory = format!("{}/tests/wire/{}", env!("CARGO_MANIFEST_DIR"), wire.name());
        let mut paths: Vec<_> =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let own = format!("request-{}", wire.provider());
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.extension().unwrap() != "snap" || !name.starts_with(&own) {
                continue;
            }
            let text = read(&path);
            let live = Value::parse(text.split_once("\n---\n").unwrap().1).unwrap();
            let wire = WireRequest {
                method: "POST",
                url: live.get("url").unwrap().as_str().unwrap().to_owned(),
                headers: Vec::new(),
                auth: None,
                body: live.get("body").unwrap().to_string().into(),
            };
            match interface.entry(&name, &wire) {
                Ok(entry) => entries.push(serde_json::from_str(&entry).unwrap()),
                Err(error) => entries.push(serde_json::json!({ "name": name, "error": error.to_string() })),
            }
        }
        assert!(entries.len() > 4, "{wire:?}");
        snapshot(wire, "entries-of-requests", &serde_json::Value::from(entries));
    }
}

#[test]
fn part_ends_at_the_limits() {
    let interface = batch_interface("openai").unwrap();
    let wire = |url: &str, text: &str| WireRequest {
        method: "POST",
        url: url.to_owned(),
        headers: Vec::new(),
        auth: None,
        body: format!("{{\"model\":\"m\",\"input\":\"{text}\",\"stream\":true}}").into(),
    };
    let (responses, chat) = (wire("https://a/v1/responses", "x"), wire("https://a/v1/chat/completions", "x"));
    let mut two = BatchPart::new(BatchLimits { requests: 2, bytes: 4_096 });
    let mut push = |wire| interface.add(&mut two, "a", wire);
    assert_eq!(
        [push(&responses), push(&chat), push(&responses), push(&responses)],
        [Ok(true), Ok(false), Ok(true), Ok(false)]
    );
    assert_eq!((two.entries().len(), two.target()), (2, "/v1/responses"));
    let mut small = BatchPart::new(BatchLimits { requests: 9, bytes: 1_700 });
    let large = wire("https://a/v1/responses", &"x".repeat(300));
    let huge = wire("https://a/v1/responses", &"x".repeat(3_000));
    assert_eq!(interface.add(&mut small, "a", &large), Ok(true));
    assert_eq!(interface.add(&mut small, "b", &large), Ok(false));
    let error = interface.add(&mut small, "c", &huge).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("1700")), (Code::InputTooLarge, true));
    let other = wire("https://a/v1/embeddings", "x");
    assert_eq!(interface.add(&mut small, "d", &other), Err(EntryError::Endpoint));
}

#[test]
fn class_of_service_is_refused() {
    for wire in WIRES {
        let vendor = Vendor::by_name(wire.provider()).unwrap();
        let protocol = wire.protocol_setting().and_then(cog_provider::protocol::ProtocolKind::from_setting);
        let settings = ProviderSettings { protocol, ..ProviderSettings::default() };
        let provider = HttpProvider::new(vendor, settings).unwrap();
        let mut request = request("a");
        request.generation.service_tier = Some(ServiceTier::Flex);
        let Ok(Some(live)) = provider.render(&request) else { continue };
        let entry = batch_interface(wire.provider()).unwrap().entry("a", &live);
        assert_eq!(entry, Err(EntryError::ServiceTier), "{wire:?}");
    }
}

#[test]
fn unknown_states_are_kept_and_ids_that_would_change_a_path_are_not() {
    for (vendor, body) in [
        ("openai", r#"{"id": "ID", "status": "pondering"}"#),
        ("anthropic", r#"{"id": "ID", "processing_status": "pondering"}"#),
        ("gemini", r#"{"name": "batches/ID", "metadata": {"state": "pondering"}}"#),
    ] {
        let job = |id: &str| {
            let body = Value::parse(&body.replace("ID", id)).unwrap();
            batch_interface(vendor).unwrap().job(body.node())
        };
        let known = job("b-1").unwrap();
        assert_eq!((known.id.as_str(), known.state.as_str()), ("b-1", "pondering"));
        assert_eq!(known.phase, BatchPhase::Running);
        for invalid in ["", "../files", "a/b", "a?b", "a b", ".."] {
            assert_eq!(job(invalid), None, "{vendor} {invalid}");
        }
    }
    assert!(BATCH_VENDORS.iter().all(|name| batch_interface(name).is_some()));
    assert!(batch_interface("ollama").is_none());
}

#[test]
fn request_without_a_reply_has_an_error() {
    let missing = BatchOutcome::Missing("the job failed".to_owned());
    for (outcome, code) in [
        (BatchOutcome::Expired, Code::Timeout),
        (BatchOutcome::Cancelled, Code::StreamInterrupted),
        (missing, Code::StreamInterrupted),
    ] {
        assert_eq!(outcome.reply().unwrap_err().code(), code);
    }
}
