//! What the server is, and whether it is there.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use cog_json::{ToJson, Writer};

use crate::{
    answer, capabilities,
    error::ApiError,
    metrics::{self, Live},
    openapi::Refused,
    state::App,
};

/// What this is, and where its routes are.
pub(crate) fn information(paths: &'static [String]) -> Response {
    answer::json(StatusCode::OK, &Index { paths })
}

/// Whether the server lives.
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "health",
    tag = "about",
    responses(
        (status = 200, description = "It does", body = ref("#/components/schemas/Status")),
        Refused,
    )
)]
pub(crate) async fn health() -> Response {
    answer::written(StatusCode::OK, "{\"status\":\"ok\"}\n")
}

/// Whether the server takes requests.
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "ready",
    tag = "about",
    responses(
        (status = 200, description = "It does", body = ref("#/components/schemas/Status")),
        Refused,
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    app.guard.drain.check()?;
    Ok(answer::written(StatusCode::OK, "{\"status\":\"ready\"}\n"))
}

/// What this runtime can do (SPEC 8.1).
#[utoipa::path(
    get,
    path = "/v1/capabilities",
    operation_id = "capabilities",
    tag = "about",
    responses(
        (status = 200, description = "The capabilities", body = ref("#/components/schemas/Capabilities")),
        Refused,
    )
)]
pub(crate) async fn declared() -> Response {
    answer::json(StatusCode::OK, &capabilities())
}

/// What the server counts, for Prometheus and the like.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "about",
    responses(
        (status = 200, description = "The counters", body = String, content_type = "application/openmetrics-text"),
        Refused,
    )
)]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let providers = app.runtime.providers().default_order().iter();
    let live = Live {
        streams: app.guard.slots.taken(),
        providers: providers.map(|one| (one.name().to_owned(), one.is_available())).collect(),
        sessions: app.sessions.tally(),
    };
    let mut response = answer::written(StatusCode::OK, app.guard.metrics.text(&live));
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// API information.
struct Index {
    paths: &'static [String],
}

impl ToJson for Index {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", "cog");
            w.field("version", env!("CARGO_PKG_VERSION"));
            w.field("description", "Cognitive Modules over HTTP");
            w.field("openapi", "/openapi.json");
            w.field("docs", "/docs");
            w.key("routes").array(|w| {
                for path in self.paths {
                    w.item(path);
                }
            });
        });
    }
}
