//! Large requests do not block the event loop while they are parsed and checked.

use std::{sync::mpsc, time::Duration};

use reqwest::Method;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    hostile::routes,
    sockets::{frames, open},
    support::{BODY, Stage, code, envelope},
};

/// Runs a test on an event loop of one thread that has one more thread for work that may block.
fn with_one_blocking_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).enable_all().build().unwrap().block_on(test);
}

/// Occupies the blocking thread until the gate is dropped.
fn gate() -> mpsc::Sender<()> {
    let (gate, opened) = mpsc::channel::<()>();
    drop(spawn_blocking(move || opened.recv()));
    gate
}

/// Starts a server whose modules are loaded.
async fn stage() -> Stage {
    let stage = Stage::answering().await;
    for module in ["live", "once"] {
        assert_eq!(stage.execute(module, BODY).send().await.unwrap().status(), 200);
    }
    stage
}

/// A body that matches the schema and is too large for the event loop.
fn large() -> String {
    format!(r#"{{"input": {{"query": "{}"}}, "_options": {{}}}}"#, "x".repeat(100_000))
}

/// Asserts that the server answers others while this request waits for the blocking thread.
async fn waits<T>(stage: &Stage, request: &JoinHandle<T>) {
    for _ in 0..50 {
        assert_eq!(stage.get("/health").await.status(), 200);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!request.is_finished(), "the work was done on the event loop");
}

/// Asserts that both the parsing and the checking of a request wait for the blocking thread.
async fn waits_twice<T>(stage: &Stage, request: &JoinHandle<T>, first: mpsc::Sender<()>) {
    waits(stage, request).await;
    let second = gate();
    drop(first);
    waits(stage, request).await;
    drop(second);
}

fn send(request: reqwest::RequestBuilder) -> JoinHandle<reqwest::Response> {
    tokio::spawn(async move { request.send().await.unwrap() })
}

#[test]
fn a_large_execute_request_leaves_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let detached = large().replace("\"_options\": {", r#""_options": {"detach": true"#);
        for (module, body, status) in
            [("live", large(), 200), ("once", large(), 200), ("live", detached, 202)]
        {
            let gate = gate();
            let request = send(stage.execute(module, &body));
            waits_twice(&stage, &request, gate).await;
            assert_eq!(request.await.unwrap().status(), status);
        }
    });
}

#[test]
fn a_large_run_request_leaves_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let body = large().replace(r#""_options": {}"#, r#""module": "once""#);
        let gate = gate();
        let request = stage.client.post(stage.url("/run")).header("content-type", "application/json");
        let request = send(request.body(body));
        waits_twice(&stage, &request, gate).await;
        assert_eq!(request.await.unwrap().status(), 200);
    });
}

#[test]
fn a_large_form_leaves_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let part = "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\n";
        let form = format!("{part}{{\"query\": \"{}\"}}\r\n--b--\r\n", "x".repeat(100_000));
        let gate = gate();
        let request = stage.client.post(stage.url("/v1/modules/once/execute"));
        let request = send(request.header("content-type", "multipart/form-data; boundary=b").body(form));
        waits_twice(&stage, &request, gate).await;
        assert_eq!(request.await.unwrap().status(), 200);
    });
}

#[test]
fn a_large_websocket_message_leaves_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        for module in ["live", "once"] {
            let mut socket = open(&stage, module).await;
            let gate = gate();
            let request = tokio::spawn(async move { frames(&mut socket, &large()).await });
            waits_twice(&stage, &request, gate).await;
            let end = request.await.unwrap().pop().unwrap();
            assert!(end.get("data").is_some(), "{end:?}");
        }
    });
}

#[test]
fn a_large_body_that_is_not_json_is_refused_off_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        for path in ["/v1/modules/live/execute", "/run", "/v1/media/upload-url"] {
            let gate = gate();
            let request = stage.client.post(stage.url(path)).header("content-type", "application/json");
            let request = send(request.body(format!("{{{}", "x".repeat(100_000))));
            waits(&stage, &request).await;
            drop(gate);
            let response = request.await.unwrap();
            assert_eq!(
                (response.status().as_u16(), code(&envelope(response).await)),
                (400, "E1000"),
                "{path}"
            );
        }
    });
}

/// Each route that reads a JSON body, and a large valid body for it.
fn routes_with_bodies() -> Vec<(&'static str, String)> {
    let query = "x".repeat(100_000);
    let call = |arguments: &str, meta: &str| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {{"name": "once", "arguments": {{"query": "{arguments}"}}, "_meta": {{"note": "{meta}"}}}}}}"#
        )
    };
    let mut routes = vec![
        ("/v1/modules/live/execute", large()),
        ("/v1/modules/once/execute", large()),
        ("/run", large().replace(r#""_options": {}"#, r#""module": "once""#)),
        ("/v1/media/upload-url", format!(r#"{{"media_type": "{query}"}}"#)),
        (
            "/v1/chat/completions",
            format!(r#"{{"model": "once", "messages": [{{"role": "user", "content": "{query}"}}]}}"#),
        ),
        ("/v1/responses", format!(r#"{{"model": "once", "input": "{query}"}}"#)),
        ("/mcp", call(&query, "")),
        ("/mcp", call("why?", &query)),
        (
            "/mcp",
            format!(
                r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {{"_meta": {{"note": "{query}"}}}}}}"#
            ),
        ),
        ("/mcp", format!(r#"{{"jsonrpc": "2.0", "{query}"#)),
    ];
    routes.retain(|(path, _)| cfg!(feature = "mcp") || *path != "/mcp");
    routes
}

#[test]
fn every_route_parses_a_large_body_off_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        for (path, body) in routes_with_bodies() {
            let gate = gate();
            let request = stage.client.post(stage.url(path)).header("content-type", "application/json");
            let request = request.header("accept", "application/json, text/event-stream");
            let request = send(request.header("mcp-protocol-version", "2025-06-18").body(body));
            waits(&stage, &request).await;
            drop(gate);
            assert!(request.await.unwrap().status().as_u16() < 500, "{path}");
        }
    });
}

#[test]
fn every_listed_route_with_a_body_reads_a_large_one_off_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let mut checked = 0;
        for route in routes(&stage).await {
            for method in [Method::POST, Method::PUT, Method::PATCH] {
                let request = |body: String| {
                    let request = stage.client.request(method.clone(), stage.url(&route.path));
                    let request = request.header("content-type", "application/json").body(body);
                    request.header("accept", "application/json, text/event-stream")
                };
                if request(String::new()).send().await.unwrap().status() == 405 {
                    continue;
                }
                let gate = gate();
                let request = send(request(format!("{{{}", "x".repeat(100_000))));
                waits(&stage, &request).await;
                drop(gate);
                let status = request.await.unwrap().status().as_u16();
                assert!((400..500).contains(&status), "{method} {}: {status}", route.path);
                checked += 1;
            }
        }
        assert!(checked >= 6, "the routes with bodies are missing: {checked}");
    });
}

#[cfg(feature = "mcp")]
#[test]
fn arguments_of_a_tool_are_checked_off_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let (path, body) = routes_with_bodies().into_iter().find(|(path, _)| *path == "/mcp").unwrap();
        let gate = gate();
        let request = stage.client.post(stage.url(path)).header("content-type", "application/json");
        let request = send(request.header("accept", "application/json, text/event-stream").body(body));
        waits_twice(&stage, &request, gate).await;
        let answer = request.await.unwrap();
        let status = answer.status();
        assert_eq!(status, 200, "{}", answer.text().await.unwrap());
    });
}

#[test]
fn a_small_request_stays_on_the_event_loop() {
    with_one_blocking_thread(async {
        let stage = stage().await;
        let _gate = gate();
        assert_eq!(stage.execute("once", BODY).send().await.unwrap().status(), 200);
    });
}
