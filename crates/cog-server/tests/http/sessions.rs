use std::time::Duration;

use cog_json::Value;
use cog_testkit::Reply;
use futures_util::StreamExt as _;

use crate::support::{ANSWER, BODY, Stage, code, envelope, events, failure, lines};

const DETACHED: &str = r#"{"input": {"query": "why?"}, "_options": {"detach": true}}"#;

async fn text(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> String {
    let request = stage.client.get(stage.url(path));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.text().await.unwrap()
}

/// Waits until a session has this state, and returns it.
pub(crate) async fn state(stage: &Stage, id: &str, wanted: &str) -> Value {
    loop {
        let info = envelope(stage.get(&format!("/v1/sessions/{id}")).await).await;
        if info.get("state").unwrap().as_str() == Some(wanted) {
            return info;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn detached_run_can_be_read_later() {
    let stage = Stage::answering().await;
    let response = stage.execute("once", DETACHED).send().await.unwrap();
    assert_eq!(response.status(), 202);
    let accepted = envelope(response).await;
    let id = accepted.get("session_id").unwrap().as_str().unwrap();
    let url = accepted.get("events_url").unwrap().as_str().unwrap();
    assert_eq!(url, format!("/v1/sessions/{id}/events"));
    let info = state(&stage, id, "finished").await;
    assert_eq!(info.get("module").unwrap().as_str(), Some("once"));
    let read = events(&text(&stage, url, &[]).await);
    assert_eq!(read.last().unwrap().event, "final");
    let again = lines(&text(&stage, url, &[("accept", "application/x-ndjson")]).await);
    assert_eq!(read.into_iter().map(|event| event.data).collect::<Vec<_>>(), again);
    assert_eq!(stage.mock.requests().len(), 1);
}

#[tokio::test]
async fn a_stream_is_resumed_after_the_last_event() {
    let stage = Stage::answering().await;
    let response = stage.execute("live", BODY).send().await.unwrap();
    let id = response.headers()["x-session-id"].to_str().unwrap().to_owned();
    let complete = events(&response.text().await.unwrap());
    let path = format!("/v1/sessions/{id}/events");
    for seq in [0, 3, complete.len() - 2] {
        let rest = events(&text(&stage, &path, &[("last-event-id", &format!("{id}:{seq}"))]).await);
        assert_eq!(rest[0].event, "meta");
        assert_eq!(rest[0].data.get("resumed").unwrap().as_bool(), Some(true));
        assert_eq!(rest[0].data.get("resume_from_seq").unwrap().as_u64(), Some(seq as u64));
        assert_eq!(rest[1..], complete[seq + 1..], "{seq}");
    }
    assert_eq!(stage.mock.requests().len(), 1);
}

#[tokio::test]
async fn recovery_is_read_from_headers_or_body() {
    let stage = Stage::answering().await;
    let response = stage.execute("live", BODY).send().await.unwrap();
    let id = response.headers()["x-session-id"].to_str().unwrap().to_owned();
    let complete = events(&response.text().await.unwrap());
    let body = format!(r#"{{"_recovery": {{"session_id": "{id}", "last_seq": 2}}}}"#);
    let by_body = stage.execute("live", &body);
    let headers = stage.execute("live", BODY).header("x-cognitive-recovery-session", &id);
    let by_headers = headers.header("x-cognitive-recovery-seq", "2");
    let by_event = stage.execute("live", BODY).header("last-event-id", format!("{id}:2"));
    for request in [by_body, by_headers, by_event] {
        let response = request.send().await.unwrap();
        assert!(!response.headers().contains_key("x-cognitive-warning"));
        assert_eq!(events(&response.text().await.unwrap())[1..], complete[3..]);
    }
}

#[tokio::test]
async fn expired_session_with_input_starts_a_new_run() {
    let stage = Stage::answering().await;
    let gone = r#"{"input": {"query": "?"}, "_recovery": {"session_id": "sess_gone", "last_seq": 2}}"#;
    let response = stage.execute("live", gone).send().await.unwrap();
    assert!(response.headers()["x-cognitive-warning"].to_str().unwrap().starts_with("SESSION_NEW"));
    let read = events(&response.text().await.unwrap());
    let warning = read.last().unwrap().data.pointer("/_warnings/0/code").unwrap().to_value();
    assert_eq!(warning.as_str(), Some("W4013"));
    let nothing = r#"{"_recovery": {"session_id": "sess_gone", "last_seq": 2}}"#;
    assert_eq!(failure(stage.execute("live", nothing)).await, (410, "E4013".to_owned()));
}

#[tokio::test]
async fn a_session_of_another_module_is_not_resumed() {
    let stage = Stage::answering().await;
    let response = stage.execute("live", BODY).send().await.unwrap();
    let id = response.headers()["x-session-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    let recovery = format!(r#""_recovery": {{"session_id": "{id}", "last_seq": 2}}"#);
    let refused = stage.execute("either", &format!("{{{recovery}}}"));
    assert_eq!(failure(refused).await, (410, "E4013".to_owned()));
    let again = stage.execute("either", &format!(r#"{{"input": {{"query": "?"}}, {recovery}}}"#));
    let response = again.send().await.unwrap();
    assert!(response.headers()["x-cognitive-warning"].to_str().unwrap().starts_with("SESSION_NEW"));
    assert_ne!(response.headers()["x-session-id"], id.as_str());
    response.text().await.unwrap();
    assert_eq!(stage.mock.requests().len(), 2);
}

#[tokio::test]
async fn invalid_checkpoint_starts_a_new_run_or_is_refused() {
    let stage = Stage::answering().await;
    let response = stage.execute("live", BODY).send().await.unwrap();
    let id = response.headers()["x-session-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    for claim in
        [r#""last_seq": 9999"#, r#""last_seq": 4, "last_checkpoint": {"offset": 1, "hash": "000000"}"#]
    {
        let recovery = format!(r#""_recovery": {{"session_id": "{id}", {claim}}}"#);
        let refused = stage.execute("live", &format!("{{{recovery}}}"));
        assert_eq!(failure(refused).await, (409, "E4014".to_owned()), "{claim}");
        let again = stage.execute("live", &format!(r#"{{"input": {{"query": "?"}}, {recovery}}}"#));
        let response = again.send().await.unwrap();
        assert!(response.headers()["x-cognitive-warning"].to_str().unwrap().starts_with("SESSION_NEW"));
        assert_ne!(response.headers()["x-session-id"], id.as_str());
        let read = events(&response.text().await.unwrap());
        assert_eq!(read[0].data.get("resumed").map(|resumed| resumed.to_string()), None);
        for end in [read.first(), read.last()] {
            let warning = end.unwrap().data.pointer("/_warnings/0/code").unwrap().to_value();
            assert_eq!(warning.as_str(), Some("W4013"), "{claim}");
        }
        assert_eq!(read[1].data.pointer("/chunk/seq").unwrap().as_u64(), Some(1));
    }
    assert_eq!(stage.mock.requests().len(), 3);
    let other = stage.client.get(stage.url(&format!("/v1/sessions/{id}/events")));
    assert_eq!(failure(other.header("last-event-id", "sess_other:1")).await, (409, "E4014".to_owned()));
}

#[tokio::test]
async fn interrupted_run_is_repeated_in_its_session() {
    let stage =
        Stage::start([Reply::text(ANSWER).chunk_size(10).interrupt_after(2000), Reply::text(ANSWER)]).await;
    let response = stage.execute("live", BODY).header("accept", "application/x-ndjson").send().await.unwrap();
    let id = response.headers()["x-session-id"].to_str().unwrap().to_owned();
    let first = lines(&response.text().await.unwrap());
    let last_seq = first.last().unwrap().pointer("/error/recovery/last_seq").unwrap().as_u64().unwrap();
    let body = format!(r#"{{"_recovery": {{"session_id": "{id}", "last_seq": {last_seq}}}}}"#);
    let rest = stage.ndjson(&body).await;
    assert_eq!(rest[0].get("session_id").unwrap().as_str(), Some(id.as_str()));
    assert_eq!(rest[1].pointer("/chunk/seq").unwrap().as_u64(), Some(last_seq + 1));
    assert_eq!(rest[1].pointer("/chunk/data").unwrap().to_string(), "{}");
    assert!(rest.last().unwrap().get("final").is_some());
    assert_eq!(stage.mock.requests().len(), 2);
}

#[tokio::test]
async fn cancelled_session_cannot_be_resumed() {
    let stage = Stage::hanging().await;
    let accepted = envelope(stage.execute("live", DETACHED).send().await.unwrap()).await;
    let id = accepted.get("session_id").unwrap().as_str().unwrap();
    let url = stage.url(&format!("/v1/sessions/{id}"));
    let mut body = stage.client.get(format!("{url}/events")).send().await.unwrap().bytes_stream();
    body.next().await.unwrap().unwrap();
    let cancelled = stage.client.delete(&url).send().await.unwrap();
    assert_eq!(cancelled.status(), 200);
    let mut rest = String::new();
    while let Some(chunk) = body.next().await {
        rest += std::str::from_utf8(&chunk.unwrap()).unwrap();
    }
    let end = events(&rest).pop().unwrap().data;
    assert_eq!(
        (code(&end), end.pointer("/error/details/reason").unwrap().as_str()),
        ("E2010", Some("cancelled"))
    );
    state(&stage, id, "cancelled").await;
}

#[tokio::test]
async fn unknown_session_returns_410() {
    let stage = Stage::answering().await;
    let url = stage.url("/v1/sessions/sess_00000000000000000000000000000000");
    for request in
        [stage.client.get(&url), stage.client.delete(&url), stage.client.get(format!("{url}/events"))]
    {
        assert_eq!(failure(request).await, (410, "E4013".to_owned()));
    }
}
