use axum::http::StatusCode;
use cog_json::Value;
use cog_media::{LimitKind, MediaError};
use cog_spec::{Code, ErrorBody};

use crate::error::ApiError;

/// Why an upload does not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// It is not there, not in time, too large, or not what it was to be.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// Another request is sending it.
    #[error("another request is sending this upload")]
    Busy,
    /// It was completed before.
    #[error("the upload is complete, and does not change any more")]
    Complete,
    /// The part begins elsewhere than where the last one ended.
    #[error("the part begins at byte {first}, and {received} are there")]
    Elsewhere {
        /// Where it begins.
        first: u64,
        /// How many bytes are there.
        received: u64,
    },
    /// A range of a medium begins past its end.
    #[error("the range begins past the end: the medium has {length} bytes")]
    Outside {
        /// How many bytes it has.
        length: u64,
    },
    /// More or fewer bytes than were announced.
    #[error("{found} bytes came, and {said} were announced")]
    OtherLength {
        /// How many came.
        found: u64,
        /// How many were to come.
        said: u64,
    },
    /// The body stood still, or broke off.
    #[error("the body {how}; {received} bytes of the upload are there")]
    Broken {
        /// What it did.
        how: &'static str,
        /// How many bytes are there.
        received: u64,
    },
    /// The files of a form have more bytes than they may have together.
    #[error("the files of the form have more than {max} bytes in all")]
    Together {
        /// The most.
        max: u64,
    },
    /// There is no room.
    #[error("no room for more media: {what}")]
    Full {
        /// Of which limit.
        what: &'static str,
        /// The setting.
        limit: &'static str,
        /// Its value.
        max: usize,
    },
}

impl UploadError {
    /// That there is no such upload.
    pub(super) fn unknown() -> Self {
        Self::Media(MediaError::Upload { expired: false })
    }

    /// Whether it is this client alone that has no room.
    pub(super) fn is_of_client(&self) -> bool {
        matches!(self, Self::Full { limit: "uploads_per_client" | "uploads_bytes_per_client", .. })
    }

    fn code(&self) -> Code {
        match self {
            Self::Media(error) => error.code(),
            Self::Together { .. } => Code::MediaTooLarge,
            Self::Full { .. } => Code::RateLimited,
            Self::Busy
            | Self::Complete
            | Self::Elsewhere { .. }
            | Self::Outside { .. }
            | Self::OtherLength { .. }
            | Self::Broken { .. } => Code::InvalidInput,
        }
    }

    /// The status, where it is another than that of the code.
    fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Busy | Self::Complete => Some(StatusCode::CONFLICT),
            Self::Elsewhere { .. } | Self::Outside { .. } => Some(StatusCode::RANGE_NOT_SATISFIABLE),
            Self::Broken { .. } => Some(StatusCode::REQUEST_TIMEOUT),
            Self::Media(_) | Self::Together { .. } | Self::Full { .. } | Self::OtherLength { .. } => None,
        }
    }

    fn suggestion(&self) -> &'static str {
        match self {
            Self::Media(MediaError::TooLarge { .. }) => "send a smaller one",
            Self::Media(error) => error.suggestion(),
            Self::Busy => "wait until that request has ended",
            Self::Complete => "ask for another upload",
            Self::Elsewhere { .. } | Self::Broken { .. } => {
                "go on where the upload stands: PUT with `Content-Range: bytes FIRST-LAST/TOTAL`"
            }
            Self::Outside { .. } => "ask for `Range: bytes=FIRST-LAST` within it, or for all of it",
            Self::OtherLength { .. } => "send as many bytes as were announced",
            Self::Together { .. } => "send fewer at a time",
            Self::Full { .. } => "wait until some expire; the operator can raise the limit",
        }
    }

    fn details(&self) -> Option<Value> {
        let details = match self {
            Self::Elsewhere { received, .. } | Self::Broken { received, .. } => {
                serde_json::json!({ "received_bytes": received })
            }
            Self::Together { max } => {
                serde_json::json!({ "reason": LimitKind::Total.reason(), "limit": "form_bytes", "max": max })
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
        let fault = Self::from(ErrorBody::from(&error));
        match error.status() {
            Some(status) => fault.with_status(status),
            None => fault,
        }
    }
}
