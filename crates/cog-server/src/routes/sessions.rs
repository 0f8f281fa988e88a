use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use cog_run::sessions::ResumeError;
use cog_spec::{Code, ErrorBody};

use super::extract::Name;
use crate::{
    answer,
    error::ApiError,
    follow,
    guard::Client,
    negotiate::Accept,
    openapi::{Chunks, RecoveryHeaders, Refused, RunFailed},
    request::of_headers,
    state::App,
};

/// How far a session is.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    operation_id = "showSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The session's id")),
    responses(
        (status = 200, description = "The session", body = ref("#/components/schemas/Session")),
        (status = 410, description = "There is no such session, or no more", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn show(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
) -> Result<Response, ApiError> {
    let info = app.sessions.get(&id, &client.owner()).ok_or_else(unknown)?;
    Ok(answer::json(StatusCode::OK, &info))
}

/// A session's chunks: those that were told, then those that come.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/events",
    operation_id = "followSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The session's id"), RecoveryHeaders),
    responses(Chunks, RunFailed)
)]
pub(crate) async fn events(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let from = match of_headers(&headers)? {
        Some((session, _)) if session != id => return Err(another(&session)),
        recovery => recovery.map(|(_, from)| from),
    };
    let follower = follow::reread(&app, &id, &client, from).await?;
    Ok(Accept::of(&headers).wire().response(follower, &app.settings))
}

/// Cancels a session for good.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    operation_id = "cancelSession",
    tag = "sessions",
    params(("id" = String, Path, description = "The session's id")),
    responses(
        (status = 200, description = "The session, cancelled; one that was over stays as it was", body = ref("#/components/schemas/Session")),
        (status = 410, description = "There is no such session, or no more", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
) -> Result<Response, ApiError> {
    let info = app.sessions.cancel(&id, &client.owner()).ok_or_else(unknown)?;
    Ok(answer::json(StatusCode::OK, &info))
}

fn unknown() -> ApiError {
    ResumeError::Unknown.into_envelope().into()
}

fn another(session: &str) -> ApiError {
    let session: String = session.chars().take(60).collect();
    let message = format!("the last event is of session `{}`, not of this one", session.escape_debug());
    ErrorBody::new(Code::CheckpointInvalid, message).into()
}
