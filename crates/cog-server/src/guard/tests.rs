use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::to_bytes,
    http::{Method, StatusCode, header},
    middleware::from_fn_with_state,
    response::IntoResponse as _,
    routing::{get, post},
};
use futures_util::FutureExt as _;
use tower::ServiceExt as _;

use cog_run::{BudgetLimits, sessions::SessionState};

use super::{request_log::Trace, *};
use crate::{metrics::Live, vendor_api};

const TOKEN: &str = "abcdefghij0123456789";

fn guards() -> Guards {
    let drain = Drain::default();
    Guards {
        hosts: Hosts::new([127, 0, 0, 1].into(), &[]),
        origins: Origins::new(&["https://app.example".to_owned()]).unwrap(),
        access: Access::Open,
        rates: Rates::new(0, 1),
        messages: Rates::new(0, 1),
        feedback: Rates::new(0, 1),
        slots: Slots::new(1, 1, &drain),
        budgets: Arc::new(ClientBudgets::new(BudgetLimits::default(), Duration::from_secs(60))),
        bodies: Bodies::new(30 << 20, 64 << 20, Duration::from_secs(30)),
        drain,
        metrics: Metrics::new(),
        is_public: |path| path == "/",
        refusal: vendor_api::refusal,
        failure: vendor_api::failure,
    }
}

fn with_tokens() -> Guards {
    let tokens = Tokens::parse(&format!("ci:{TOKEN}")).unwrap();
    Guards { access: Access::Tokens(tokens), ..guards() }
}

fn router(guard: &Guard) -> Router {
    let who = |Extension(client): Extension<Client>, Extension(trace): Extension<Trace>| async move {
        format!("{} {}", client.owner(), trace.parent.map(|parent| parent.trace_id()).unwrap_or_default())
    };
    let boom = || async { if true { panic!("sk-canary") } else { "" } };
    let slot = |State(guard): State<Guard>, Extension(client): Extension<Client>| async move {
        guard.slots.take(&client).map(|_| "had").map_err(Refusal::into_response)
    };
    Router::new()
        .route("/health", get(|| async { "well" }))
        .route("/who", get(who))
        .route("/boom", post(boom))
        .route("/slot", get(slot))
        .layer(from_fn_with_state(guard.clone(), enter))
        .with_state(guard.clone())
}

/// The status, the headers and the body of a response.
type Answer = (u16, HeaderMap, String);

async fn send(guard: &Guard, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    let has_host = headers.iter().any(|(name, _)| *name == "host");
    for (name, value) in headers.iter().chain((!has_host).then_some(&("host", "localhost:8000"))) {
        request = request.header(*name, *value);
    }
    let response = router(guard).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 10_000).await.unwrap();
    (parts.status.as_u16(), parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

async fn get_from(guard: &Guard, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(guard, Method::GET, path, headers).await
}

#[tokio::test]
async fn valid_request_is_passed_on() {
    let guard = Guard::from(guards());
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [("traceparent", parent.as_str()), ("x-request-id", "r-7")];
    let (status, headers, body) = get_from(&guard, "/who", &headers).await;
    assert_eq!((status, body), (200, format!("peer:0.0.0.0 {trace}")));
    assert_eq!(headers["x-request-id"], "r-7");
    assert!(headers["server-timing"].to_str().unwrap().starts_with("total;dur="));
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn foreign_host_is_refused_first() {
    let guard = Guard::from(with_tokens());
    let (status, _, body) = get_from(&guard, "/health", &[("host", "evil.example")]).await;
    assert_eq!(status, 403);
    assert!(body.contains("E4007"), "{body}");
}

#[tokio::test]
async fn every_path_but_health_needs_a_token() {
    let guard = Guard::from(with_tokens());
    assert_eq!(get_from(&guard, "/health", &[]).await.0, 200);
    assert_eq!(get_from(&guard, "/who", &[]).await.0, 401);
    assert_eq!(get_from(&guard, "/nowhere", &[]).await.0, 401);
    let bearer = format!("Bearer {TOKEN}");
    let (status, _, body) = get_from(&guard, "/who", &[("authorization", &bearer)]).await;
    assert_eq!((status, body.trim()), (200, "token:ci"));
}

#[tokio::test]
async fn guesses_of_a_token_are_counted_like_requests() {
    let guard = Guard::from(Guards { rates: Rates::new(1, 2), ..with_tokens() });
    let wrong = [("authorization", "Bearer wrong-wrong-wrong")];
    assert_eq!(get_from(&guard, "/who", &wrong).await.0, 401);
    assert_eq!(get_from(&guard, "/who", &wrong).await.0, 401);
    let (status, headers, _) = get_from(&guard, "/who", &wrong).await;
    assert_eq!((status, headers[header::RETRY_AFTER].to_str().unwrap()), (429, "1"));
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(get_from(&guard, "/who", &[("authorization", &bearer)]).await.0, 200);
}

#[tokio::test]
async fn listed_page_may_send_preflight_and_read() {
    let guard = Guard::from(with_tokens());
    let origin = ("origin", "https://app.example");
    let headers = [
        origin,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization"),
    ];
    let (status, headers, _) = send(&guard, Method::OPTIONS, "/boom", &headers).await;
    assert_eq!(status, 204);
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
    assert!(headers[header::ACCESS_CONTROL_ALLOW_METHODS].to_str().unwrap().contains("POST"));
    assert!(headers[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap().contains("Authorization"));
    assert_eq!(headers[header::ACCESS_CONTROL_MAX_AGE], "600");
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    let (status, headers, _) = get_from(&guard, "/who", &[origin]).await;
    assert_eq!(status, 401);
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example");
    assert!(headers[header::ACCESS_CONTROL_EXPOSE_HEADERS].to_str().unwrap().contains("Retry-After"));
    assert!(headers.get_all(header::VARY).iter().any(|name| name == "origin"));
}

#[tokio::test]
async fn unlisted_page_is_refused() {
    let guard = Guard::from(guards());
    let origin = ("origin", "https://evil.example");
    for (method, headers) in [
        (Method::OPTIONS, vec![origin, ("access-control-request-method", "POST")]),
        (Method::GET, vec![origin]),
        (Method::GET, vec![origin, ("connection", "upgrade"), ("upgrade", "websocket")]),
    ] {
        let (status, headers, _) = send(&guard, method, "/who", &headers).await;
        assert_eq!(status, 403);
        assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    }
}

#[tokio::test]
async fn panic_fails_one_request_only() {
    let guard = Guard::from(guards());
    let (status, headers, body) = send(&guard, Method::POST, "/boom", &[("x-request-id", "r-8")]).await;
    assert_eq!((status, headers["x-request-id"].to_str().unwrap()), (500, "r-8"));
    assert!(body.contains("E4000") && body.contains("r-8") && !body.contains("canary"), "{body}");
    assert_eq!(get_from(&guard, "/who", &[]).await.0, 200);
}

#[tokio::test]
async fn requests_during_shutdown_are_served_and_close_their_connection() {
    let guard = Guard::from(guards());
    assert!(!get_from(&guard, "/who", &[]).await.1.contains_key(header::CONNECTION));
    guard.drain.announced.cancel();
    guard.drain.begun.cancel();
    for path in ["/who", "/health"] {
        let (status, headers, _) = get_from(&guard, path, &[]).await;
        assert_eq!((status, headers[header::CONNECTION].to_str().unwrap()), (200, "close"), "{path}");
    }
    guard.drain.idle().await;
}

#[tokio::test]
async fn token_for_metrics_reads_nothing_else() {
    let tokens = Tokens::parse(&format!("ops:{TOKEN} scope=metrics")).unwrap();
    let guard = Guard::from(Guards { access: Access::Tokens(tokens), ..guards() });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let (status, _, body) = get_from(&guard, "/who", &headers).await;
    assert_eq!(status, 403);
    assert!(body.contains("E4007") && body.contains("/metrics"), "{body}");
    assert_eq!(get_from(&guard, METRICS, &headers).await.0, 404, "the test has no such route");
}

#[tokio::test]
async fn refusals_are_counted_by_reason() {
    let guard = Guard::from(guards());
    let _held = guard.slots.take(&Client::from_ip([0, 0, 0, 0].into())).unwrap();
    assert_eq!(get_from(&guard, "/slot", &[]).await.0, 429);
    assert_eq!(get_from(&guard, "/nowhere?key=sk-canary", &[]).await.0, 404);
    let text = guard.metrics.text(&Live {
        streams: guard.slots.taken(),
        providers: Vec::new(),
        sessions: SessionState::ALL.map(|state| (state, 0)),
        sessions_not_on_disk: 0,
    });
    for line in [
        r#"cog_refused_total{reason="max_streams"} 1"#,
        r#"cog_http_requests_total{method="GET",route="/slot",status="429"} 1"#,
        r#"cog_http_requests_total{method="GET",route="other",status="404"} 1"#,
        "cog_streams_open 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("canary"));
}

#[tokio::test]
async fn stream_is_in_flight_until_it_ends() {
    let guard = Guard::from(guards());
    let stream =
        || async { Body::from_stream(futures_util::stream::pending::<std::io::Result<&'static str>>()) };
    let router = Router::new().route("/", get(stream)).layer(from_fn_with_state(guard.clone(), enter));
    let request = Request::builder().uri("/").header("host", "localhost").body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut idle = Box::pin(guard.drain.idle());
    assert!(idle.as_mut().now_or_never().is_none());
    drop(response);
    idle.await;
}
