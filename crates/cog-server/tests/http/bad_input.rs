use std::time::Duration;

use cog_testkit::Reply;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{ANSWER, BODY, Stage, envelope, failure};

#[tokio::test]
async fn invalid_body_has_a_precise_error() {
    let stage = Stage::answering().await;
    let deep = format!(r#"{{"input": {}"#, "[".repeat(200));
    for (body, status, expected) in [
        ("", 400, "E1000"),
        ("{", 400, "E1000"),
        ("{\"input\": {\"query\": \"\\ud800\"}} x", 400, "E1000"),
        ("\u{feff}{}", 400, "E1000"),
        (deep.as_str(), 400, "E1000"),
        ("null", 400, "E1003"),
        ("[1]", 400, "E1003"),
        ("{}", 400, "E1002"),
        (r#"{"inputs": {}}"#, 400, "E1001"),
        (r#"{"input": "text"}"#, 400, "E1003"),
        (r#"{"input": {"query": "?"}, "_options": []}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_options": {"timeout_ms": -1}}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_options": {"timeout_ms": 1e300}}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_options": {"base_url": "http://evil"}}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_options": {"detach": "yes"}}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_recovery": {"session_id": 7}}"#, 400, "E1001"),
        (r#"{"input": {"query": "?"}, "_recovery": {"session_id": "s", "last_seq": -3}}"#, 400, "E1001"),
    ] {
        assert_eq!(failure(stage.execute("live", body)).await, (status, expected.to_owned()), "{body}");
    }
    assert!(stage.mock.requests().is_empty());
}

#[tokio::test]
async fn body_without_input_shows_how_to_wrap_it() {
    let stage = Stage::answering().await;
    let advice = async |module: &str, body: &str| {
        let failed = envelope(stage.execute(module, body).send().await.unwrap()).await;
        failed.pointer("/error/suggestion").map(|advice| advice.as_str().unwrap().to_owned())
    };
    let wrap = Some(r#"Wrap the input: {"input": {…}}."#.to_owned());
    assert_eq!(advice("live", r#"{"query": "?"}"#).await, wrap);
    assert_eq!(advice("live", "{}").await, wrap);
    assert_eq!(advice("live", r#"{"input": {"query": "?"}, "more": 1}"#).await, None);
    assert_eq!(advice("xyz", BODY).await.as_deref(), Some("`GET /v1/modules` lists the modules."));
}

#[tokio::test]
async fn syntax_error_contains_its_line() {
    let stage = Stage::answering().await;
    let failed = envelope(stage.execute("live", "{\n  \"input\": oops\n}").send().await.unwrap()).await;
    let message = failed.pointer("/error/message").unwrap().as_str().unwrap();
    assert!(message.contains("line 2, column 12"), "{message}");
}

#[tokio::test]
async fn invalid_utf8_is_rejected() {
    let stage = Stage::answering().await;
    let request = stage.execute("live", "").body(b"{\"input\": \"\xff\"}".to_vec());
    assert_eq!(failure(request).await, (400, "E1000".to_owned()));
}

#[tokio::test]
async fn other_content_type_returns_415() {
    let stage = Stage::answering().await;
    let url = stage.url("/v1/modules/live/execute");
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let request = stage.client.post(&url).header("content-type", kind).body(BODY);
        assert_eq!(failure(request).await, (415, "E1001".to_owned()), "{kind}");
    }
    assert_eq!(failure(stage.client.post(&url).body(BODY)).await, (415, "E1001".to_owned()));
    for kind in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.me+json"] {
        let request = stage.client.post(&url).header("content-type", kind).body(BODY);
        assert_eq!(request.send().await.unwrap().status(), 200, "{kind}");
    }
}

#[tokio::test]
async fn compressed_body_returns_415() {
    let stage = Stage::answering().await;
    let request = stage.execute("live", BODY).header("content-encoding", "gzip");
    assert_eq!(failure(request).await, (415, "E1001".to_owned()));
    let request = stage.execute("live", BODY).header("content-encoding", "identity");
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn body_over_the_limit_returns_413() {
    let stage = Stage::with([Reply::text(ANSWER)], |settings| settings.max_body_bytes = 100).await;
    let large = format!(r#"{{"input": {{"query": "{}"}}}}"#, "x".repeat(200));
    assert_eq!(failure(stage.execute("live", &large)).await, (413, "E1005".to_owned()));
    let parts: Vec<Result<String, std::io::Error>> = vec![Ok(large.clone()), Ok(large)];
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
    assert_eq!(failure(stage.execute("live", "").body(body)).await, (413, "E1005".to_owned()));
}

/// Sends these bytes and returns everything that the server sends until the connection closes.
async fn raw(stage: &Stage, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&stage.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn invalid_http_closes_the_connection() {
    let stage = Stage::with([Reply::text(ANSWER)], |settings| {
        settings.max_header_bytes = 16 << 10;
        settings.header_timeout = Duration::from_millis(300);
        settings.body_timeout = Duration::from_millis(300);
    })
    .await;
    assert!(raw(&stage, b"\x16\x03\x01\x02\x00\x01\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert!(raw(&stage, b"GET /health HTTP/1.1\r\nhost : x\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let huge = format!("GET /health HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(32 << 10));
    assert!(raw(&stage, huge.as_bytes()).await.starts_with("HTTP/1.1 431"));
    assert_eq!(raw(&stage, b"").await, "");
    assert_eq!(raw(&stage, b"GET /health HTTP/1.1\r\nhost").await, "");
    let twice = b"POST /run HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    assert!(raw(&stage, twice).await.starts_with("HTTP/1.1 501"));
    let slow = b"POST /run HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    assert!(raw(&stage, slow).await.starts_with("HTTP/1.1 408"));
}
