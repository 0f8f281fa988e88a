use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use cog_run::sessions::ResumeError;
use cog_spec::{Code, ErrorBody};

use crate::{
    answer,
    error::ApiError,
    follow,
    guard::Client,
    negotiate::Accept,
    openapi::{Chunks, RecoveryHeaders, Refused, RunFailed},
    request::recovery_from_headers,
    state::{App, Name},
};

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
    follow::adopt(&app, &id, &client).await?;
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
    client: Client,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let from = match recovery_from_headers(&headers)? {
        Some((session, _)) if session != id => return Err(another(&session)),
        recovery => recovery.map(|(_, from)| from),
    };
    let subscriber = follow::resubscribe(&app, &id, &client, from).await?;
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
    follow::adopt(&app, &id, &client).await?;
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
