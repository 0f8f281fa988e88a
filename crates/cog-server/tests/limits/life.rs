//! Clients that disconnect, and a server that shuts down.

use std::time::Duration;

use cog_server::ServerSettings;
use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::support::{LONG, Site, answer, code, endless, question, until};

/// The maximum time until the provider's call of a disconnected client is cancelled.
const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn disconnected_clients_release_everything() {
    let mut settings = ServerSettings::default();
    settings.max_streams_per_client = 200;
    let site = Site::start(settings, [endless()]).await;
    let streams = join_all((0..200).map(|_| async {
        let mut stream = site.stream().await;
        until(&mut stream, "begun").await;
        stream
    }));
    let streams = timeout(LONG, streams).await.unwrap();
    assert_eq!(site.mock.interrupted(), 0);
    drop(streams);
    interrupted(&site, 200).await;
    site.counts("cog_streams_open 0").await;
}

#[tokio::test]
async fn disconnected_websockets_release_everything() {
    let site = Site::start(ServerSettings::default(), [endless()]).await;
    let sockets = join_all((0..20).map(|_| async {
        let (mut socket, _) = connect_async(format!("ws://{}/v1/modules/m/ws", site.address)).await.unwrap();
        socket.send(Message::text(question().to_string())).await.unwrap();
        while !socket.next().await.unwrap().unwrap().into_text().unwrap().contains("begun") {}
        socket
    }));
    let sockets = timeout(LONG, sockets).await.unwrap();
    assert_eq!(site.mock.interrupted(), 0);
    drop(sockets);
    interrupted(&site, 20).await;
    site.counts("cog_streams_open 0").await;
}

#[tokio::test]
async fn disconnect_during_a_sync_run_cancels_the_call() {
    let site = Site::start(ServerSettings::default(), [endless()]).await;
    let body = question().to_string();
    let head = format!(
        "POST /v1/modules/m/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut client = TcpStream::connect(site.address).await.unwrap();
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let request = async {
        while site.mock.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, request).await.unwrap();
    // The mock detects a cancelled call only after its reply has started.
    tokio::time::sleep(SOON / 5).await;
    drop(client);
    interrupted(&site, 1).await;
    site.counts(r#"cog_provider_calls_total{provider="openai",outcome="dropped"} 1"#).await;
}

/// Waits until the mock has seen this many cancelled calls.
async fn interrupted(site: &Site, count: usize) {
    let seen = async {
        while site.mock.interrupted() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let seen = timeout(SOON * 5, seen).await;
    assert!(seen.is_ok(), "{} of {count} calls were cancelled", site.mock.interrupted());
}

#[tokio::test]
async fn shutdown_stops_streams_with_recovery() {
    let mut settings = ServerSettings::default();
    settings.shutdown_timeout = Duration::from_millis(100);
    let mut site = Site::start(settings, [endless()]).await;
    let mut stream = site.stream().await;
    until(&mut stream, "begun").await;
    site.shut_down();
    let rest = timeout(LONG, stream.text()).await.unwrap().unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "E2010", "{last}");
    assert_eq!(last["error"]["details"]["reason"], "shutdown");
    assert!(last["error"]["recovery"].is_object(), "{last}");
    assert!(last["partial_data"]["result"].as_str().unwrap().starts_with("begun"));
    site.ended().await;
}

#[tokio::test]
async fn shutdown_waits_for_streams() {
    let reply = answer().chunk_size(4).pause(Duration::from_millis(20));
    let mut site = Site::start(ServerSettings::default(), [reply]).await;
    let mut stream = site.stream().await;
    until(&mut stream, "\"chunk\"").await;
    site.shut_down();
    until(&mut stream, "\"final\":true").await;
    site.ended().await;
}

#[tokio::test]
async fn shutdown_refuses_requests_on_open_connections() {
    let mut site = Site::start(ServerSettings::default(), [endless()]).await;
    let mut stream = site.stream().await;
    until(&mut stream, "begun").await;
    // The client reuses this connection.
    assert_eq!(site.get("/health").await.text().await.unwrap().trim(), r#"{"status":"ok"}"#);
    site.shut_down();
    let refused = async {
        loop {
            match site.http.get(site.url("/v1/modules")).send().await {
                Ok(response) if response.status() == 503 => return Some(response),
                Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(_) => return None,
            }
        }
    };
    let refused = timeout(LONG, refused).await.unwrap().expect("the connection was closed without an answer");
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(refused.headers()["connection"], "close");
    assert_eq!(code(refused).await, (503, "E4001".to_owned()));
    drop(stream);
    site.ended().await;
}
