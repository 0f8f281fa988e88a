use std::time::SystemTime;

use axum::http::HeaderValue;
use cog_json::{Node, ToJson, Value, Writer};
use cog_media::{Checksum, Expected, Media, MediaError, MediaRules, modality_of};
use cog_spec::{Code, ErrorBody};

use super::{UploadError, entry::Declared, time::rfc3339};
use crate::fields::allow_only;

/// The body of `POST /v1/media/upload-url`. All members are optional.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
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

impl Wanted {
    /// An upload of which only the maximum length is known, and the type that the client suggests.
    pub(crate) fn within(max_bytes: u64, hint: Option<String>) -> Self {
        Self { max_bytes: Some(max_bytes), hint, ..Self::default() }
    }

    /// Reads `{media_type?, size_bytes?, checksum?}`.
    ///
    /// # Errors
    /// E1001 for an invalid body.
    pub(crate) fn read(body: &Value) -> Result<Self, ErrorBody> {
        allow_only(body.node(), "", &["media_type", "size_bytes", "checksum"])?;
        let given = |key: &str| body.get(key);
        let media_type = given("media_type")
            .map(|it| it.as_str().map(str::to_owned).ok_or("media_type: must be a string"));
        // A number over 2^64 is over every limit too.
        let is_huge = |it: Node<'_>| it.as_f64().is_some_and(|length| length >= 18_446_744_073_709_551_616.0);
        let whole = |it: Node<'_>| it.as_u64().or_else(|| is_huge(it).then_some(u64::MAX));
        let length = |it: Node<'_>| whole(it).filter(|length| *length > 0);
        let length =
            given("size_bytes").map(|it| length(it).ok_or("size_bytes: must be a whole number from 1"));
        let wrong = |message| ErrorBody::new(Code::InvalidInput, message);
        Ok(Self {
            media_type: media_type.transpose().map_err(wrong)?,
            length: length.transpose().map_err(wrong)?,
            checksum: given("checksum")
                .map(Checksum::read)
                .transpose()
                .map_err(|error| ErrorBody::from(&error))?,
            ..Self::default()
        })
    }

    /// Returns what the upload must match.
    ///
    /// # Errors
    /// E1010 for an unsupported type, E1011 for a size over the limit of the type.
    pub(super) fn declared(self) -> Result<Declared, UploadError> {
        let rules = MediaRules::default();
        let limit = match &self.media_type {
            None => rules.max_bytes_of_any(),
            Some(named) => {
                let allowed = rules.media_types();
                let kind = modality_of(&named.to_ascii_lowercase());
                let kind = kind.filter(|_| allowed.iter().any(|one| one.eq_ignore_ascii_case(named)));
                let found = || named.chars().take(60).collect::<String>().escape_debug().to_string();
                let refused =
                    || MediaError::Unsupported { found: Some(found()), allowed: allowed.join(", ") };
                rules.max_bytes_of(kind.ok_or_else(refused)?)
            }
        };
        let limit = self.max_bytes.map_or(limit, |max_bytes| max_bytes.min(limit));
        if self.length.is_some_and(|length| length > limit) {
            return Err(MediaError::TooLarge { limit }.into());
        }
        let expected = Expected {
            media_type: self.media_type,
            checksum: self.checksum,
            hint: self.hint,
            ..Expected::default()
        };
        Ok(Declared { expected, length: self.length, max_bytes: self.length.unwrap_or(limit) })
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
