use reqwest::Response;

use crate::support::{BODY, Stage, envelope, failure};

/// Returns the content type of a response.
fn kind(response: &Response) -> String {
    response.headers()["content-type"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn response_mode_precedence() {
    let stage = Stage::answering().await;
    let (json, sse, ndjson) = ("application/json", "text/event-stream", "application/x-ndjson");
    let body_sync = r#"{"input": {"query": "?"}, "_options": {"response_mode": "sync"}}"#;
    let body_streaming = r#"{"input": {"query": "?"}, "_options": {"response_mode": "streaming"}}"#;
    for (module, query, body, headers, expected) in [
        ("live", "", BODY, &[][..], sse),
        ("live", "", BODY, &[("accept", "*/*")], sse),
        ("live", "", BODY, &[("accept", ndjson)], ndjson),
        ("live", "", BODY, &[("accept", json)], json),
        ("live", "?response_mode=sync", BODY, &[("accept", sse)], json),
        ("live", "?response_mode=sync", body_streaming, &[], sse),
        ("live", "", body_streaming, &[("x-cognitive-response-mode", "sync")], json),
        ("either", "", BODY, &[("accept", "*/*")], json),
        ("either", "", BODY, &[("accept", sse)], sse),
        ("either", "?response_mode=streaming", body_sync, &[], json),
        ("once", "", BODY, &[], json),
    ] {
        let request = stage.execute(&format!("{module}/execute{query}#"), body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let url = stage.url(&format!("/v1/modules/{module}/execute{query}"));
        let mut request = request.build().unwrap();
        *request.url_mut() = url.parse().unwrap();
        let response = stage.client.execute(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(kind(&response), expected, "{module} {query} {body} {headers:?}");
        assert!(!response.headers().contains_key("x-cognitive-warning"));
    }
}

#[tokio::test]
async fn fallback_to_envelope_has_header_and_warning() {
    let stage = Stage::answering().await;
    let response = stage.execute("once", BODY).header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(kind(&response), "application/json");
    let warning = response.headers()["x-cognitive-warning"].to_str().unwrap().to_owned();
    assert!(warning.starts_with("STREAMING_UNAVAILABLE; fallback=sync; reason="), "{warning}");
    let envelope = envelope(response).await;
    let warning = envelope.pointer("/_warnings/0").unwrap();
    assert_eq!(warning.get("code").unwrap().as_str(), Some("W4010"));
    assert_eq!(warning.get("fallback_used").unwrap().as_str(), Some("sync"));
    assert_eq!(envelope.get("ok").unwrap().as_bool(), Some(true));
}

#[tokio::test]
async fn required_stream_of_a_sync_module_is_refused() {
    let stage = Stage::answering().await;
    let body = r#"{"input": {"query": "?"}, "_options": {"require_streaming": true}}"#;
    assert_eq!(failure(stage.execute("once", body)).await, (406, "E4010".to_owned()));
    assert_eq!(kind(&stage.execute("either", body).send().await.unwrap()), "text/event-stream");
}

#[tokio::test]
async fn unknown_mode_is_refused() {
    let stage = Stage::answering().await;
    let request = stage.execute("live", BODY).header("x-cognitive-response-mode", "fast");
    assert_eq!(failure(request).await, (400, "E1004".to_owned()));
}
