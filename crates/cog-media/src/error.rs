use cog_spec::{Code, Modality};

use crate::Refusal;

/// Why a medium is refused. Displayed in words of our own: what a decoder says may show memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// No medium of a type that is known.
    #[error("{found} is not taken here; allowed: {allowed}")]
    Unsupported {
        /// The type that was found, or that nothing known was.
        found: String,
        /// The types that are taken.
        allowed: String,
    },
    /// More bytes than allowed.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The most bytes.
        limit: u64,
    },
    /// Text that is no base64 (RFC 4648 section 4).
    #[error("not base64: {what}")]
    NotBase64 {
        /// What is wrong.
        what: &'static str,
    },
    /// Bytes that begin as the type does and cannot be read as such.
    #[error("{media_type} that cannot be read: {what}")]
    Damaged {
        /// The type that it looks like.
        media_type: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// Declared as one type and, by its content, of another.
    #[error("declared as {declared}, and the content is {found}")]
    OtherType {
        /// What was said.
        declared: String,
        /// What it is.
        found: String,
    },
    /// A side is too long.
    #[error("{width}×{height} pixels; the longest side may have {limit}")]
    TooWide {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The longest side allowed.
        limit: u32,
    },
    /// A side is too short.
    #[error("{width}×{height} pixels; the shortest side must have {limit}")]
    TooSmall {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
        /// The shortest side allowed.
        limit: u32,
    },
    /// Too many pixels in all.
    #[error("{pixels} pixels, {limit} are allowed")]
    TooManyPixels {
        /// How many it has.
        pixels: u64,
        /// The most.
        limit: u64,
    },
    /// The checksum that came with it is not that of its bytes.
    #[error("the {algorithm} of the bytes is not the one given")]
    Checksum {
        /// `sha256`, `md5` or `crc32`.
        algorithm: &'static str,
    },
    /// A URL that may not be asked.
    #[error("{}{refusal}", redirected(*.hop))]
    Refused {
        /// Why.
        refusal: Refusal,
        /// After how many redirects.
        hop: usize,
    },
    /// A URL that did not give the medium.
    #[error("{url}: {what}")]
    Fetch {
        /// The URL without its query.
        url: String,
        /// What happened instead.
        what: String,
        /// The status of the answer, where there was one.
        status: Option<u16>,
    },
    /// It could not be kept.
    #[error("the medium could not be kept: {0}")]
    Storage(#[from] std::io::Error),
}

impl MediaError {
    /// The code of the specification (supplement section 2, R62).
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::UnsupportedMediaType,
            Self::TooLarge { .. } => Code::MediaTooLarge,
            Self::NotBase64 { .. } | Self::Damaged { .. } => Code::MediaDecodeFailed,
            Self::OtherType { .. } => Code::MediaTypeMismatch,
            Self::TooWide { .. } => Code::MediaDimensionExceeded,
            Self::TooSmall { .. } => Code::MediaDimensionTooSmall,
            Self::TooManyPixels { .. } => Code::MediaPixelLimit,
            Self::Checksum { .. } => Code::ChecksumMismatch,
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Fetch { .. } => Code::MediaFetchFailed,
            Self::Storage(_) => Code::InternalError,
        }
    }

    /// What to do about it.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "convert it to one of the allowed types",
            Self::TooLarge { .. } => {
                "make it smaller, or raise `modalities.constraints.max_size_mb` up to the limit of its kind"
            }
            Self::NotBase64 { .. } => {
                "use the alphabet of RFC 4648 section 4, with padding and without line breaks"
            }
            Self::Damaged { .. } => "open it in a viewer, and save it again",
            Self::OtherType { .. } => "leave `media_type` out, or name the type of the content",
            Self::TooWide { .. } | Self::TooManyPixels { .. } => "scale it down",
            Self::TooSmall { .. } => "send it in a higher resolution",
            Self::Checksum { .. } => "send it again; it may have been cut or changed on its way",
            Self::Refused { .. } => {
                "give a public http or https address, have the operator allow this one, or send the bytes as base64"
            }
            Self::Fetch { .. } => "see whether the address still gives it, or send the bytes as base64",
            Self::Storage(_) => "see whether the disk of temporary files is full",
        }
    }

    /// That nothing known was found, or a type that is not among these.
    pub(crate) fn unsupported(found: Option<&str>, allowed: &[&'static str]) -> Self {
        let found = found.map_or_else(|| "content of no known type".to_owned(), str::to_owned);
        let allowed =
            if allowed.is_empty() { Modality::Text.as_str().to_owned() } else { allowed.join(", ") };
        Self::Unsupported { found, allowed }
    }
}

fn redirected(hop: usize) -> &'static str {
    if hop == 0 { "" } else { "redirected: " }
}
