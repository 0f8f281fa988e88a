use std::time::{Duration, SystemTime};

use axum::{body::Body, http::HeaderValue};
use bytes::{Bytes, BytesMut};
use cog_json::{Node, ToJson, Value, Writer};
use cog_media::{Checksum, Media, MediaDeclaration, MediaError, MediaRules, modality_of};
use cog_spec::{Code, ErrorBody};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::{task::spawn_blocking, time::timeout};

use super::{DeclaredUpload, MediaStore, Span, UploadError, rfc3339, store::Receiving};
use crate::{error::allow_only, guard};

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
    done.map_err(|error| {
        tracing::error!(%error, "cannot store an upload");
        // The text of a panic can contain anything.
        cog_media::MediaError::Storage(std::io::Error::other("a background task failed"))
    })?
}

/// The body of `POST /v1/media/upload-url`. All members are optional.
#[derive(Debug, Default)]
pub(crate) struct UploadRequest {
    media_type: Option<String>,
    length: Option<u64>,
    checksum: Option<Checksum>,
    /// The maximum bytes, below the limit of its type.
    max_bytes: Option<u64>,
    /// The type that the client suggested (ruling R61).
    hint: Option<String>,
}

/// A created upload.
#[derive(Debug)]
pub(crate) struct UploadTicket {
    pub(super) id: String,
    pub(super) media_type: Option<String>,
    pub(super) expires_at: SystemTime,
    pub(super) max_bytes: u64,
}

/// The progress of an upload.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(super) id: String,
    pub(super) expires_at: SystemTime,
    pub(super) received: u64,
    /// The file, once it is complete.
    pub(super) media: Option<Media>,
}

/// Returns a size in bytes, at least 1. A number from 2^64 is over every limit too.
fn size(node: Node<'_>) -> Option<u64> {
    let is_huge = node.as_f64().is_some_and(|length| length >= 18_446_744_073_709_551_616.0);
    node.as_u64().or_else(|| is_huge.then_some(u64::MAX)).filter(|length| *length > 0)
}

fn wrong(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, message)
}

impl UploadRequest {
    /// An upload with a maximum length and the type that the client suggests; its exact length is not known.
    pub(crate) fn within(max_bytes: u64, hint: Option<String>) -> Self {
        Self { max_bytes: Some(max_bytes), hint, ..Self::default() }
    }

    /// Reads `{media_type?, size_bytes?, checksum?}`.
    ///
    /// # Errors
    /// E1001 for an invalid body.
    pub(crate) fn read(body: &Value) -> Result<Self, ErrorBody> {
        allow_only(body.node(), "", &["media_type", "size_bytes", "checksum"])?;
        let media_type = match body.get("media_type") {
            Some(node) => {
                Some(node.as_str().ok_or_else(|| wrong("media_type: must be a string"))?.to_owned())
            }
            None => None,
        };
        let length = match body.get("size_bytes") {
            Some(node) => Some(size(node).ok_or_else(|| wrong("size_bytes: must be a whole number from 1"))?),
            None => None,
        };
        let checksum = body.get("checksum").map(Checksum::read).transpose();
        let checksum = checksum.map_err(|error| ErrorBody::from(&error))?;
        Ok(Self { media_type, length, checksum, ..Self::default() })
    }

    /// Returns what the upload must match.
    ///
    /// # Errors
    /// E1010 for an unsupported type, E1011 for a size over the limit of the type.
    pub(super) fn declared(self) -> Result<DeclaredUpload, UploadError> {
        let rules = MediaRules::default();
        let limit = match &self.media_type {
            None => rules.max_bytes_of_any(),
            Some(named) => {
                let allowed = rules.media_types();
                let kind = modality_of(&named.to_ascii_lowercase());
                let kind = kind.filter(|_| allowed.iter().any(|one| one.eq_ignore_ascii_case(named)));
                let Some(kind) = kind else {
                    let found = named.chars().take(60).collect::<String>().escape_debug().to_string();
                    let allowed = allowed.join(", ");
                    return Err(MediaError::Unsupported { found: Some(found), allowed }.into());
                };
                rules.max_bytes_of(kind)
            }
        };
        let limit = self.max_bytes.map_or(limit, |max_bytes| max_bytes.min(limit));
        if self.length.is_some_and(|length| length > limit) {
            return Err(MediaError::TooLarge { limit }.into());
        }
        let expected = MediaDeclaration {
            media_type: self.media_type,
            checksum: self.checksum,
            hint: self.hint,
            ..MediaDeclaration::default()
        };
        Ok(DeclaredUpload { expected, length: self.length, max_bytes: self.length.unwrap_or(limit) })
    }
}

/// The JSON of docs/spec/media.md.
impl ToJson for UploadTicket {
    fn write_json(&self, w: &mut Writer<'_>) {
        let media_type = self.media_type.as_deref().unwrap_or("application/octet-stream");
        w.object(|w| {
            w.field("upload_id", &self.id);
            w.field("upload_url", &self.url());
            w.field("method", "PUT");
            w.key("headers").object(|w| {
                w.field("Content-Type", media_type);
            });
            w.field("expires_at", &rfc3339(self.expires_at));
            w.field("max_size_bytes", &self.max_bytes);
        });
    }
}

impl UploadTicket {
    /// The id for the input.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The path for the bytes, on this server.
    pub(crate) fn url(&self) -> String {
        format!("/v1/media/uploads/{}", self.id)
    }
}

impl Progress {
    /// The bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether it is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.media.is_some()
    }

    /// Returns the header `Range` with the bytes received; none before the first byte.
    pub(crate) fn range(&self) -> Option<HeaderValue> {
        let last = self.received.checked_sub(1)?;
        HeaderValue::from_str(&format!("bytes=0-{last}")).ok()
    }
}

/// Written by hand: a complete upload has the members of its media file.
impl ToJson for Progress {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("upload_id", &self.id);
            w.field("complete", &self.is_complete());
            w.field("received_bytes", &self.received);
            w.field("expires_at", &rfc3339(self.expires_at));
            if let Some(media) = &self.media {
                media.write_fields(w);
            }
        });
    }
}
