//! Uploads and generated media (docs/spec/media.md, docs/spec/http.md).

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};

use crate::{
    answer,
    error::ApiError,
    guard::Client,
    media::{self, Span, UploadRequest},
    openapi::Refused,
    request,
    state::{App, Name},
};

/// Creates an upload and returns the URL for its bytes.
#[utoipa::path(
    post,
    path = "/v1/media/upload-url",
    operation_id = "createUpload",
    tag = "media",
    request_body(content = ref("#/components/schemas/UploadRequest")),
    responses(
        (status = 201, description = "The upload", body = ref("#/components/schemas/Upload")),
        (status = 413, description = "The size exceeds the limit of this media type", body = ref("#/components/schemas/Envelope")),
        (status = 415, description = "The content type is not JSON, or the media type is not supported", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    client: Client,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let wanted = request::read(&app, &client, &parts.headers, body, |body: Bytes, _lease| {
        Ok::<_, ApiError>(UploadRequest::read(&request::object(&body)?)?)
    })
    .await?;
    let ticket = app.media.create(&client.owner(), wanted)?;
    let mut response = answer::json(StatusCode::CREATED, &ticket);
    if let Ok(location) = HeaderValue::from_str(&ticket.url()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Receives the bytes of an upload: all of them, or with `Content-Range` the next part.
#[utoipa::path(
    put,
    path = "/v1/media/uploads/{id}",
    operation_id = "upload",
    tag = "media",
    params(
        ("id" = String, Path, description = "The id of the upload"),
        ("Content-Range" = Option<String>, Header, description = "The part in the body: `bytes 0-99/200`. With `bytes */200` \
            and no body, returns the progress", pattern = r"^bytes ([0-9]{1,15}-[0-9]{1,15}|\*)/([0-9]{1,15}|\*)$"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The upload is complete and valid", body = ref("#/components/schemas/UploadProgress")),
        (status = 202, description = "The upload is incomplete", body = ref("#/components/schemas/UploadProgress")),
        (status = 409, description = "The upload is complete, or another request is sending it", body = ref("#/components/schemas/Envelope")),
        (status = 410, description = "E1018: the upload has expired", body = ref("#/components/schemas/Envelope")),
        (status = 413, description = "E1011: the upload exceeds its maximum size", body = ref("#/components/schemas/Envelope")),
        (status = 415, description = "E1010: the media type is not supported", body = ref("#/components/schemas/Envelope")),
        (status = 416, description = "The part does not begin where the previous one ended", body = ref("#/components/schemas/Envelope")),
        (status = 422, description = "E1020: the checksum differs; E1013 to E1017: the content is not valid", body = ref("#/components/schemas/Envelope")),
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
    let span = Span::from_headers(&parts.headers)?;
    let owned = (id.as_str(), client.owner());
    let max_time = app.settings.body_timeout;
    let progress = media::receive(&app.media, (owned.0, &owned.1), span, body, max_time).await?;
    let status = if progress.is_complete() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut response = answer::json(status, &progress);
    if let Some(range) = progress.range() {
        response.headers_mut().insert(header::RANGE, range);
    }
    Ok(response)
}

/// Returns an uploaded or generated media file to its owner, or one range of it.
#[utoipa::path(
    get,
    path = "/v1/media/{id}",
    operation_id = "showMedia",
    tag = "media",
    params(
        ("id" = String, Path, description = "The id of the media file"),
        ("Range" = Option<String>, Header, description = "The requested part: `bytes=0-99`, `bytes=100-` or `bytes=-100`; \
            any other value requests the complete file"),
        ("If-Range" = Option<String>, Header, description = "The `ETag` of the other parts; if it differs, the complete file is returned"),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of a cached file; if it is the same, 304 is returned"),
    ),
    responses(
        (status = 200, description = "The file, with the type of its content", body = Vec<u8>, content_type = "*/*"),
        (status = 206, description = "The requested part", body = Vec<u8>, content_type = "*/*"),
        (status = 304, description = "The cached file is current"),
        (status = 410, description = "E1018: the file has expired", body = ref("#/components/schemas/Envelope")),
        (status = 416, description = "The range begins past the end of the file", body = ref("#/components/schemas/Envelope")),
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

/// Deletes an upload or a generated media file. A request that is sending the upload fails.
#[utoipa::path(
    delete,
    path = "/v1/media/{id}",
    operation_id = "deleteMedia",
    tag = "media",
    params(("id" = String, Path, description = "The id of the media file")),
    responses(
        (status = 204, description = "The file is deleted"),
        (status = 410, description = "E1018: the file has expired", body = ref("#/components/schemas/Envelope")),
        Refused,
    )
)]
pub(crate) async fn remove(
    State(app): State<App>,
    Name(id): Name,
    client: Client,
) -> Result<StatusCode, ApiError> {
    app.media.remove(&id, &client.owner())?;
    Ok(StatusCode::NO_CONTENT)
}
