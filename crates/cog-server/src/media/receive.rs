use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::{task::spawn_blocking, time::timeout};

use super::{MediaStore, Progress, Span, UploadError, store::Receiving};
use crate::guard;

/// How many bytes are written at once.
const BLOCK: usize = 256 << 10;

/// MediaCapabilities a body into an upload, block by block: no more of it than a block stands in memory. `longest` is how long the
/// body may stand still.
///
/// # Errors
/// Why the upload does not go on; what has come is kept where more can follow.
pub(crate) async fn receive(
    store: &MediaStore,
    (id, owner): (&str, &str),
    span: Span,
    mut body: Body,
    longest: Duration,
) -> Result<Progress, UploadError> {
    let after = match span {
        Span::None => return store.progress(id, owner),
        Span::Whole => None,
        Span::Part { first, .. } => Some(first),
    };
    let received = match store.begin(id, owner, after) {
        Ok(upload) => take(upload, span, &mut body, longest).await,
        Err(error) => Err(error),
    };
    if received.is_err() {
        // A client that is still sending would lose the answer with the connection.
        guard::body::pass_over(&mut body).await;
    }
    let upload = received?;
    if span.is_last() {
        return upload.finish().await;
    }
    drop(upload);
    store.progress(id, owner)
}

/// The upload with the span's bytes in it.
async fn take(
    mut upload: Receiving,
    span: Span,
    body: &mut Body,
    longest: Duration,
) -> Result<Receiving, UploadError> {
    let room = upload.most().saturating_sub(upload.received());
    let said = length(span).or(body.size_hint().exact());
    if said.unwrap_or(body.size_hint().lower()) > room {
        return Err(cog_media::MediaError::TooLarge { limit: upload.most() }.into());
    }
    let mut found = 0;
    let mut block = BytesMut::new();
    loop {
        let next = next(body, longest).await;
        if let Ok(Some(bytes)) = &next {
            found += bytes.len() as u64;
            if let Some(said) = length(span).filter(|said| found > *said) {
                return Err(UploadError::OtherLength { found, said });
            }
            block.extend_from_slice(bytes);
        }
        if block.len() >= BLOCK || !matches!(next, Ok(Some(_))) {
            upload = write(upload, block.split().freeze()).await?;
        }
        match next {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(how) => return Err(UploadError::Broken { how, received: upload.received() }),
        }
    }
    match length(span).filter(|said| found != *said) {
        Some(said) => Err(UploadError::OtherLength { found, said }),
        None => Ok(upload),
    }
}

/// How many bytes a span has.
fn length(span: Span) -> Option<u64> {
    match span {
        Span::Part { first, last, .. } => Some(last - first + 1),
        Span::Whole | Span::None => None,
    }
}

async fn next(body: &mut Body, longest: Duration) -> Result<Option<Bytes>, &'static str> {
    loop {
        let frame = timeout(longest, body.frame()).await.map_err(|_| "stood still")?;
        match frame.transpose().map_err(|_| "broke off")?.map(http_body::Frame::into_data) {
            Some(Ok(bytes)) => return Ok(Some(bytes)),
            Some(Err(_)) => {}
            None => return Ok(None),
        }
    }
}

async fn write(mut upload: Receiving, block: Bytes) -> Result<Receiving, UploadError> {
    blocking(move || upload.push(&block).map(|()| upload)).await
}

/// Does what waits for a disk where that holds nobody up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, UploadError> + Send + 'static,
) -> Result<T, UploadError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| cog_media::MediaError::Storage(std::io::Error::other(error)))?
}
