//! Stored media files: uploads before a run, and files that a run generated (docs/spec/media.md).
//!
//! * `store`: all files with owner and expiry;
//! * `receive`: writes a request body to the store, in blocks;
//! * `serve`: from the store to a response.

mod receive;
mod serve;
mod store;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::http::{HeaderMap, StatusCode, header};
use cog_json::Value;
use cog_media::{Delivery, LimitKind, Media, MediaDeclaration, MediaError, Store, StoredUrl, UrlStore};
use cog_spec::{Code, ErrorBody};
use tokio::time::Instant;

use crate::error::ApiError;

pub use self::store::MediaStore;
pub(crate) use self::{
    receive::{Progress, UploadRequest, UploadTicket, receive},
    serve::serve,
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
