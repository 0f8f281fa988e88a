use std::time::Duration;

use cog_testkit::Reply;
use futures_util::StreamExt as _;
use tokio_tungstenite::tungstenite::Message;

use crate::{
    sockets::{frames, open},
    support::{ANSWER, BODY, Stage, begun, code, comparable, envelope, events, lines},
};

#[tokio::test]
async fn every_transport_carries_the_same_chunks() {
    let stage = Stage::answering().await;
    let sse = stage.execute("live", BODY).send().await.unwrap();
    let session = sse.headers()["x-session-id"].to_str().unwrap().to_owned();
    assert_eq!(sse.headers()["x-accel-buffering"], "no");
    let events = events(&sse.text().await.unwrap());
    let names: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"meta"), Some(&"final")));
    assert!(names[1..names.len() - 1].iter().all(|name| *name == "chunk"), "{names:?}");
    assert_eq!(events[0].id, format!("{session}:0"));
    assert_eq!(events[1].id, format!("{session}:1"));
    let sse: Vec<_> = events.into_iter().map(|event| event.data).collect();

    let ndjson = stage.ndjson(BODY).await;
    let mut socket = open(&stage, "live").await;
    let frames = frames(&mut socket, BODY).await;

    assert_eq!(comparable(&sse), comparable(&ndjson));
    assert_eq!(comparable(&sse), comparable(&frames));
}

#[tokio::test]
async fn server_sent_events_have_the_documented_form() {
    let stage = Stage::answering().await;
    let text = stage.execute("live", BODY).send().await.unwrap().text().await.unwrap();
    assert!(text.starts_with("retry: 1000\nevent: meta\nid: sess_"), "{text}");
    assert!(text.ends_with("\n\n"));
    assert!(!text.contains('\r'));
}

#[tokio::test]
async fn the_fold_of_the_stream_is_the_sync_answer() {
    let stage = Stage::answering().await;
    let chunks = stage.ndjson(BODY).await;
    let sync = envelope(stage.execute("once", BODY).send().await.unwrap()).await;
    assert_eq!(chunks.last().unwrap().get("data").unwrap().to_value(), sync.get("data").unwrap().to_value());
}

#[tokio::test]
async fn first_chunk_is_sent_before_the_model_ends() {
    let stage = Stage::hanging().await;
    let response = stage.execute("live", BODY).send().await.unwrap();
    let mut body = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("data.result") {
        text += std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap();
    }
    assert_eq!(stage.mock.interrupted(), 0);
    drop(body);
    // The last reader has disconnected: the call to the model is cancelled.
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn disconnect_of_a_sync_client_cancels_the_call() {
    let stage = Stage::hanging().await;
    let request = tokio::spawn(stage.execute("once", BODY).send());
    while stage.mock.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    request.abort();
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn idle_stream_sends_keepalives() {
    let beating =
        |settings: &mut cog_server::ServerSettings| settings.keepalive_interval = Duration::from_millis(20);
    for (accept, beat) in [("text/event-stream", ":\n\n"), ("application/x-ndjson", "\n\n")] {
        let stage = Stage::with([begun()], beating).await;
        let response = stage.execute("live", BODY).header("accept", accept).send().await.unwrap();
        let mut body = response.bytes_stream();
        let mut text = String::new();
        while !text.contains(beat) {
            text += std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap();
        }
    }
    let stage = Stage::with([begun()], beating).await;
    let mut socket = open(&stage, "live").await;
    futures_util::SinkExt::send(&mut socket, Message::text(BODY)).await.unwrap();
    while !matches!(socket.next().await.unwrap().unwrap(), Message::Ping(_)) {}
}

#[tokio::test]
async fn interrupted_provider_stream_ends_with_one_error_chunk() {
    let half = Reply::text(ANSWER).chunk_size(10).interrupt_after(2000);
    let stage = Stage::start([half]).await;
    let response = stage.execute("live", BODY).header("accept", "application/x-ndjson").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let chunks = lines(&response.text().await.unwrap());
    let errors: Vec<_> = chunks.iter().filter(|chunk| chunk.get("error").is_some()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(code(chunks.last().unwrap()), "E2010");
    assert!(chunks.last().unwrap().pointer("/error/recovery/last_seq").is_some());
}

#[tokio::test]
async fn snapshots_can_be_requested() {
    let stage = Stage::answering().await;
    let body = r#"{"input": {"query": "?"}, "_options": {"chunk_type": "snapshot"}}"#;
    let chunks = stage.ndjson(body).await;
    assert!(chunks.iter().all(|chunk| chunk.pointer("/chunk/delta").is_none()));
}
