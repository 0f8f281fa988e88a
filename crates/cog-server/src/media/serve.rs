use std::{
    io::{Read, Seek as _, SeekFrom},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use cog_media::{Media, MediaError};
use futures_util::{Stream, stream};
use tokio::{task::spawn_blocking, time::Instant};

use super::{MediaStore, UploadError, range::Range};
use crate::error::ApiError;

/// How many bytes are read at once.
const BLOCK: usize = 64 << 10;
/// What is shown of it runs no script and loads nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");

/// What is kept under an id, as a response: of the type that its content is, to be saved rather than shown, and for
/// nobody's cache but its owner's. One range of it where that is asked for (RFC 9110, 14); what is there under an id
/// never changes, and so the id is its entity tag.
///
/// # Errors
/// E1019 where there is nothing of this owner, E1018 where there was.
pub(crate) fn serve(
    store: &MediaStore,
    (id, owner): (&str, &str),
    method: &Method,
    asked: &HeaderMap,
) -> Result<Response, UploadError> {
    let (media, until) = store.media(id, owner)?;
    let (length, tag) = (media.bytes().len(), format!("\"{id}\""));
    let mut response = match Range::of(method, asked, length, &tag) {
        Range::Whole => bytes(&media, 0, length)?,
        Range::Part { first, last } => {
            let mut response = bytes(&media, first, last + 1 - first)?;
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            told(response, &format!("bytes {first}-{last}/{length}"))
        }
        Range::Outside => {
            let fault = ApiError::from(UploadError::Outside { length });
            return Ok(told(fault.into_response(), &format!("bytes */{length}")));
        }
    };
    mark(response.headers_mut(), id, &media, until.saturating_duration_since(Instant::now()));
    response.headers_mut().insert(header::ETAG, value(&tag));
    Ok(response)
}

/// So many bytes of a medium, from here on.
fn bytes(media: &Media, first: u64, count: u64) -> Result<Response, UploadError> {
    let mut reader = media.bytes().reader();
    reader.seek(SeekFrom::Start(first)).map_err(MediaError::from)?;
    let mut response = Response::new(Body::from_stream(blocks(reader.take(count))));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(count));
    Ok(response)
}

/// The response, with which bytes it is about.
fn told(mut response: Response, range: &str) -> Response {
    response.headers_mut().insert(header::CONTENT_RANGE, value(range));
    response
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

fn mark(headers: &mut HeaderMap, id: &str, media: &Media, left: Duration) {
    let ending = ending(media.media_type());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("attachment; filename=\"{id}.{ending}\"")));
    headers.insert(header::CACHE_CONTROL, value(&format!("private, max-age={}", left.as_secs())));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

/// The ending of a file of this type.
fn ending(media_type: &str) -> &str {
    match media_type {
        "image/jpeg" => "jpg",
        "audio/mpeg" => "mp3",
        "video/quicktime" => "mov",
        // The others are called as their files end.
        other => other.rsplit('/').next().unwrap_or("bin"),
    }
}

fn blocks(reader: impl Read + Send + 'static) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let read = spawn_blocking(move || {
            let mut block = vec![0; BLOCK];
            let read = reader.read(&mut block)?;
            block.truncate(read);
            Ok::<_, std::io::Error>((Bytes::from(block), reader))
        });
        let (block, reader) = read.await.map_err(std::io::Error::other)??;
        Ok((!block.is_empty()).then_some((block, reader)))
    })
}
