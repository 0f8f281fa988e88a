//! Interrupts the provider's connection at any byte.

use std::sync::Arc;

use cog_json::ToJson as _;
use cog_provider::{
    HttpProvider,
    protocol::ProtocolKind,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{RunOptions, Runtime};
use cog_spec::{Chunk, Secret};
use cog_testkit::{Mock, Reply, Wire};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::support::{directory, sample_input};

/// The number of tested offsets.
const CUTS: usize = 500;

fn answer() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Füße \"✓\" 🙂" },
        "data": {
            "result": "line\nbreak, quote \" and 漢字 \u{1F642} to the end",
            "count": [1, -2.5, 1e3, true, null],
            "nested": { "empty": {}, "list": [], "text": "", "deep": [{ "a": "b" }, { "a": "c" }] },
            "rationale": "because ".repeat(20),
        },
        "error": null,
    })
}

/// Returns a runtime that calls the mock without retries.
fn runtime_with(wire: Wire, mock: &Mock) -> Runtime {
    let settings = ProviderSettings {
        key: Some(Secret::new("k")),
        base_url: Some(mock.base_url(wire)),
        model: Some("m".to_owned()),
        protocol: wire.protocol_setting().and_then(ProtocolKind::from_setting),
        retries: 0,
        ..ProviderSettings::default()
    };
    let vendor = Vendor::by_name(wire.provider()).unwrap();
    Runtime::builder().provider(Arc::new(HttpProvider::new(vendor, settings).unwrap())).build().unwrap()
}

/// Returns offsets in the reply's bytes, scattered but the same in every run.
fn places() -> impl Iterator<Item = usize> {
    (0..CUTS).map(|turn| turn * 7919 % 4801)
}

/// Returns whether a value is a truncated form of another.
fn begins(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(part, whole)| begins(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| begins(part, whole)))
        }
        _ => part == whole,
    }
}

fn check(chunks: &[Chunk], place: usize) -> bool {
    let lines: Vec<String> = chunks.iter().map(|chunk| chunk.to_json()).collect();
    let verdict = cog_answer::verify::verify(&lines.join("\n"), None, None);
    assert!(verdict.valid, "cut at {place}: {:?}", verdict.violations);
    assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1, "cut at {place}");
    let end: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    if end["final"] == true {
        assert_eq!(end["data"], answer()["data"], "cut at {place}, behind the end");
        return true;
    }
    assert_eq!(end["error"]["code"], "E2010", "cut at {place}: {end}");
    let partial = &end["partial_data"];
    assert!(partial.is_null() || begins(partial, &answer()["data"]), "cut at {place}: {partial}");
    false
}

#[tokio::test]
async fn interruption_at_any_byte_returns_one_error_with_partial_data() {
    let directory = directory("Answer.", &[]);
    for wire in Wire::ALL {
        let reply = |place| Reply::text(answer().to_string()).chunk_size(9).interrupt_after(place);
        let mock = Mock::start(places().take(CUTS / Wire::ALL.len()).map(reply));
        let runtime = runtime_with(wire, &mock);
        let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
        let mut partial = 0;
        for place in places().take(CUTS / Wire::ALL.len()) {
            let stream = runtime.stream(&module, sample_input(), RunOptions::default()).unwrap();
            let chunks: Vec<Chunk> = stream.collect().await;
            partial += usize::from(!check(&chunks, place));
        }
        assert!(partial > CUTS / Wire::ALL.len() / 2, "{}: most cuts are before the end", wire.name());
    }
}
