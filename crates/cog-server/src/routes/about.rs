//! Health, capabilities and metrics of the server.

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

/// General information and the list of routes.
pub(crate) fn information(paths: &'static [String]) -> Response {
    answer::json(StatusCode::OK, &Index { paths })
}

/// Returns 200 while the process is alive (liveness).
#[utoipa::path(
    get,
    path = "/health",
    operation_id = "health",
    tag = "about",
    responses(
        (status = 200, description = "The server is alive", body = ref("#/components/schemas/Status")),
        Refused,
    )
)]
pub(crate) async fn health() -> Response {
    answer::written(StatusCode::OK, "{\"status\":\"ok\"}\n")
}

/// Returns 200 while the server accepts requests (readiness).
#[utoipa::path(
    get,
    path = "/ready",
    operation_id = "ready",
    tag = "about",
    responses(
        (status = 200, description = "The server accepts requests", body = ref("#/components/schemas/Status")),
        Refused,
    )
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, ApiError> {
    app.guard.drain.check()?;
    Ok(answer::written(StatusCode::OK, "{\"status\":\"ready\"}\n"))
}

/// Lists the capabilities of this runtime (SPEC 8.1).
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

/// Returns the metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "about",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text"),
        Refused,
    )
)]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let providers = app.runtime.providers().default_order().iter();
    let live = Live {
        streams: app.guard.slots.taken(),
        providers: providers.map(|one| (one.info().name.clone().into_owned(), one.is_available())).collect(),
        sessions: app.sessions.count_by_state(),
        sessions_not_on_disk: app.sessions.count_not_on_disk(),
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

/// Written by hand: most members are constants.
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
