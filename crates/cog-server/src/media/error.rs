use axum::http::StatusCode;
use cog_json::Value;
use cog_media::{LimitKind, MediaError};
use cog_spec::{Code, ErrorBody};

use crate::error::ApiError;

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
    pub(super) fn unknown() -> Self {
        Self::Media(MediaError::Upload { expired: false })
    }

    /// Whether it is a limit of the client.
    pub(super) fn is_client_limit(&self) -> bool {
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
