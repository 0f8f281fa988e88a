//! The budget of a client under many requests at the same time, on each route that runs a module.

use std::time::Duration;

use cog_run::BudgetLimits;
use cog_server::ServerSettings;
use cog_testkit::Reply;
use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::{connect_async, tungstenite::Message};

use crate::support::{EXECUTE, LONG, PRICED, Site, answer, code, endless, question, until};

/// The number of simultaneous requests.
const REQUESTS: usize = 200;

/// The tokens of a call: somewhat less than a call reserves, so that the sum of all reservations and not the answers decides.
const TOKENS: (u64, u64) = (100, 4_000);

/// A budget for two calls at a time. The third one reaches it.
const MAX_TOKENS: u64 = 9_000;

fn limited(limits: BudgetLimits) -> ServerSettings {
    // No other limit is to refuse a request.
    let mut settings = ServerSettings::default();
    settings.client_budget = limits;
    settings.max_streams_per_client = 10_000;
    settings
}

fn max_tokens(max: u64) -> BudgetLimits {
    BudgetLimits { max_tokens: Some(max), ..BudgetLimits::default() }
}

/// An answer that is late enough for the other requests to arrive. Nothing depends on how many of them do.
fn late() -> Reply {
    answer().usage(TOKENS.0, TOKENS.1).delay(Duration::from_millis(100))
}

/// Sends a request many times at once, and returns the bodies.
async fn at_once(site: &Site, path: &str, accept: &str, body: &Value) -> Vec<String> {
    let send = || async {
        let request = site.http.post(site.url(path)).header("accept", accept);
        let request =
            request.header("content-type", "application/json").header("mcp-protocol-version", "2025-11-25");
        let request = request.body(body.to_string());
        timeout(LONG, request.send()).await.unwrap().unwrap().text().await.unwrap()
    };
    join_all((0..REQUESTS).map(|_| send())).await
}

/// Runs the module many times at once, each in a WebSocket, and returns the last messages.
async fn in_sockets(site: &Site) -> Vec<String> {
    let run = || async {
        let url = format!("ws://{}/v1/modules/m/ws", site.address);
        let (mut socket, _) = connect_async(url).await.unwrap();
        socket.send(Message::text(question().to_string())).await.unwrap();
        loop {
            let text = socket.next().await.unwrap().unwrap().into_text().unwrap().to_string();
            if text.contains("\"final\"") || text.contains("\"error\"") {
                return text;
            }
        }
    };
    timeout(LONG, join_all((0..REQUESTS).map(|_| run()))).await.unwrap()
}

/// Checks that the calls fit into the budget, apart from the one that reached it, and that the others were refused.
fn check(site: &Site, answers: &[String], name: &str) {
    let calls = site.mock.request_count();
    let most = usize::try_from(MAX_TOKENS.div_ceil(TOKENS.0 + TOKENS.1)).unwrap();
    assert!((1..=most).contains(&calls), "{name}: {calls} calls, at most {most} fit into the budget");
    let answered = answers.iter().filter(|text| text.contains("fine")).count();
    assert_eq!(answered, calls, "{name}: each answer was paid once");
    let refused = answers.iter().filter(|text| text.contains("E4002") || text.contains("rate_limit")).count();
    assert_eq!(refused, REQUESTS - calls, "{name}: {:?}", answers.last());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_of_tokens_holds_for_simultaneous_requests_on_each_route() {
    let chat = json!({ "model": "module:m", "messages": [{ "role": "user", "content": "why?" }] });
    let responses = json!({ "model": "module:m", "input": "why?" });
    let older = json!({ "module": "m", "input": { "query": "why?" } });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "m", "arguments": { "query": "why?" } },
    });
    let json = "application/json";
    let mut routes = vec![
        (EXECUTE, json, question()),
        (EXECUTE, "application/x-ndjson", question()),
        (EXECUTE, "text/event-stream", question()),
        ("/run", json, older),
        ("/v1/chat/completions", json, chat),
        ("/v1/responses", json, responses),
    ];
    if cfg!(feature = "mcp") {
        routes.push(("/mcp", "application/json, text/event-stream", call));
    }
    for (path, accept, body) in routes {
        let site = Site::start(limited(max_tokens(MAX_TOKENS)), [late()]).await;
        let answers = at_once(&site, path, accept, &body).await;
        check(&site, &answers, &format!("{path} {accept}"));
    }
    let site = Site::start(limited(max_tokens(MAX_TOKENS)), [late()]).await;
    check(&site, &in_sockets(&site).await, "WebSocket");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budget_of_money_holds_for_simultaneous_requests() {
    // At 0.15 and 0.60 USD per million tokens a call costs about 0.0024 USD.
    let limits = BudgetLimits { max_cost: Some(0.006), ..BudgetLimits::default() };
    let site = Site::start(limited(limits), [late().model(PRICED)]).await;
    let mut body = question();
    body["_options"] = json!({ "model": PRICED });
    let answers = at_once(&site, EXECUTE, "application/json", &body).await;
    let calls = site.mock.request_count();
    assert!((1..=3).contains(&calls), "{calls} calls: {:?}", answers.first());
    assert_eq!(answers.iter().filter(|text| text.contains("fine")).count(), calls);
    let limits = BudgetLimits { max_cost: Some(1_000.0), ..BudgetLimits::default() };
    let site = Site::start(limited(limits), [late()]).await;
    let refused = at_once(&site, EXECUTE, "application/json", &question()).await;
    assert!(refused.iter().all(|text| text.contains("unknown_price")), "{:?}", refused.first());
    assert_eq!(site.mock.request_count(), 0, "an unknown price is not zero");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_are_calls_of_the_budget() {
    let limits = BudgetLimits { max_calls: Some(5), ..BudgetLimits::default() };
    let site = Site::start(limited(limits), [Reply::text("no JSON")]).await;
    let mut body = question();
    body["_options"] = json!({ "max_attempts": 10 });
    at_once(&site, EXECUTE, "application/json", &body).await;
    assert_eq!(site.mock.request_count(), 5);
    let site = Site::start(limited(max_tokens(MAX_TOKENS)), [Reply::text("no JSON").usage(100, 4_000)]).await;
    at_once(&site, EXECUTE, "application/json", &body).await;
    let calls = site.mock.request_count();
    assert!((1..=3).contains(&calls), "{calls} calls");
}

#[tokio::test]
async fn disconnected_client_frees_what_its_run_has_reserved() {
    let site = Site::start(limited(max_tokens(6_000)), [endless(), answer()]).await;
    let mut stream = site.stream().await;
    until(&mut stream, "begun").await;
    assert_eq!(code(site.run().await).await, (429, "E4002".to_owned()), "two calls do not fit");
    drop(stream);
    let freed = async {
        while site.run().await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, freed).await.expect("the reservation is not freed");
}

#[tokio::test]
async fn request_lowers_the_limits_of_the_operator_and_never_raises_them() {
    let mut settings = ServerSettings::default();
    settings.max_attempts = 2;
    let site = Site::start_with(settings, [Reply::text("no JSON")], |runtime| {
        runtime.timeout(Duration::from_secs(1))
    })
    .await;
    let attempts = async |body: Value| {
        let before = site.mock.request_count();
        assert_eq!(code(site.execute(&body).await).await.1, "E1000");
        site.mock.request_count() - before
    };
    let with = |options: Value| json!({ "input": { "query": "why?" }, "_options": options });
    assert_eq!(attempts(with(json!({ "max_attempts": 9 }))).await, 2);
    assert_eq!(attempts(with(json!({ "max_attempts": 1 }))).await, 1);
    site.mock.reset([endless()]);
    let late = site.execute(&with(json!({ "timeout_ms": 86_400_000 }))).await;
    assert_eq!(code(late).await, (504, "E2002".to_owned()), "the time of the operator has passed");
}
