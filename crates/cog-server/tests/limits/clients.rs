//! What one client may choose and see, where the operator and the clients are different people.

use std::time::Duration;

use cog_run::ModelAccess;
use cog_server::{ServerSettings, Tokens};
use cog_testkit::Reply;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::{
    connect_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

use crate::support::{EXECUTE, KEY, LONG, Site, answer, question};

const ALICE: &str = "alice-alice-alice-alice";
const BOB: &str = "bob-bob-bob-bob-bob";
const OPERATOR: &str = "ops-ops-ops-ops-ops";

fn with_tokens() -> ServerSettings {
    let list = format!("alice:{ALICE} models=openai/small-*\nbob:{BOB}\nops:{OPERATOR} scope=metrics");
    let mut settings = ServerSettings::default();
    settings.access.tokens = Some(Tokens::parse(&list).unwrap());
    settings
}

impl Site {
    /// Sends a JSON body as the holder of a token; with an empty token, as anyone.
    async fn post(&self, token: &str, path: &str, accept: &str, body: &Value) -> Response {
        let request = self.http.post(self.url(path)).header("content-type", "application/json");
        let request = request.header("accept", accept).header("x-request-id", "r-42");
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        request.header("mcp-protocol-version", "2025-11-25").body(body.to_string()).send().await.unwrap()
    }

    /// Sends a body over a WebSocket, and returns the last frame of the run.
    async fn socket(&self, token: &str, body: &Value) -> String {
        let url = format!("ws://{}/v1/modules/m/ws", self.address);
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("x-request-id", "r-42".parse().unwrap());
        if !token.is_empty() {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let (mut socket, _) = connect_async(request).await.unwrap();
        socket.send(Message::text(body.to_string())).await.unwrap();
        loop {
            let frame = timeout(LONG, socket.next()).await.expect("the run hangs").unwrap().unwrap();
            let text = frame.into_text().unwrap();
            if text.contains("\"final\"") || text.contains("\"error\"") {
                return text.to_string();
            }
        }
    }

    async fn metrics(&self, token: &str) -> String {
        let request = self.http.get(self.url("/metrics")).bearer_auth(token);
        request.send().await.unwrap().text().await.unwrap()
    }
}

/// A body that names a provider and a model.
fn options(provider: Option<&str>, model: Option<&str>) -> Value {
    let mut options = serde_json::Map::new();
    options.extend(provider.map(|name| ("provider".to_owned(), name.into())));
    options.extend(model.map(|name| ("model".to_owned(), name.into())));
    json!({ "input": { "query": "why?" }, "_options": options })
}

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const BOTH: &str = "application/json, text/event-stream";

#[tokio::test]
async fn client_names_only_the_models_of_its_token() {
    let site = Site::start(with_tokens(), [answer()]).await;
    let refused = [
        (Some("anthropic"), None),
        (Some("openai,anthropic"), None),
        (Some("offline"), None),
        (None, Some("large")),
        (Some("openai"), Some("large")),
    ];
    for (provider, model) in refused {
        let body = options(provider, model);
        for accept in [JSON, LINES] {
            let response = site.post(ALICE, EXECUTE, accept, &body).await;
            assert_eq!(response.status(), 403, "{provider:?} {model:?}");
            assert!(response.text().await.unwrap().contains("E4007"));
        }
        let mut detached = body.clone();
        detached["_options"]["detach"] = true.into();
        assert_eq!(site.post(ALICE, EXECUTE, JSON, &detached).await.status(), 403);
        assert!(site.socket(ALICE, &body).await.contains("E4007"));
        let mut older = json!({ "module": "m", "input": { "query": "why?" } });
        older["provider"] = provider.into();
        older["model"] = model.into();
        assert_eq!(site.post(ALICE, "/run", JSON, &older).await.status(), 403);
        // A composition calls its parts with the choice of its request.
        assert_eq!(site.post(ALICE, "/v1/modules/composed/execute", JSON, &body).await.status(), 403);
    }
    assert!(site.mock.requests().is_empty());
    for (provider, model) in [(None, None), (Some("openai"), None), (None, Some("small-1"))] {
        assert_eq!(site.post(ALICE, EXECUTE, JSON, &options(provider, model)).await.status(), 200);
    }
    assert_eq!(site.mock.requests().last().unwrap().body["model"], "small-1");
    // Bob has no list.
    assert_eq!(site.post(BOB, EXECUTE, JSON, &options(None, Some("large"))).await.status(), 200);
}

#[tokio::test]
async fn list_of_the_server_holds_for_clients_without_their_own() {
    let mut settings = with_tokens();
    settings.access.models = Some(ModelAccess::parse("openai").unwrap());
    let site = Site::start(settings, [answer()]).await;
    assert_eq!(site.post(BOB, EXECUTE, JSON, &options(None, Some("large"))).await.status(), 403);
    assert_eq!(site.post(ALICE, EXECUTE, JSON, &options(None, Some("small-1"))).await.status(), 200);
    // The model of OpenAI's clients is a module, which calls the operator's default.
    let chat = json!({ "model": "module:m", "messages": [{ "role": "user", "content": "why?" }] });
    assert_eq!(site.post(BOB, "/v1/chat/completions", JSON, &chat).await.status(), 200);
    let named = json!({ "model": "openai/large", "messages": [{ "role": "user", "content": "why?" }] });
    assert_eq!(site.post(BOB, "/v1/chat/completions", JSON, &named).await.status(), 404);
    assert!(site.mock.requests().iter().all(|request| request.body["model"] != "large"));
}

/// The vendor's text in its errors.
const WORDS: &str = "deployment 7f3a of project zebra";

/// Returns the text of the error on every route that runs a module.
async fn errors(site: &Site, token: &str) -> Vec<(&'static str, String)> {
    let chat = |stream: bool| json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "why?" }] });
    let older = json!({ "module": "m", "input": { "query": "why?" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "m", "arguments": { "query": "why?" } } });
    let mut errors = Vec::new();
    for (path, accept, body) in [
        (EXECUTE, JSON, question()),
        (EXECUTE, LINES, question()),
        ("/v1/modules/composed/execute", LINES, question()),
        ("/run", JSON, older),
        ("/v1/chat/completions", JSON, chat(false)),
        ("/v1/chat/completions", JSON, chat(true)),
        ("/v1/responses", JSON, json!({ "model": "m", "input": "why?" })),
        #[cfg(feature = "mcp")]
        ("/mcp", BOTH, call.clone()),
    ] {
        errors.push((path, site.post(token, path, accept, &body).await.text().await.unwrap()));
    }
    let _ = (BOTH, call);
    errors.push(("ws", site.socket(token, &question()).await));
    errors
}

#[tokio::test]
async fn client_with_a_token_sees_no_words_of_the_vendor_and_the_operator() {
    for reply in [
        Reply::error(401, WORDS),
        Reply::error(400, WORDS),
        Reply::error(429, WORDS),
        Reply::error(503, WORDS),
        Reply::raw(format!("<html>{WORDS}</html>")),
    ] {
        let site = Site::start(with_tokens(), [reply]).await;
        for (path, text) in errors(&site, BOB).await {
            assert!(text.contains("r-42") && text.contains("\"code\":\"E"), "{path}: {text}");
            for word in ["zebra", "OPENAI", "127.0.0.1", "COG_", "cog render", KEY] {
                assert!(!text.contains(word), "{path}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn client_without_tokens_is_the_operator() {
    let site = Site::start(ServerSettings::default(), [Reply::error(401, WORDS)]).await;
    for (path, text) in errors(&site, "").await {
        assert!(text.contains("zebra") && text.contains("OPENAI_API_KEY"), "{path}: {text}");
    }
}

#[tokio::test]
async fn client_with_a_token_sees_no_paths_of_broken_modules() {
    let site = Site::start(with_tokens(), [answer()]).await;
    site.write("bad/module.yaml", "name: bad\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n");
    site.write("bad/prompt.md", "Answer.");
    site.write("bad/schema.json", "{ secret-of-the-operator");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "bad", "arguments": {} } });
    for (path, body) in [
        ("/v1/modules/bad/execute", question()),
        ("/run", json!({ "module": "bad", "input": {} })),
        (
            "/v1/chat/completions",
            json!({ "model": "bad", "messages": [{ "role": "user", "content": "why?" }] }),
        ),
        #[cfg(feature = "mcp")]
        ("/mcp", call.clone()),
    ] {
        let text = site.post(BOB, path, BOTH, &body).await.text().await.unwrap();
        assert!(text.contains("E4008") && text.contains("r-42"), "{path}: {text}");
        assert!(!text.contains("schema.json") && !text.contains("secret-of"), "{path}: {text}");
    }
    let _ = call;
}

#[tokio::test]
async fn client_reads_its_own_figures_only() {
    let site = Site::start(with_tokens(), [answer().usage(11, 7)]).await;
    assert_eq!(site.post(ALICE, EXECUTE, JSON, &question()).await.status(), 200);
    site.post(ALICE, EXECUTE, LINES, &question()).await.text().await.unwrap();
    site.post(
        BOB,
        "/v1/chat/completions",
        JSON,
        &json!({ "model": "m", "messages": [{ "role": "user", "content": "why?" }] }),
    )
    .await;
    for (token, runs) in [(ALICE, 2), (BOB, 1), (OPERATOR, 3)] {
        let line = format!(r#"cog_runs_total{{module="m",outcome="answered"}} {runs}"#);
        let seen = async {
            while !site.metrics(token).await.contains(&line) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, seen).await.unwrap_or_else(|_| panic!("{token}: never {line}"));
    }
    let bob = site.metrics(BOB).await;
    assert!(bob.contains(r#"cog_tokens_total{module="m",direction="in"} 11"#), "{bob}");
    assert!(!bob.contains("http_requests") && !bob.contains("provider"), "{bob}");
    assert!(site.metrics(OPERATOR).await.contains("cog_http_requests_total"));
    assert_eq!(site.post(OPERATOR, EXECUTE, JSON, &question()).await.status(), 403);
}
