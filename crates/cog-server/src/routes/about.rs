//! What the server is, and whether it is there.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use cog_json::{ToJson, Writer};

use crate::{
    answer, capabilities,
    fault::Fault,
    metrics::{self, Live},
    negotiate::Accept,
    state::App,
};

/// A page for people; for programs what this is and where its routes are.
#[utoipa::path(
    get,
    path = "/",
    tag = "about",
    responses((status = 200, description = "A page, or API information"))
)]
pub(crate) async fn index(headers: HeaderMap) -> Response {
    if !Accept::is_page(&headers) {
        return answer::json(StatusCode::OK, &Index);
    }
    let mut response = answer::written(StatusCode::OK, include_str!("index.html"));
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response
}

/// Whether the server lives.
#[utoipa::path(
    get,
    path = "/health",
    tag = "about",
    responses((status = 200, description = "It does"))
)]
pub(crate) async fn health() -> Response {
    answer::written(StatusCode::OK, "{\"status\":\"ok\"}\n")
}

/// Whether the server takes requests.
#[utoipa::path(
    get,
    path = "/ready",
    tag = "about",
    responses((status = 200, description = "It does"), (status = 503, description = "It is shutting down"))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Fault> {
    app.guard.drain.check()?;
    Ok(answer::written(StatusCode::OK, "{\"status\":\"ready\"}\n"))
}

/// What this runtime can do (SPEC 8.1).
#[utoipa::path(
    get,
    path = "/v1/capabilities",
    tag = "about",
    responses((status = 200, description = "The capabilities"))
)]
pub(crate) async fn declared() -> Response {
    answer::json(StatusCode::OK, &capabilities())
}

/// What the server counts, for Prometheus and the like.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "about",
    responses((status = 200, description = "The counters, as OpenMetrics text"))
)]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let live = Live { streams: app.guard.slots.taken(), sessions: app.sessions.tally() };
    let mut response = answer::written(StatusCode::OK, app.guard.metrics.text(&live));
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// API information.
struct Index;

impl ToJson for Index {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", "cog");
            w.field("version", env!("CARGO_PKG_VERSION"));
            w.field("description", "Cognitive Modules over HTTP");
            w.field("openapi", "/openapi.json");
            w.field("docs", "/docs");
            w.key("routes").array(|w| {
                for route in crate::router::paths() {
                    w.item(&route);
                }
            });
        });
    }
}
