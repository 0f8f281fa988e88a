use std::path::Path;

use cog_json::{Value, Writer};
use cog_spec::{Code, ErrorBody, Modality};

use crate::{Refusal, kind::conversion};

/// Why a media file is refused. Messages never repeat what a decoder reports, which may reveal memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// The type is unknown or not supported.
    #[error("{}; use one of: {allowed}", unsupported(.found.as_deref()))]
    Unsupported {
        /// The type that was found; none for content of no known type.
        found: Option<String>,
        /// The supported types.
        allowed: String,
    },
    /// More bytes than allowed.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The maximum, in bytes.
        limit: u64,
    },
    /// The text is not base64 (RFC 4648 section 4).
    #[error("not base64: {what}")]
    NotBase64 {
        /// What is wrong.
        what: &'static str,
    },
    /// The content starts like this type but cannot be read.
    #[error("unreadable {media_type}: {what}")]
    Damaged {
        /// The apparent type.
        media_type: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// The declared type differs from the content.
    #[error("declared as {declared}, but the content is {found}")]
    TypeMismatch {
        /// The declared type.
        declared: String,
        /// The type of the content.
        found: String,
    },
    /// A side is too long.
    #[error("{width}×{height} pixels; the maximum side length is {limit}")]
    DimensionTooLarge {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The maximum side.
        limit: u32,
    },
    /// A video frame is too large in either orientation (docs/spec/media.md).
    #[error("{width}×{height} pixels; the maximum video size is 3840×2160 or 2160×3840")]
    FrameTooLarge {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// A side is too short.
    #[error("{width}×{height} pixels; the minimum side length is {limit}")]
    DimensionTooSmall {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The minimum side.
        limit: u32,
    },
    /// Too many pixels in total.
    #[error("{pixels} pixels; the maximum is {limit}")]
    TooManyPixels {
        /// Its pixels.
        pixels: u64,
        /// The maximum.
        limit: u64,
    },
    /// No reader is available.
    #[error("cannot read the media file: {what}")]
    ReaderUnavailable {
        /// What is missing.
        what: String,
    },
    /// The process that reads documents, audio and video is missing, or is another program.
    #[error("cannot read the media file: {what}")]
    NoReader {
        /// What is missing.
        what: &'static str,
    },
    /// The bytes have another checksum.
    #[error("the {algorithm} checksum does not match the content")]
    Checksum {
        /// `sha256`, `md5` or `crc32`.
        algorithm: &'static str,
    },
    /// The URL is not allowed.
    #[error("{}{refusal}", redirected(*.hop))]
    Refused {
        /// Why.
        refusal: Refusal,
        /// The number of redirects before it.
        hop: u32,
    },
    /// The URL could not be fetched.
    #[error("{url}: {what}")]
    Fetch {
        /// The URL without its query.
        url: String,
        /// What happened.
        what: String,
        /// The status of the response, if there was one.
        status: Option<u16>,
    },
    /// A limit other than bytes is exceeded.
    #[error("{}", exceeded(*.limit_kind, *.found, *.limit))]
    LimitExceeded {
        /// Which limit.
        limit_kind: LimitKind,
        /// The amount.
        found: u64,
        /// The maximum.
        limit: u64,
    },
    /// The input member is not a valid media source.
    #[error("invalid media source: {what}")]
    InvalidSource {
        /// What is wrong.
        what: &'static str,
    },
    /// This kind of source is not available here.
    #[error("{what} are not available here")]
    SourceUnavailable {
        /// The kind of source.
        what: &'static str,
    },
    /// The file does not exist or cannot be read.
    #[error("{path}: {what}")]
    Unreadable {
        /// The path as given.
        path: String,
        /// Why.
        what: &'static str,
    },
    /// The file is outside the directories that may be read.
    #[error("{path}: outside the directories that may be read")]
    OutsideRoots {
        /// The path as given.
        path: String,
    },
    /// The upload does not exist.
    #[error("{}", if *.expired { "the upload has expired" } else { "upload not found" })]
    Upload {
        /// Whether it existed and has expired.
        expired: bool,
    },
    /// A document has no text for a provider that does not support documents.
    #[error("no page of the PDF has text, and {what}")]
    NoText {
        /// Why its pages are not sent as images.
        what: &'static str,
    },
    /// The provider does not support the type, and it cannot be converted.
    #[error("the provider does not support {media_type}")]
    UnsupportedByProvider {
        /// Its type.
        media_type: &'static str,
    },
    /// It could not be stored.
    #[error("cannot store the media file: {0}")]
    Storage(#[from] std::io::Error),
}

/// The limit that is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// Media files in one input.
    Items,
    /// Bytes of all media files of one input.
    Total,
    /// Milliseconds of audio or video.
    Duration,
    /// Pages of a document.
    Pages,
}

impl LimitKind {
    /// Returns the value of `details.reason` (ruling R62).
    pub fn reason(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Total => "total_size",
            Self::Duration => "duration",
            Self::Pages => "pages",
        }
    }
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Items => "media files",
            Self::Total => "bytes of media in total",
            Self::Duration => "seconds",
            Self::Pages => "pages",
        })
    }
}

impl MediaError {
    /// Returns the code of the specification (docs/spec/errors.md, ruling R62).
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::UnsupportedMediaType,
            Self::TooLarge { .. } | Self::LimitExceeded { .. } => Code::MediaTooLarge,
            Self::ReaderUnavailable { .. } | Self::NoReader { .. } => Code::MultimodalNotSupported,
            Self::NotBase64 { .. } | Self::Damaged { .. } => Code::MediaDecodeFailed,
            Self::TypeMismatch { .. } => Code::MediaTypeMismatch,
            Self::DimensionTooLarge { .. } | Self::FrameTooLarge { .. } => Code::MediaDimensionExceeded,
            Self::DimensionTooSmall { .. } => Code::MediaDimensionTooSmall,
            Self::TooManyPixels { .. } => Code::MediaPixelLimit,
            Self::Checksum { .. } => Code::ChecksumMismatch,
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Fetch { .. } => Code::MediaFetchFailed,
            Self::InvalidSource { .. } => Code::InvalidInput,
            Self::SourceUnavailable { .. } | Self::OutsideRoots { .. } => Code::PermissionDenied,
            Self::Unreadable { .. } => Code::InvalidReference,
            Self::Upload { expired: true } => Code::UploadExpired,
            Self::Upload { expired: false } => Code::UploadNotFound,
            Self::UnsupportedByProvider { .. } | Self::NoText { .. } => Code::MultimodalNotSupported,
            Self::Storage(_) => Code::InternalError,
        }
    }

    /// Returns which of several causes of a code it was, for `details.reason` (ruling R62).
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } => Some("size"),
            Self::LimitExceeded { limit_kind, .. } => Some(limit_kind.reason()),
            Self::Refused { .. } => Some("refused"),
            Self::Fetch { .. } => Some("fetch"),
            _ => None,
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Unsupported { found, allowed } => {
                let found = found.as_deref().unwrap_or_default();
                unlisted(found, allowed).unwrap_or_else(|| conversion(found))
            }
            Self::TooLarge { .. } => {
                "Reduce the file size, or raise `modalities.constraints.max_size_mb` up to the limit for this kind."
            }
            Self::ReaderUnavailable { .. } => {
                "Run `cog doctor`; install ffmpeg on PATH or set COG_MEDIA_FFMPEG."
            }
            Self::NoReader { .. } => {
                "A program that uses the library calls `cog_media::internal_media` if its first argument is `internal-media`, and a Python program runs in an interpreter; see docs/multimodal.md."
            }
            Self::NotBase64 { .. } => {
                "Use standard base64 (RFC 4648 section 4) with padding and without line breaks."
            }
            Self::Damaged { .. } => "Open it in a viewer and save it again.",
            Self::TypeMismatch { .. } => "Remove `media_type`, or set it to the type of the content.",
            Self::DimensionTooLarge { .. } | Self::FrameTooLarge { .. } | Self::TooManyPixels { .. } => {
                "Scale it down."
            }
            Self::DimensionTooSmall { .. } => "Send it at a higher resolution.",
            Self::Checksum { .. } => "Send it again; it may have been truncated or modified in transit.",
            Self::Refused { .. } => {
                "Use a public http or https URL, have the operator allow this one, or send the file as base64."
            }
            Self::Fetch { .. } => "Check that the URL works, or send the file as base64.",
            Self::LimitExceeded { limit_kind: LimitKind::Items | LimitKind::Total, .. } => {
                "Send fewer files at once."
            }
            Self::LimitExceeded { .. } => "Split it into parts.",
            Self::InvalidSource { .. } => {
                "Write {\"type\": \"url\", \"url\": …}, or use base64, file or upload_ref."
            }
            Self::SourceUnavailable { .. } => "Send the file as base64.",
            Self::Unreadable { path, .. } if Path::new(path).is_absolute() => {
                "Check the path and its permissions."
            }
            Self::Unreadable { .. } => {
                "Check the path; a relative path of an input starts at the module's directory."
            }
            Self::OutsideRoots { .. } => {
                "Move the file to the working directory or the module's directory, or have the operator allow its directory."
            }
            Self::Upload { .. } => "Upload it again.",
            Self::UnsupportedByProvider { .. } => {
                "Use a model that supports it; `cog doctor` lists what each provider supports."
            }
            Self::NoText { .. } => {
                "Install pdftoppm (poppler-utils), use a provider that supports PDF, or convert the pages with `pdftoppm -png FILE.pdf page`."
            }
            Self::Storage(_) => "Check the free space for temporary files.",
        }
    }

    /// Returns the error of a build without the feature `decode`.
    #[cfg(not(feature = "decode"))]
    pub(crate) fn not_built() -> Self {
        Self::ReaderUnavailable { what: "this program was built without media support".to_owned() }
    }

    /// Returns the error for an unknown type, or one that is not in this list.
    pub(crate) fn unsupported(found: Option<&str>, allowed: &[&'static str]) -> Self {
        let found = found.map(str::to_owned);
        let allowed =
            if allowed.is_empty() { Modality::Text.as_str().to_owned() } else { allowed.join(", ") };
        Self::Unsupported { found, allowed }
    }
}

/// Returns what to do about a file of a kind that the module does not list. Converting it would not help.
fn unlisted(found: &str, allowed: &str) -> Option<&'static str> {
    if allowed == Modality::Text.as_str() {
        return Some(
            "The module accepts text only; to accept files, list their types in its `modalities.input`, such as `[text, image]`.",
        );
    }
    let (prefix, help) = match found {
        "application/pdf" => (
            "application/pdf",
            "Send one of the allowed types. A module that accepts others lists `document` in its `modalities.input`.",
        ),
        _ if found.starts_with("image/") => (
            "image/",
            "Send one of the allowed types. A module that accepts others lists `image` in its `modalities.input`.",
        ),
        _ if found.starts_with("audio/") => (
            "audio/",
            "Send one of the allowed types. A module that accepts others lists `audio` in its `modalities.input`.",
        ),
        _ if found.starts_with("video/") => (
            "video/",
            "Send one of the allowed types. A module that accepts others lists `video` in its `modalities.input`.",
        ),
        _ => return None,
    };
    let is_listed = allowed.split(", ").any(|media_type| media_type.starts_with(prefix));
    (!is_listed).then_some(help)
}

fn unsupported(found: Option<&str>) -> String {
    found.map_or_else(|| "unrecognized content".to_owned(), |found| format!("{found} is not supported here"))
}

fn exceeded(limit_kind: LimitKind, found: u64, limit: u64) -> String {
    match limit_kind {
        LimitKind::Duration => {
            format!("{} {limit_kind}; the maximum is {}", seconds(found), seconds(limit))
        }
        _ => format!("{found} {limit_kind}; the maximum is {limit}"),
    }
}

/// Returns milliseconds as seconds, without a fraction of zeros.
pub(crate) fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn redirected(hop: u32) -> &'static str {
    if hop == 0 { "" } else { "redirected: " }
}

// A refused media file as the `error` of an envelope.

/// Code, message and suggestion; `details` has the reason (ruling R62), and the URL and status of a failed fetch.
impl From<&MediaError> for ErrorBody {
    fn from(error: &MediaError) -> Self {
        let body = Self::new(error.code(), error.to_string()).suggest(error.suggestion());
        match details(error) {
            Some(details) => body.with_details(details),
            None => body,
        }
    }
}

fn details(error: &MediaError) -> Option<Value> {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        w.optional("reason", &error.reason());
        if let MediaError::Fetch { url, status, .. } = error {
            w.field("url", url);
            w.optional("status", status);
        }
    });
    Value::parse(&text).ok().filter(|_| text != "{}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UrlGuard;

    fn details_of(error: &MediaError) -> Option<String> {
        Some(ErrorBody::from(error).details?.to_string())
    }

    #[test]
    fn details_of_a_failed_fetch_have_url_and_status() {
        let url = "https://example.com/a.png?***".to_owned();
        let what = "the server returned 404 Not Found".to_owned();
        let error = MediaError::Fetch { url, what, status: Some(404) };
        let expected = r#"{"reason":"fetch","url":"https://example.com/a.png?***","status":404}"#;
        assert_eq!(details_of(&error).as_deref(), Some(expected));
        let refusal = UrlGuard::default().judge("http://localhost/").unwrap_err();
        let error = MediaError::Refused { refusal, hop: 0 };
        assert_eq!(details_of(&error).as_deref(), Some(r#"{"reason":"refused"}"#));
        assert_eq!(details_of(&MediaError::TooLarge { limit: 1 }).as_deref(), Some(r#"{"reason":"size"}"#));
        assert_eq!(details_of(&MediaError::NotBase64 { what: "" }), None);
    }
}
