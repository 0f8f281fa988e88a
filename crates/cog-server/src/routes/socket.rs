use axum::{
    extract::{State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use cog_spec::Code;

use super::extract::Name;
use crate::{
    error::ApiError,
    guard::Credential,
    openapi::Refused,
    state::{App, Caller},
    websocket::{Conversation, bounded},
};

/// The subprotocol. A browser offers it together with its token (ruling R53).
const PROTOCOL: &str = "cog";

/// Opens a WebSocket for runs of one module, one at a time. Each chunk is a text frame (ruling R53).
#[utoipa::path(
    get,
    path = "/v1/modules/{name}/ws",
    operation_id = "openSocket",
    tag = "run",
    params(("name" = String, Path, description = "The name of the module")),
    responses(
        (status = 101, description = "The connection is now a WebSocket"),
        (status = 426, description = "The request is not a WebSocket upgrade", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn socket(
    State(app): State<App>,
    Name(name): Name,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Response> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error))?;
    if !has_key(&headers) {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "invalid Sec-WebSocket-Key: it must be 16 bytes in base64",
        ));
    }
    app.load(&name).await.map_err(|error| ApiError::from(error).into_response())?;
    let upgrade = bounded(upgrade.protocols([PROTOCOL]), app.settings.max_message_bytes);
    let credential = Credential::from_headers(&headers);
    Ok(upgrade.on_upgrade(move |socket| Conversation::new(app, caller, credential, name, socket).run()))
}

fn not_a_socket(rejection: &WebSocketUpgradeRejection) -> Response {
    let is_plain = !matches!(
        rejection,
        WebSocketUpgradeRejection::InvalidWebSocketVersionHeader(_)
            | WebSocketUpgradeRejection::WebSocketKeyHeaderMissing(_)
    );
    if is_plain {
        let mut response = refuse(StatusCode::UPGRADE_REQUIRED, "this route requires a WebSocket upgrade");
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        return response;
    }
    refuse(StatusCode::BAD_REQUEST, &format!("invalid WebSocket upgrade: {rejection}"))
}

/// Whether there is one key, of 16 bytes in base64 (RFC 6455 sections 4.2.1 and 11.3.1).
fn has_key(headers: &HeaderMap) -> bool {
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return false };
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    key.as_bytes().strip_suffix(b"==").is_some_and(|key| key.len() == 22 && key.iter().all(is_digit))
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let error = ApiError::new(Code::InvalidInput, message)
        .suggest("Connect to ws://…/ws, or POST to …/execute.")
        .with_status(status);
    let mut response = error.into_response();
    response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}
