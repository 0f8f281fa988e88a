//! Limits of request sizes and rates.

use cog_server::ServerSettings;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};

use crate::support::{EXECUTE, LONG, Site, answer, code};

/// Returns a body of exactly this many bytes.
fn body(bytes: usize) -> String {
    let empty = json!({ "input": { "query": "" } }).to_string().len();
    json!({ "input": { "query": "x".repeat(bytes - empty) } }).to_string()
}

#[tokio::test]
async fn body_limit_is_exact() {
    let mut settings = ServerSettings::default();
    settings.max_body_bytes = 5000;
    let site = Site::start(settings, [answer()]).await;
    let post = |bytes| {
        let request = site.http.post(site.url(EXECUTE)).header("content-type", "application/json");
        request.body(body(bytes)).send()
    };
    assert_eq!(post(5000).await.unwrap().status(), 200);
    assert_eq!(code(post(5001).await.unwrap()).await, (413, "E1005".to_owned()));
    site.counts(r#"cog_refused_total{reason="body_size"} 1"#).await;
    assert_eq!(site.mock.requests().len(), 1);
}

#[tokio::test]
async fn message_limit_is_exact() {
    let mut settings = ServerSettings::default();
    settings.max_message_bytes = 5000;
    let site = Site::start(settings, [answer()]).await;
    let url = format!("ws://{}/v1/modules/m/ws", site.address);
    let (mut socket, _) = connect_async(url).await.unwrap();
    socket.send(Message::text(body(5000))).await.unwrap();
    let first = socket.next().await.unwrap().unwrap().into_text().unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["ok"], true, "{first}");
    socket.send(Message::text(body(5001))).await.unwrap();
    let closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => return frame.unwrap().code,
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONG, closed).await.unwrap(), CloseCode::Size);
}

#[tokio::test]
async fn rate_limit_is_exact() {
    let mut settings = ServerSettings::default();
    (settings.requests_per_second, settings.request_burst) = (1, 3);
    let site = Site::start(settings, [answer()]).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(site.get("/v1/modules").await);
    }
    let refused: Vec<_> = answers.into_iter().filter(|answer| answer.status() == 429).collect();
    assert!((1..=7).contains(&refused.len()), "{} of ten were refused", refused.len());
    for answer in refused {
        assert!(answer.headers().contains_key("retry-after"));
        assert_eq!(code(answer).await.1, "E4002");
    }
    assert_eq!(site.get("/health").await.status(), 200);
}
