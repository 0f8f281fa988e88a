//! Clients that disconnect, and a server that shuts down.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use cog_server::ServerSettings;
use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::support::{LONG, Site, answer, endless, question, until};

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
async fn no_request_is_lost_while_the_load_balancer_learns_of_the_shutdown() {
    let mut settings = ServerSettings::default();
    settings.drain_delay = LONG;
    let mut site = Site::start(settings, [answer()]).await;
    let shutdown = site.shutdown.take().unwrap();
    let is_told = AtomicBool::new(false);
    let sent = AtomicUsize::new(0);
    // Each reuses its connections as long as the server allows it.
    let clients = join_all((0..8).map(|_| async {
        while !is_told.load(Ordering::SeqCst) {
            let response = site.http.get(site.url("/v1/modules/m")).send().await.unwrap();
            assert_eq!(response.status(), 200);
            response.bytes().await.unwrap();
            sent.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let probe = async {
        while sent.load(Ordering::SeqCst) < 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shutdown.send(()).unwrap();
        loop {
            let ready = site.get("/ready").await;
            if ready.status() == 503 {
                assert_eq!(ready.headers()["connection"], "close");
                assert!(ready.headers().contains_key("retry-after"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let before = sent.load(Ordering::SeqCst);
        // The load balancer learns of it only now: requests arrive still, on old connections and on new ones.
        while sent.load(Ordering::SeqCst) < before + 40 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        is_told.store(true, Ordering::SeqCst);
    };
    timeout(LONG, futures_util::future::join(clients, probe)).await.unwrap();
    assert_eq!(site.get("/v1/modules").await.headers()["connection"], "close");
    assert_eq!(site.get("/health").await.status(), 200);
}
