use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::{task::spawn_blocking, time::timeout};

use super::{MediaStore, Progress, Span, UploadError, store::Receiving};
use crate::guard;

/// The number of bytes of one write.
const BLOCK: usize = 256 << 10;

/// Stores a body as an upload, in blocks, so that only one block is in memory. `max_pause` is the maximum time without a
/// byte.
///
/// # Errors
/// Why the upload fails. Received bytes are retained where the upload can be continued.
pub(crate) async fn receive(
    store: &MediaStore,
    (id, owner): (&str, &str),
    span: Span,
    mut body: Body,
    max_pause: Duration,
) -> Result<Progress, UploadError> {
    let after = match span {
        Span::None => return store.progress(id, owner),
        Span::Complete => None,
        Span::Part { first, .. } => Some(first),
    };
    let received = match store.begin(id, owner, after, announced(span, &body)) {
        Ok(upload) => receive_span(upload, span, &mut body, max_pause).await,
        Err(error) => Err(error),
    };
    if received.is_err() {
        // A client that is still sending would not receive the response.
        guard::discard(&mut body).await;
    }
    let upload = received?;
    if span.is_last() {
        return upload.finish().await;
    }
    drop(upload);
    store.progress(id, owner)
}

/// Returns the upload after it received the bytes of the span.
async fn receive_span(
    mut upload: Receiving,
    span: Span,
    body: &mut Body,
    max_pause: Duration,
) -> Result<Receiving, UploadError> {
    let room = upload.max_bytes().saturating_sub(upload.received());
    let declared = length(span).or(body.size_hint().exact());
    if declared.unwrap_or(body.size_hint().lower()) > room {
        return Err(cog_media::MediaError::TooLarge { limit: upload.max_bytes() }.into());
    }
    let mut found = 0;
    let mut block = BytesMut::new();
    loop {
        let next = next(body, max_pause).await;
        if let Ok(Some(bytes)) = &next {
            found += bytes.len() as u64;
            if let Some(declared) = length(span).filter(|declared| found > *declared) {
                return Err(UploadError::LengthMismatch { found, declared });
            }
            block.extend_from_slice(bytes);
        }
        if block.len() >= BLOCK || !matches!(next, Ok(Some(_))) {
            upload = write(upload, block.split().freeze()).await?;
        }
        match next {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(how) => return Err(UploadError::Interrupted { how, received: upload.received() }),
        }
    }
    match length(span).filter(|declared| found != *declared) {
        Some(declared) => Err(UploadError::LengthMismatch { found, declared }),
        None => Ok(upload),
    }
}

/// The length that the upload has according to this request; 0 if it is unknown.
fn announced(span: Span, body: &Body) -> u64 {
    match span {
        Span::Part { last, total, .. } => total.unwrap_or(last + 1),
        Span::Complete => body.size_hint().exact().unwrap_or(0),
        Span::None => 0,
    }
}

/// The length of a span.
fn length(span: Span) -> Option<u64> {
    match span {
        Span::Part { first, last, .. } => Some(last - first + 1),
        Span::Complete | Span::None => None,
    }
}

async fn next(body: &mut Body, max_pause: Duration) -> Result<Option<Bytes>, &'static str> {
    loop {
        let frame = timeout(max_pause, body.frame()).await.map_err(|_| "did not arrive in time")?;
        match frame.transpose().map_err(|_| "was interrupted")?.map(http_body::Frame::into_data) {
            Some(Ok(bytes)) => return Ok(Some(bytes)),
            Some(Err(_)) => {}
            None => return Ok(None),
        }
    }
}

async fn write(mut upload: Receiving, block: Bytes) -> Result<Receiving, UploadError> {
    blocking(move || upload.push(&block).map(|()| upload)).await
}

/// Runs work that waits for the disk on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, UploadError> + Send + 'static,
) -> Result<T, UploadError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| cog_media::MediaError::Storage(std::io::Error::other(error)))?
}
