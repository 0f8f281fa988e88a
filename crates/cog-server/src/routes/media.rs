//! Media before a run and after it (docs/spec/media.md, docs/spec/http.md).

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};

use super::extract::Name;
use crate::{
    answer,
    error::ApiError,
    guard::Client,
    media::{self, Span, Wanted},
    openapi::Refused,
    request,
    state::App,
};

/// MediaSink a place for an upload and says where its bytes go.
#[utoipa::path(
    post,
    path = "/v1/media/upload-url",
    operation_id = "createUpload",
    tag = "media",
    request_body(content = ref("#/components/schemas/UploadRequest")),
    responses(
        (status = 201, description = "The place", body = ref("#/components/schemas/Upload")),
        (status = 413, description = "More bytes than a medium of this type may have", body = ref("#/components/schemas/Envelope")),
        (status = 415, description = "The content type is not JSON, or no module takes such media", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    client: Client,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let body = request::read(&parts.headers, body, &app.settings).await?;
    let bytes = body.len();
    let read = move || Ok::<_, ApiError>(Wanted::read(&request::object(&body)?)?);
    let wanted = app.offload.run(bytes, read).await?;
    let ticket = app.media.create(&client.owner(), wanted)?;
    let mut response = answer::json(StatusCode::CREATED, &ticket);
    if let Ok(place) = HeaderValue::from_str(&ticket.url()) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// MediaCapabilities the bytes of an upload, all of them or, by `Content-Range`, the next part of them.
#[utoipa::path(
    put,
    path = "/v1/media/uploads/{id}",
    operation_id = "upload",
    tag = "media",
    params(
        ("id" = String, Path, description = "The upload's id"),
        ("Content-Range" = Option<String>, Header, description = "Which part this is: `bytes 0-99/200`. With `bytes */200` \
            and no body, how much is there is asked", pattern = r"^bytes ([0-9]{1,15}-[0-9]{1,15}|\*)/([0-9]{1,15}|\*)$"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "It is all there, and was checked", body = ref("#/components/schemas/UploadProgress")),
        (status = 202, description = "More is to come", body = ref("#/components/schemas/UploadProgress")),
        (status = 409, description = "It is complete, or another request is sending it", body = ref("#/components/schemas/Envelope")),
        (status = 410, description = "E1018: it was not used in time", body = ref("#/components/schemas/Envelope")),
        (status = 413, description = "E1011: more bytes than it may have", body = ref("#/components/schemas/Envelope")),
        (status = 415, description = "E1010: no medium of a type that is taken", body = ref("#/components/schemas/Envelope")),
        (status = 416, description = "The part begins elsewhere than where the last one ended", body = ref("#/components/schemas/Envelope")),
        (status = 422, description = "E1020: the checksum is another; E1013 to E1017: the content does not pass", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn upload(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let span = Span::of(&parts.headers)?;
    let whose = (id.as_str(), client.owner());
    let longest = app.settings.body_timeout;
    let progress = media::receive(&app.media, (whose.0, &whose.1), span, body, longest).await?;
    let status = if progress.is_complete() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = answer::json(status, &progress);
    if let Some(range) = progress.range() {
        response.headers_mut().insert(header::RANGE, range);
    }
    Ok(response)
}

/// Gives what was uploaded, or what a run has made, to its owner: all of it, or one range.
#[utoipa::path(
    get,
    path = "/v1/media/{id}",
    operation_id = "showMedia",
    tag = "media",
    params(
        ("id" = String, Path, description = "The medium's id"),
        ("Range" = Option<String>, Header, description = "One part of it: `bytes=0-99`, `bytes=100-` or `bytes=-100`; \
            anything else asks for all of it"),
        ("If-Range" = Option<String>, Header, description = "The `ETag` that the other parts had; with another one all of it is given"),
    ),
    responses(
        (status = 200, description = "Its bytes, of the type that they are", body = Vec<u8>, content_type = "*/*"),
        (status = 206, description = "The part that is asked for", body = Vec<u8>, content_type = "*/*"),
        (status = 410, description = "E1018: it is no longer kept", body = ref("#/components/schemas/Envelope")),
        (status = 416, description = "The range begins past its end", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn show(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Ok(media::serve(&app.media, (&id, &client.owner()), &method, &headers)?)
}
