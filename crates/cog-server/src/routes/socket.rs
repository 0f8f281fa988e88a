use axum::{
    extract::{State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use cog_spec::Code;

use super::extract::Name;
use crate::{
    error::ApiError,
    openapi::Refused,
    state::{App, Caller},
    websocket::{Conversation, bounded},
};

/// The subprotocol that is spoken. A browser offers it beside its token (ruling R53).
const PROTOCOL: &str = "cog";

/// A WebSocket: runs of one module, one after the other, each chunk a text frame (ruling R53).
#[utoipa::path(
    get,
    path = "/v1/modules/{name}/ws",
    operation_id = "openSocket",
    tag = "run",
    params(("name" = String, Path, description = "The module's name")),
    responses(
        (status = 101, description = "The connection is a WebSocket from now on"),
        (status = 426, description = "The request asked for no WebSocket", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn socket(
    State(app): State<App>,
    Name(name): Name,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Response> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error))?;
    app.load(&name).await.map_err(|error| ApiError::from(error).into_response())?;
    let upgrade = bounded(upgrade.protocols([PROTOCOL]), app.settings.max_message_bytes);
    Ok(upgrade.on_upgrade(move |socket| Conversation::new(app, caller, name, socket).run()))
}

fn not_a_socket(error: &WebSocketUpgradeRejection) -> Response {
    let is_plain = !matches!(
        error,
        WebSocketUpgradeRejection::InvalidWebSocketVersionHeader(_)
            | WebSocketUpgradeRejection::WebSocketKeyHeaderMissing(_)
    );
    let (status, message) = match is_plain {
        true => (StatusCode::UPGRADE_REQUIRED, "this route is a WebSocket".to_owned()),
        false => (StatusCode::BAD_REQUEST, format!("no WebSocket can be made of this request: {error}")),
    };
    let fault = ApiError::new(Code::InvalidInput, message)
        .suggest("open it as ws://…/ws, or POST to …/execute")
        .with_status(status);
    let mut response = fault.into_response();
    if is_plain {
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    response
}
