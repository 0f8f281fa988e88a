//! The maximum number of open streams, per client and in total, and what simultaneous runs may spend.

use cog_run::BudgetLimits;
use cog_server::ServerSettings;
use serde_json::json;

use crate::support::{Site, answer, code, endless, question, until};

fn settings(per_client: usize, in_all: usize) -> ServerSettings {
    let mut settings = ServerSettings::default();
    settings.max_streams_per_client = per_client;
    settings.max_streams = in_all;
    settings
}

#[tokio::test]
async fn streams_per_client_are_limited() {
    let site = Site::start(settings(2, 10), [endless()]).await;
    let (mut first, mut second) = (site.stream().await, site.stream().await);
    until(&mut first, "begun").await;
    until(&mut second, "begun").await;
    let third = site.stream().await;
    assert_eq!(third.headers()["retry-after"], "1");
    assert_eq!(code(third).await, (429, "E4002".to_owned()));
    site.counts("cog_streams_open 2").await;
    site.counts(r#"cog_refused_total{reason="max_streams_per_client"} 1"#).await;
}

#[tokio::test]
async fn streams_in_total_are_limited() {
    let site = Site::start(settings(10, 1), [endless()]).await;
    until(&mut site.stream().await, "begun").await;
    site.counts("cog_streams_open 0").await;
    let mut first = site.stream().await;
    until(&mut first, "begun").await;
    assert_eq!(code(site.stream().await).await, (429, "E4002".to_owned()));
    site.counts(r#"cog_refused_total{reason="max_streams"} 1"#).await;
}

#[tokio::test]
async fn slot_is_free_after_disconnect() {
    let site = Site::start(settings(1, 1), [endless()]).await;
    for _ in 0..3 {
        until(&mut site.stream().await, "begun").await;
        site.counts("cog_streams_open 0").await;
    }
    assert_eq!(site.mock.requests().len(), 3);
}

#[tokio::test]
async fn slot_is_free_after_the_stream_ends() {
    let site = Site::start(settings(1, 1), [answer()]).await;
    for _ in 0..3 {
        until(&mut site.stream().await, "\"final\":true").await;
        site.counts("cog_streams_open 0").await;
    }
}

#[tokio::test]
async fn detached_run_holds_its_slot_until_it_ends() {
    let site = Site::start(settings(1, 1), [endless()]).await;
    let mut body = question();
    body["_options"] = json!({ "detach": true });
    let accepted = site.execute(&body).await;
    assert_eq!(accepted.status(), 202);
    let accepted: serde_json::Value = serde_json::from_str(&accepted.text().await.unwrap()).unwrap();
    assert_eq!(code(site.stream().await).await, (429, "E4002".to_owned()));
    let session = site.url(&format!("/v1/sessions/{}", accepted["session_id"].as_str().unwrap()));
    assert_eq!(site.http.delete(session).send().await.unwrap().status(), 200);
    site.counts("cog_streams_open 0").await;
}

#[tokio::test]
async fn single_envelope_takes_no_slot() {
    let site = Site::start(settings(0, 0), [answer()]).await;
    assert_eq!(site.run().await.status(), 200);
    assert_eq!(code(site.stream().await).await, (429, "E4002".to_owned()));
}

#[tokio::test]
async fn session_reader_takes_a_slot() {
    let site = Site::start(settings(2, 10), [endless()]).await;
    let mut first = site.stream().await;
    until(&mut first, "begun").await;
    let events = format!("/v1/sessions/{}/events", first.headers()["x-session-id"].to_str().unwrap());
    let mut second = site.get(&events).await;
    until(&mut second, "begun").await;
    assert_eq!(code(site.get(&events).await).await, (429, "E4002".to_owned()));
    drop(second);
    site.counts("cog_streams_open 1").await;
}

#[tokio::test]
async fn simultaneous_requests_do_not_exceed_the_budget_of_a_client() {
    let mut settings = ServerSettings::default();
    settings.client_budget = BudgetLimits { max_tokens: Some(1), ..BudgetLimits::default() };
    let site = Site::start(settings, [answer()]).await;
    let responses = futures_util::future::join_all((0..50).map(|_| site.run())).await;
    let mut admitted = 0;
    for response in responses {
        match response.status().as_u16() {
            200 => admitted += 1,
            _ => {
                assert!(response.headers().contains_key("retry-after"));
                assert_eq!(code(response).await, (429, "E4002".to_owned()));
            }
        }
    }
    assert_eq!((admitted, site.mock.requests().len()), (1, 1));
}
