//! Metrics, timing and traces.

use cog_server::ServerSettings;
use cog_testkit::Reply;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

use crate::support::{EXECUTE, KEY, Site, answer, code, question, until};

#[tokio::test]
async fn run_counts_calls_and_tokens() {
    let site = Site::start(ServerSettings::default(), [answer().usage(11, 7)]).await;
    site.run().await;
    until(&mut site.stream().await, "\"final\":true").await;
    for line in [
        r#"cog_runs_total{module="m",outcome="answered"} 2"#,
        r#"cog_provider_calls_total{provider="openai",outcome="answered"} 2"#,
        r#"cog_provider_first_token_seconds_count{provider="openai"} 2"#,
        r#"cog_tokens_total{module="m",direction="in"} 22"#,
        r#"cog_tokens_total{module="m",direction="out"} 14"#,
        r#"cog_http_requests_total{method="POST",route="/v1/modules/{name}/execute",status="200"} 2"#,
        r#"cog_sessions{state="finished"} 1"#,
    ] {
        site.counts(line).await;
    }
}

#[tokio::test]
async fn clients_cannot_create_labels() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    for path in ["/v1/modules/made-up", "/made-up", "/v1/modules?made-up=1"] {
        site.get(path).await;
    }
    let response = site.get("/metrics").await;
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = response.text().await.unwrap();
    assert!(!text.contains("made-up") && !text.contains(KEY), "{text}");
    assert!(text.contains(r#"route="other",status="404""#), "{text}");
}

#[tokio::test]
async fn response_has_server_timing_and_trace_id() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = site.http.post(site.url(EXECUTE)).header("content-type", "application/json");
    let request = request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    let response = request.header("x-request-id", "r-1").body(question().to_string()).send().await.unwrap();
    assert_eq!(response.headers()["x-request-id"], "r-1");
    let timing = response.headers()["server-timing"].to_str().unwrap().to_owned();
    for part in ["total;dur=", "provider;dur=", "cog;dur="] {
        assert!(timing.contains(part), "{timing}");
    }
    let envelope: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(envelope["meta"]["trace_id"], trace);
    let mut stream = site.stream().await;
    assert!(stream.headers()["server-timing"].to_str().unwrap().starts_with("prepare;dur="));
    until(&mut stream, "\"final\":true").await;
}

#[tokio::test]
async fn open_circuit_is_visible_in_metrics() {
    let site = Site::start(ServerSettings::default(), [Reply::error(503, "overloaded")]).await;
    site.counts(r#"cog_provider_available{provider="openai"} 1"#).await;
    for _ in 0..6 {
        assert_eq!(code(site.run().await).await, (502, "E4001".to_owned()));
    }
    site.counts(r#"cog_provider_available{provider="openai"} 0"#).await;
    site.counts(r#"cog_provider_calls_total{provider="openai",outcome="E4001"} 5"#).await;
    site.counts(r#"cog_provider_circuit_rejections_total{provider="openai"} 1"#).await;
    site.counts(r#"cog_runs_total{module="m",outcome="E4001"} 6"#).await;
    assert_eq!(site.mock.requests().len(), 5);
}

#[tokio::test]
async fn runs_of_a_websocket_share_its_trace() {
    let site = Site::start(ServerSettings::default(), [answer()]).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut request = format!("ws://{}/v1/modules/m/ws", site.address).into_client_request().unwrap();
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    request.headers_mut().insert("traceparent", parent.parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    for _ in 0..2 {
        socket.send(Message::text(question().to_string())).await.unwrap();
        let end = loop {
            let text = socket.next().await.unwrap().unwrap().into_text().unwrap();
            if text.contains("\"final\"") {
                break serde_json::from_str::<Value>(&text).unwrap();
            }
        };
        assert_eq!(end["meta"]["trace_id"], trace, "{end}");
    }
}
