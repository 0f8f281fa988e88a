use std::{
    io::Read,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use cog_media::{Media, Stored};
use futures_util::{Stream, stream};
use tokio::task::spawn_blocking;

use super::{MediaStore, UploadError};

/// How many bytes are read at once.
const BLOCK: usize = 64 << 10;
/// What is shown of it runs no script and loads nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");

/// What is kept under an id, as a response: of the type that its content is, to be saved rather than shown, and for
/// nobody's cache but its owner's.
///
/// # Errors
/// E1019 where there is nothing of this owner, E1018 where there was.
pub(crate) fn serve(store: &MediaStore, id: &str, owner: &str) -> Result<Response, UploadError> {
    let (media, until) = store.media(id, owner)?;
    let mut response = Response::new(Body::from_stream(blocks(media.bytes().clone())));
    mark(response.headers_mut(), id, &media, until.saturating_duration_since(Instant::now()));
    Ok(response)
}

fn mark(headers: &mut HeaderMap, id: &str, media: &Media, left: Duration) {
    let text = |text: String| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"));
    let ending = ending(media.media_type());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.media_type()));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(media.bytes().len()));
    headers.insert(header::CONTENT_DISPOSITION, text(format!("attachment; filename=\"{id}.{ending}\"")));
    headers.insert(header::CACHE_CONTROL, text(format!("private, max-age={}", left.as_secs())));
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

fn blocks(stored: Stored) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(stored.reader(), |mut reader| async move {
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
