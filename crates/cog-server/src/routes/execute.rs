//! The routes that run a module: execute, the route for older clients, and the WebSocket. The routes of the session of a run.

use axum::{
    body::Bytes,
    extract::{Request, State, WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use cog_run::sessions::ResumeError;
use cog_spec::{Code, ErrorBody};

use crate::{
    answer,
    deliver::{self, ExecuteRequest, deliver},
    error::ApiError,
    guard::{Client, Credential},
    negotiate::{Accept, ResponsePreference},
    openapi::{Chunks, Executed, ModeHeader, RecoveryHeaders, Refused, RunFailed},
    request::{self, ExecuteBody, Form, RunBody, recovery_from_headers},
    state::{App, Caller, Name},
    websocket::{Conversation, bounded},
};

/// Runs a module. Returns one envelope, or a stream of chunks.
#[utoipa::path(
    post,
    path = "/v1/modules/{name}/execute",
    operation_id = "executeModule",
    tag = "run",
    params(
        ("name" = String, Path, description = "The name of the module"),
        ("response_mode" = Option<String>, Query, description = "One envelope or a stream", pattern = "^(sync|streaming)$"),
        ModeHeader,
        RecoveryHeaders,
    ),
    request_body(content(
        (ref("#/components/schemas/ExecuteRequest") = "application/json"),
        (ref("#/components/schemas/ExecuteForm") = "multipart/form-data"),
    )),
    responses(Executed, (status = 202, description = "The detached run has started", body = ref("#/components/schemas/Accepted")), RunFailed)
)]
pub(crate) async fn execute(
    State(app): State<App>,
    Name(name): Name,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let client = caller.client.clone();
    let recovery = request::recovery_from_headers(&parts.headers)?;
    let form = if request::is_form(&parts.headers) {
        // Boxed: otherwise the future of every run would be as large as the future of a form.
        Box::pin(request::read_form(&app, &client, &parts.headers, body, recovery)).await?
    } else {
        request::read(&app, &client, &parts.headers, body, move |body: Bytes, lease| {
            Ok::<_, ApiError>(Form::without_files(ExecuteBody::parse(&body, recovery)?, lease))
        })
        .await?
    };
    let module = app.load(&name).await?;
    form.check_fields(&module)?;
    let Form { mut body, files, lease, .. } = form;
    body.options.set_caller(&app, &caller);
    let preference =
        ResponsePreference { headers: &parts.headers, query: parts.uri.query(), options: &body.options };
    let delivery = preference.delivery(module.manifest.response.mode)?;
    drop(parts); // and with them the memory that the request was read into
    deliver(&app, ExecuteRequest { module, name, body, client, files, lease }, delivery).await
}

// Routes for older clients.

/// Runs a module and returns one envelope. Accepts `{module, args | input, provider?, model?}`.
#[utoipa::path(
    post,
    path = "/run",
    operation_id = "run",
    tag = "older clients",
    request_body(content = ref("#/components/schemas/RunRequest")),
    responses(
        (status = 200, description = "The envelope", body = ref("#/components/schemas/Envelope")),
        RunFailed,
    )
)]
pub(crate) async fn run(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let (mut body, _lease) =
        request::read(&app, &caller.client, &parts.headers, body, |body: Bytes, lease| {
            Ok::<_, ApiError>((RunBody::parse(&body)?, lease))
        })
        .await?;
    body.options.set_caller(&app, &caller);
    let module = app.load(&body.module).await?;
    Ok(deliver::run_to_response(&app, &module, body.input, body.options, body.bytes).await)
}

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
    // Before the upgrade, so that an unknown module has a status and not only a frame.
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
    let Some(digits) = key.as_bytes().strip_suffix(b"==") else { return false };
    digits.len() == 22 && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}

fn refuse(status: StatusCode, message: &str) -> Response {
    let error = ApiError::new(Code::InvalidInput, message)
        .suggest("Connect to ws://…/ws, or POST to …/execute.")
        .with_status(status);
    let mut response = error.into_response();
    response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

/// Returns the state of a session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    operation_id = "showSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session")),
    responses(
        (status = 200, description = "The session", body = ref("#/components/schemas/Session")),
        (status = 410, description = "E4013: the session is unknown or has expired", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn show(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
) -> Result<Response, ApiError> {
    deliver::adopt(&app, &id, &client).await?;
    let info = app.sessions.get(&id, &client.owner()).ok_or_else(unknown)?;
    Ok(answer::json(StatusCode::OK, &info))
}

/// Streams the chunks of a session: those in its log, then new ones.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/events",
    operation_id = "followSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session"), RecoveryHeaders),
    responses(Chunks, RunFailed)
)]
pub(crate) async fn events(
    State(app): State<App>,
    Name(id): Name,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let from = match recovery_from_headers(&headers)? {
        Some((session, _)) if session != id => return Err(another(&session)),
        recovery => recovery.map(|(_, from)| from),
    };
    let subscriber = deliver::resubscribe(&app, &id, &caller, from).await?;
    Ok(Accept::from_headers(&headers).wire().response(subscriber, &app.settings))
}

/// Cancels a session. It cannot be resumed.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    operation_id = "cancelSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session")),
    responses(
        (status = 200, description = "The cancelled session; a finished one does not change", body = ref("#/components/schemas/Session")),
        (status = 410, description = "E4013: the session is unknown or has expired", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
) -> Result<Response, ApiError> {
    deliver::adopt(&app, &id, &client).await?;
    let info = app.sessions.cancel(&id, &client.owner()).ok_or_else(unknown)?;
    Ok(answer::json(StatusCode::OK, &info))
}

fn unknown() -> ApiError {
    ResumeError::Unknown.into_envelope().into()
}

fn another(session: &str) -> ApiError {
    let session: String = session.chars().take(60).collect();
    let message = format!("Last-Event-ID belongs to session `{}`, not to this one", session.escape_debug());
    ErrorBody::new(Code::CheckpointInvalid, message).into()
}
