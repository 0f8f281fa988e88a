use axum::http::{HeaderMap, HeaderValue, header};
use cog_json::Value;
use cog_spec::ResponseMode::{self, Both, Streaming, Sync};

use super::*;

/// Returns the delivery of a request with these headers, query and options for a module of this mode.
fn delivery(
    mode: ResponseMode,
    headers: &[(&'static str, &str)],
    query: &str,
    options: &str,
) -> Result<Delivery, String> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect();
    let options = Options::read(Value::parse(options).unwrap().node()).unwrap();
    let preference = ResponsePreference { headers: &headers, query: Some(query), options: &options };
    preference.delivery(mode).map_err(|error| error.into_envelope().error().unwrap().code.to_string())
}

fn accept(mode: ResponseMode, value: &str) -> Delivery {
    delivery(mode, &[("accept", value)], "", "{}").unwrap()
}

const SSE: Delivery = Delivery::Stream(Wire::Sse);
const NDJSON: Delivery = Delivery::Stream(Wire::Ndjson);

#[test]
fn precedence_of_the_response_mode() {
    let header = ("x-cognitive-response-mode", "streaming");
    let body = r#"{"response_mode": "sync"}"#;
    assert_eq!(delivery(Both, &[header], "response_mode=sync", body), Ok(SSE));
    assert_eq!(delivery(Both, &[], "response_mode=streaming", body), Ok(Delivery::Envelope));
    let json = ("accept", "application/json");
    assert_eq!(delivery(Both, &[json], "a=b&response_mode=streaming", "{}"), Ok(SSE));
    assert_eq!(delivery(Both, &[("accept", "application/x-ndjson")], "", "{}"), Ok(NDJSON));
    assert_eq!(delivery(Streaming, &[], "", "{}"), Ok(SSE));
    assert_eq!(delivery(Both, &[], "", "{}"), Ok(Delivery::Envelope));
}

#[test]
fn accept_is_read_with_weights_and_wildcards() {
    for (mode, value, expected) in [
        (Streaming, "*/*", SSE),
        (Sync, "*/*", Delivery::Envelope),
        (Both, "*/*", Delivery::Envelope),
        (Streaming, "application/json, text/plain, */*", Delivery::Envelope),
        (Both, "text/event-stream, */*;q=0.1", SSE),
        (Both, "application/json;q=0.5, application/x-ndjson;q=0.8", NDJSON),
        (Both, "text/event-stream;q=0.2, application/json", Delivery::Envelope),
        (Streaming, "application/*", NDJSON),
        (Both, "application/json, text/event-stream", SSE),
        (Streaming, "text/event-stream;q=0, */*", Delivery::Stream(Wire::Ndjson)),
        (Streaming, "image/png", SSE),
        (Both, "TEXT/Event-Stream; Q=1.0", SSE),
        (Both, "text/event-stream;q=heavy, application/json;q=0.9", SSE),
    ] {
        assert_eq!(accept(mode, value), expected, "{mode:?} {value}");
    }
}

#[test]
fn sync_module_falls_back_or_refuses_a_stream() {
    let delivery_of = |options| delivery(Sync, &[("accept", "text/event-stream")], "", options);
    assert_eq!(delivery_of("{}"), Ok(Delivery::EnvelopeInstead));
    assert_eq!(delivery_of(r#"{"require_streaming": true}"#), Err("E4010".to_owned()));
    assert!(Delivery::EnvelopeInstead.warning().is_some() && Delivery::Envelope.warning().is_none());
}

#[test]
fn require_streaming_requests_a_stream() {
    assert_eq!(delivery(Both, &[], "", r#"{"require_streaming": true}"#), Ok(SSE));
    assert_eq!(delivery(Sync, &[], "", r#"{"require_streaming": true}"#), Err("E4010".to_owned()));
}

#[test]
fn unknown_mode_is_refused() {
    let header = ("x-cognitive-response-mode", "stream");
    assert_eq!(delivery(Both, &[header], "", "{}"), Err("E1004".to_owned()));
    assert_eq!(delivery(Both, &[], "response_mode=both", "{}"), Err("E1004".to_owned()));
}
