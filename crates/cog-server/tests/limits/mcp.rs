//! The checks and limits of `/mcp`, which are those of the other routes.

use std::time::Duration;

use cog_server::{ServerSettings, Tokens};
use reqwest::{Response, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{LONG, Site, answer, code, endless};

const TOKEN: &str = "abcdefghij0123456789";

/// A call of the tool `m` in the older revision, which has no metadata.
fn call() -> Value {
    let params = json!({ "name": "m", "arguments": { "query": "why?" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

async fn post(site: &Site, headers: &[(&'static str, &str)], body: String) -> Response {
    let mut all = HeaderMap::new();
    let usual = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    for (name, value) in usual.iter().chain(headers) {
        all.insert(*name, value.parse().unwrap());
    }
    site.http.post(site.url("/mcp")).headers(all).body(body).send().await.unwrap()
}

async fn envelope(response: Response) -> Value {
    assert_eq!(response.status(), 200);
    let message: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    message["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn host_origin_and_token_are_checked() {
    let mut settings = ServerSettings::default();
    settings.access.tokens = Some(Tokens::parse(&format!("ci:{TOKEN}")).unwrap());
    let site = Site::start(settings, [answer()]).await;
    let bearer = format!("Bearer {TOKEN}");
    let token = ("authorization", bearer.as_str());
    for (headers, status) in [
        (vec![], 401),
        (vec![("authorization", "Bearer wrong-token-0123456789")], 401),
        (vec![token, ("origin", "https://evil.example")], 403),
        (vec![token, ("host", "evil.example")], 403),
    ] {
        let refused = post(&site, &headers, call().to_string()).await;
        assert_eq!(code(refused).await.0, status, "{headers:?}");
    }
    assert!(site.mock.requests().is_empty());
    assert_eq!(envelope(post(&site, &[token], call().to_string()).await).await["ok"], true);
}

#[tokio::test]
async fn body_is_limited_in_size_and_time() {
    let mut settings = ServerSettings::default();
    (settings.max_body_bytes, settings.body_timeout) = (5000, Duration::from_millis(100));
    let site = Site::start(settings, [answer()]).await;
    assert_eq!(code(post(&site, &[], "x".repeat(5001)).await).await, (413, "E1005".to_owned()));
    let mut half = TcpStream::connect(site.address).await.unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", site.address);
    half.write_all(format!("{head}Content-Length: 100\r\n\r\n{{\"jsonrpc\"").as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(LONG, half.read_exact(&mut status)).await.unwrap().unwrap();
    assert_eq!(&status, b"HTTP/1.1 408");
    assert_eq!(envelope(post(&site, &[], call().to_string()).await).await["ok"], true);
}

#[tokio::test]
async fn body_that_is_no_message_gets_an_error_of_json_rpc() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let call = call().to_string();
    let deep = format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    for (body, code, name) in [
        ("{".to_owned(), -32700, "E1000"),
        (String::new(), -32700, "E1000"),
        (format!("{call} x"), -32700, "E1000"),
        (format!("[{call}, {call}]"), -32600, "E1004"),
        ("[]".to_owned(), -32600, "E1004"),
        (format!(" \n[{call}"), -32700, "E1000"),
        ("7".to_owned(), -32600, "E1001"),
        ("{}".to_owned(), -32600, "E1001"),
        (r#"{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}"#.to_owned(), -32600, "E1001"),
        (deep, -32600, "E1001"),
    ] {
        for revision in ["2025-03-26", "2025-06-18"] {
            let response = post(&site, &[("mcp-protocol-version", revision)], body.clone()).await;
            assert_eq!(response.status(), 400, "{body}");
            assert_eq!(response.headers()["content-type"], "application/json");
            let message: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &Value::Null));
            assert_eq!(message["error"]["code"], code, "{body}: {message}");
            assert_eq!(message["error"]["data"]["code"], name, "{body}: {message}");
            let names_revision = message["error"]["message"].as_str().unwrap().contains("2025-06-18");
            assert_eq!(names_revision, name == "E1004", "{body}: {message}");
        }
    }
    assert!(site.mock.requests().is_empty());
    // Another content type of JSON is the same.
    let response = post(&site, &[("content-type", "application/vnd.me+json")], call).await;
    assert_eq!(envelope(response).await["ok"], true);
}

#[tokio::test]
async fn progress_token_is_bounded() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let with_token = |token: Value| {
        let mut call = call();
        call["params"]["_meta"] = json!({ "progressToken": token });
        call.to_string()
    };
    for token in [json!(7), json!("x".repeat(256))] {
        let text = post(&site, &[], with_token(token)).await.text().await.unwrap();
        assert!(text.contains("structuredContent"), "{text}");
    }
    let text = post(&site, &[], with_token(json!("x".repeat(257)))).await.text().await.unwrap();
    assert!(text.contains("-32602") && text.contains("progressToken") && !text.contains("xxx"), "{text}");
}

#[tokio::test]
async fn call_takes_a_slot_until_it_ends() {
    let mut settings = ServerSettings::default();
    settings.max_streams_per_client = 0;
    let site = Site::start(settings, [answer()]).await;
    let refused = envelope(post(&site, &[], call().to_string()).await).await;
    assert_eq!(refused["error"]["code"], "E4002", "{refused}");
    let mut settings = ServerSettings::default();
    settings.max_streams_per_client = 1;
    let site = Site::start(settings, [answer()]).await;
    for _ in 0..3 {
        assert_eq!(envelope(post(&site, &[], call().to_string()).await).await["ok"], true);
    }
}

#[tokio::test]
async fn shutdown_ends_a_call_with_its_error() {
    let mut settings = ServerSettings::default();
    settings.shutdown_timeout = Duration::from_millis(1);
    let mut site = Site::start(settings, [endless()]).await;
    let (http, url) = (site.http.clone(), site.url("/mcp"));
    let request = http.post(url).header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream").body(call().to_string());
    let (response, ()) = tokio::join!(request.send(), async {
        site.counts("cog_streams_open 1").await;
        site.shut_down();
    });
    assert_eq!(envelope(response.unwrap()).await["error"]["code"], "E2010");
    site.ended().await;
}

#[tokio::test]
async fn disconnect_cancels_the_call() {
    let site = Site::start(ServerSettings::default(), [endless()]).await;
    let body = call().to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        site.address,
        body.len()
    );
    let mut client = TcpStream::connect(site.address).await.unwrap();
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    site.counts("cog_streams_open 1").await;
    drop(client);
    site.counts("cog_streams_open 0").await;
}
