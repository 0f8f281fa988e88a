//! Stored media files: uploads before a run, and files that a run generated (docs/spec/media.md).
//!
//! * `store`: all files with owner and expiry;
//! * `receive`: writes a request body to the store, in blocks;
//! * `serve`: from the store to a response.

mod receive;
mod store;

use std::{
    io::{Read, Seek as _, SeekFrom},
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use cog_json::Value;
use cog_media::{Delivery, LimitKind, Media, MediaDeclaration, MediaError, Store, StoredUrl, UrlStore};
use cog_spec::{Code, ErrorBody};
use futures_util::{Stream, stream};
use tokio::{task::spawn_blocking, time::Instant};

use crate::error::ApiError;

pub use self::store::MediaStore;
pub(crate) use self::{
    receive::{Progress, UploadRequest, UploadTicket, receive},
    store::UploadLease,
};

/// The limits of stored uploads and generated media (docs/server.md).
///
/// One upload may be as large as its media type allows: 100 MiB for video (ruling R60).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadSettings {
    /// The maximum number of files of all clients: 1,000.
    pub max_files: usize,
    /// The maximum number of files of one client: 32.
    pub max_files_per_client: usize,
    /// The maximum bytes of all clients: 4 GiB.
    pub max_bytes: usize,
    /// The maximum bytes of one client: 512 MiB.
    pub max_bytes_per_client: usize,
    /// The maximum bytes of all files of one form: 200 MiB, as of all media of one input.
    pub max_form_bytes: usize,
    /// The time after which a file expires: 15 minutes.
    pub ttl: Duration,
}

impl Default for UploadSettings {
    fn default() -> Self {
        Self {
            max_files: 1_000,
            max_files_per_client: 32,
            max_bytes: 4 << 30,
            max_bytes_per_client: 512 << 20,
            max_form_bytes: 200 << 20,
            ttl: Duration::from_secs(900),
        }
    }
}

/// The store under a base URL of the server, for generated media.
struct ServedStore {
    store: MediaStore,
    /// Without a trailing slash.
    base: String,
}

impl MediaStore {
    /// Returns a delivery that stores the media of runs here, under this base URL: `https://cog.example`.
    pub fn delivery(&self, base: &str) -> Delivery {
        let base = base.trim_end_matches('/').to_owned();
        Delivery::Store(Arc::new(ServedStore { store: self.clone(), base }))
    }
}

impl UrlStore for ServedStore {
    fn store(&self, owner: Option<&str>, media: &Media) -> Result<StoredUrl, ErrorBody> {
        let media = media.on_disk().map_err(|error| ErrorBody::from(&error))?;
        let stored = self.store.publish(owner.unwrap_or_default(), media);
        let (id, expires_at) = stored.map_err(|error| ErrorBody::from(&error))?;
        Ok(StoredUrl { url: format!("{}/v1/media/{id}", self.base), expires_at })
    }
}

/// The current time of day, for the expiry that clients see.
#[expect(clippy::disallowed_methods, reason = "clients see the expiry as a time of day")]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Formats a time as SPEC 4.3 does: `2026-02-04T12:00:00Z` (RFC 3339).
fn rfc3339(at: SystemTime) -> String {
    // A clock before 1970 has no such text.
    humantime::format_rfc3339_seconds(at.max(SystemTime::UNIX_EPOCH)).to_string()
}

/// The number of bytes of an upload that stay in memory; the rest is on disk.
const IN_MEMORY: usize = 16 << 10;

/// A stored media file, or an upload in progress.
struct Entry {
    /// The client that owns it.
    owner: String,
    /// When it expires.
    until: Instant,
    /// When it expires, as the time of day.
    expires_at: SystemTime,
    /// Its run has ended and may be resumed: it is removed first when another upload needs the space.
    is_retained: bool,
    /// What the client declared.
    declared: DeclaredUpload,
    /// The bytes received so far.
    received: u64,
    /// The bytes that it may still grow to, which no other upload can use.
    reserved: u64,
    state: State,
}

impl Entry {
    /// Returns the bytes that count towards the limits.
    fn size(&self) -> u64 {
        self.received.max(self.reserved)
    }

    /// Returns how much its size grows if this many bytes have been received.
    fn growth_to(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.size())
    }
}

/// What a client declares about an upload.
#[derive(Debug, Clone, Default)]
struct DeclaredUpload {
    /// Type and checksum.
    expected: MediaDeclaration,
    /// Its length.
    length: Option<u64>,
    /// Its maximum length.
    max_bytes: u64,
}

/// The progress of an upload.
enum State {
    /// It waits for more bytes.
    Open(Store),
    /// A request is sending bytes and has the store.
    Receiving,
    /// It is complete and valid.
    Complete(Media),
}

impl DeclaredUpload {
    /// Creates the store for such an upload.
    fn store(&self) -> Store {
        Store::with_limit(self.max_bytes).in_memory(IN_MEMORY)
    }
}

/// The part of an upload that a request contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// All of it.
    Complete,
    /// The bytes from `first` to `last`, of `total` if known: `Content-Range: bytes 0-99/200`.
    Part { first: u64, last: u64, total: Option<u64> },
    /// No bytes: the client queries the progress (`Content-Range: bytes */200` or `*/*`).
    None,
}

impl Span {
    /// Reads `Content-Range` (RFC 9110 section 14.4).
    ///
    /// # Errors
    /// E1001 for an invalid header.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, ErrorBody> {
        let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(Self::Complete) };
        let text = value.to_str().unwrap_or("?").trim();
        Self::read(text).ok_or_else(|| wrong(text))
    }

    fn read(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let total = if total == "*" { None } else { Some(number(total)?) };
        if range == "*" {
            return Some(Self::None);
        }
        let (first, last) = range.split_once('-')?;
        let first = number(first)?;
        let last = number(last)?;
        let fits = first <= last && total.is_none_or(|total| last < total);
        fits.then_some(Self::Part { first, last, total })
    }

    /// Whether the upload is complete after this span.
    pub(super) fn is_last(self) -> bool {
        match self {
            Self::Complete => true,
            Self::Part { last, total, .. } => total == Some(last + 1),
            Self::None => false,
        }
    }
}

/// Parses up to 15 digits, more than any upload needs.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn wrong(text: &str) -> ErrorBody {
    let text: String = text.chars().take(60).collect();
    let message = format!("header Content-Range: `{}` is not valid", text.escape_debug());
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("Use `bytes FIRST-LAST/TOTAL`, or `bytes */TOTAL` to get the progress.")
}

/// Why an upload or a request for a media file fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// The file does not exist, has expired, is too large, or is not valid.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// Another request is sending it.
    #[error("another request is sending this upload")]
    Busy,
    /// It was completed before.
    #[error("the upload is complete and cannot be changed")]
    Complete,
    /// The part does not begin where the previous one ended.
    #[error("the part begins at byte {first}, but {received} bytes were received")]
    WrongOffset {
        /// The first byte of the part.
        first: u64,
        /// The bytes received so far.
        received: u64,
    },
    /// A range begins past the end of the file.
    #[error("the range begins past the end: the file has {length} bytes")]
    OutOfRange {
        /// The length of the file.
        length: u64,
    },
    /// The number of bytes is not the declared one.
    #[error("received {found} bytes instead of the declared {declared}")]
    LengthMismatch {
        /// The bytes received.
        found: u64,
        /// The declared bytes.
        declared: u64,
    },
    /// The body did not arrive in time, or was interrupted.
    #[error("the body {how}; {received} bytes of the upload were received")]
    Interrupted {
        /// What happened.
        how: &'static str,
        /// The bytes received so far.
        received: u64,
    },
    /// The files of a form exceed their total limit.
    #[error("the files of the form exceed {max} bytes in total")]
    TotalTooLarge {
        /// The limit.
        max: u64,
    },
    /// A storage limit is reached.
    #[error("upload limit reached: {what}")]
    Full {
        /// A description of the limit.
        what: &'static str,
        /// The name of the setting.
        limit: &'static str,
        /// Its value.
        max: usize,
    },
}

impl UploadError {
    /// An error for an unknown upload.
    fn unknown() -> Self {
        Self::Media(MediaError::Upload { expired: false })
    }

    /// Whether it is a limit of the client.
    fn is_client_limit(&self) -> bool {
        matches!(self, Self::Full { limit: "max_uploads_per_client" | "max_upload_bytes_per_client", .. })
    }

    fn code(&self) -> Code {
        match self {
            Self::Media(error) => error.code(),
            Self::TotalTooLarge { .. } => Code::MediaTooLarge,
            Self::Full { .. } => Code::RateLimited,
            Self::Busy
            | Self::Complete
            | Self::WrongOffset { .. }
            | Self::OutOfRange { .. }
            | Self::LengthMismatch { .. }
            | Self::Interrupted { .. } => Code::InvalidInput,
        }
    }

    /// The status, where it differs from the status of the code.
    fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Busy | Self::Complete => Some(StatusCode::CONFLICT),
            Self::WrongOffset { .. } | Self::OutOfRange { .. } => Some(StatusCode::RANGE_NOT_SATISFIABLE),
            Self::Interrupted { .. } => Some(StatusCode::REQUEST_TIMEOUT),
            Self::Media(_) | Self::TotalTooLarge { .. } | Self::Full { .. } | Self::LengthMismatch { .. } => {
                None
            }
        }
    }

    fn suggestion(&self) -> &'static str {
        match self {
            Self::Media(MediaError::TooLarge { .. }) => "Send a smaller file.",
            Self::Media(error) => error.suggestion(),
            Self::Busy => "Wait until that request ends.",
            Self::Complete => "Create another upload.",
            Self::WrongOffset { .. } | Self::Interrupted { .. } => {
                "Continue after the received bytes: PUT with `Content-Range: bytes FIRST-LAST/TOTAL`."
            }
            Self::OutOfRange { .. } => {
                "Request `Range: bytes=FIRST-LAST` within the file, or the complete file."
            }
            Self::LengthMismatch { .. } => "Send exactly the declared number of bytes.",
            Self::TotalTooLarge { .. } => "Send fewer or smaller files.",
            Self::Full { .. } => {
                "Delete uploads (DELETE /v1/media/ID) or wait until they expire; the operator can raise the limit that `details.limit` names."
            }
        }
    }

    fn details(&self) -> Option<Value> {
        let details = match self {
            Self::WrongOffset { received, .. } | Self::Interrupted { received, .. } => {
                serde_json::json!({ "received_bytes": received })
            }
            Self::TotalTooLarge { max } => {
                serde_json::json!({ "reason": LimitKind::Total.reason(), "limit": "max_form_bytes", "max": max })
            }
            Self::Full { limit, max, .. } => serde_json::json!({ "limit": limit, "max": max }),
            _ => return None,
        };
        Some(Value::from(details))
    }
}

impl From<&UploadError> for ErrorBody {
    fn from(error: &UploadError) -> Self {
        if let UploadError::Media(media) = error {
            return Self::from(media).suggest(error.suggestion());
        }
        let body = Self::new(error.code(), error.to_string()).suggest(error.suggestion());
        match error.details() {
            Some(details) => body.with_details(details),
            None => body,
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let response = Self::from(ErrorBody::from(&error));
        match error.status() {
            Some(status) => response.with_status(status),
            None => response,
        }
    }
}

/// The number of bytes of one read.
const BLOCK: usize = 64 << 10;
/// Prevents the file from running scripts and loading resources.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");

/// Returns a stored file as a response with the type of its content. Browsers save it, and only the cache of the owner may
/// store it. `Range` selects a part (RFC 9110 section 14). The content of an id never changes, so the id is the entity
/// tag.
///
/// # Errors
/// E1019 for an unknown file, E1018 for an expired one.
pub(crate) fn serve(
    store: &MediaStore,
    (id, owner): (&str, &str),
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, UploadError> {
    let (media, until) = store.media(id, owner)?;
    let length = media.bytes().len();
    let tag = format!("\"{id}\"");
    if is_cached(headers, &tag) {
        return Ok(not_modified(&tag));
    }
    let mut response = match Range::new(method, headers, length, &tag) {
        Range::Complete => bytes(&media, 0, length)?,
        Range::Part { first, last } => {
            let mut response = bytes(&media, first, last + 1 - first)?;
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            with_content_range(response, &format!("bytes {first}-{last}/{length}"))
        }
        Range::PastEnd => {
            let error = ApiError::from(UploadError::OutOfRange { length });
            return Ok(with_content_range(error.into_response(), &format!("bytes */{length}")));
        }
    };
    mark(response.headers_mut(), id, &media, until.saturating_duration_since(Instant::now()));
    response.headers_mut().insert(header::ETAG, value(&tag));
    Ok(response)
}

/// Returns whether the client has the file with this tag (RFC 9110 section 13.1.2).
fn is_cached(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    response.headers_mut().insert(header::ETAG, value(tag));
    response
}

/// Returns `count` bytes of a file, from `first` on.
fn bytes(media: &Media, first: u64, count: u64) -> Result<Response, UploadError> {
    let mut reader = media.bytes().reader();
    reader.seek(SeekFrom::Start(first)).map_err(MediaError::from)?;
    let mut response = Response::new(Body::from_stream(blocks(reader.take(count))));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(count));
    Ok(response)
}

/// Adds `Content-Range` to a response.
fn with_content_range(mut response: Response, range: &str) -> Response {
    response.headers_mut().insert(header::CONTENT_RANGE, value(range));
    response
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

fn mark(headers: &mut HeaderMap, id: &str, media: &Media, left: Duration) {
    let extension = extension(media.media_type());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("attachment; filename=\"{id}.{extension}\"")));
    headers.insert(header::CACHE_CONTROL, value(&format!("private, max-age={}", left.as_secs())));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

/// The file extension of a media type.
fn extension(media_type: &str) -> &str {
    match media_type {
        "image/jpeg" => "jpg",
        "audio/mpeg" => "mp3",
        "video/quicktime" => "mov",
        // The other types are named as their extension.
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

/// The part of a media file that a request selects (RFC 9110 section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// The complete file: no range, or one that is not supported, such as several parts.
    Complete,
    /// The bytes from `first` to `last`, inclusive.
    Part { first: u64, last: u64 },
    /// A range that begins past the end of the file.
    PastEnd,
}

impl Range {
    /// Returns the range of a request for a file of this length and entity tag. `If-Range` with another tag, or with a date,
    /// selects the complete file.
    fn new(method: &Method, headers: &HeaderMap, length: u64, tag: &str) -> Self {
        let is_current = text(headers, header::IF_RANGE).is_none_or(|known| known == tag);
        match text(headers, header::RANGE).filter(|_| method == Method::GET && is_current) {
            Some(range) => Self::read(range, length).unwrap_or(Self::Complete),
            None => Self::Complete,
        }
    }

    fn read(text: &str, length: u64) -> Option<Self> {
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        let (first, last) = match (first, last) {
            ("", count) => (length.saturating_sub(position(count)?), u64::MAX),
            (first, "") => (position(first)?, u64::MAX),
            (first, last) => (position(first)?, position(last)?),
        };
        match length.checked_sub(1) {
            _ if last < first => None,
            Some(end) if first <= end => Some(Self::Part { first, last: last.min(end) }),
            _ => Some(Self::PastEnd),
        }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default().trim())
}

/// Parses digits only; a number that is too large counts as the end of the file.
fn position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod span_tests {
    use super::*;

    #[test]
    fn parses_valid_content_ranges_only() {
        let part = |first, last, total| Some(Span::Part { first, last, total });
        assert_eq!(Span::read("bytes 0-99/200"), part(0, 99, Some(200)));
        assert_eq!(Span::read("bytes 7-7/*"), part(7, 7, None));
        assert_eq!(Span::read("bytes */200"), Some(Span::None));
        assert_eq!(Span::read("bytes */*"), Some(Span::None));
        for text in [
            "",
            "bytes",
            "bytes 0-9",
            "bytes 9-0/10",
            "bytes 0-10/10",
            "bytes -1-2/3",
            "bytes 0-1/x",
            "bytes +0-1/3",
            "items 0-1/3",
            "bytes 0-18446744073709551616/*",
        ] {
            assert_eq!(Span::read(text), None, "{text}");
        }
    }

    #[test]
    fn upload_ends_with_its_last_byte() {
        let span = |text| Span::read(text).unwrap();
        assert!(span("bytes 5-9/10").is_last() && Span::Complete.is_last());
        assert!(!span("bytes 5-8/10").is_last() && !span("bytes 5-9/*").is_last());
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_770_206_400, "2026-02-04T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    fn range_of(headers: &[(&'static str, &'static str)]) -> Range {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Range::new(&Method::GET, &headers.collect(), 10, "\"tag\"")
    }

    #[test]
    fn parses_every_form_of_one_range() {
        for (text, first, last) in [
            ("bytes=0-0", 0, 0),
            ("bytes=2-5", 2, 5),
            ("bytes=2-99", 2, 9),
            ("bytes=9-", 9, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-99", 0, 9),
            ("Bytes= 0-99999999999999999999", 0, 9),
        ] {
            assert_eq!(range_of(&[("range", text)]), Range::Part { first, last }, "{text}");
        }
    }

    #[test]
    fn range_past_the_end_fails_and_unsupported_range_is_ignored() {
        for text in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(range_of(&[("range", text)]), Range::PastEnd, "{text}");
        }
        for text in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "bytes=+1-2", "items=0-1"]
        {
            assert_eq!(range_of(&[("range", text)]), Range::Complete, "{text}");
        }
    }

    #[test]
    fn if_range_requires_the_same_etag() {
        let with = |tag| range_of(&[("range", "bytes=0-1"), ("if-range", tag)]);
        assert_eq!(with("\"tag\""), Range::Part { first: 0, last: 1 });
        for other in ["\"other\"", "W/\"tag\"", "Wed, 04 Feb 2026 12:00:00 GMT"] {
            assert_eq!(with(other), Range::Complete, "{other}");
        }
        let headers = HeaderMap::from_iter([(header::RANGE, "bytes=0-1".parse().unwrap())]);
        assert_eq!(Range::new(&Method::HEAD, &headers, 10, "\"tag\""), Range::Complete);
    }
}
