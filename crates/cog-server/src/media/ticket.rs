use std::time::SystemTime;

use axum::http::HeaderValue;
use cog_json::{Node, ToJson, Value, Writer};
use cog_media::{Checksum, Expected, Media, MediaError, MediaRules, modality_of};
use cog_spec::{Code, ErrorBody};

use super::{UploadError, entry::Said, time::rfc3339};
use crate::fields::allow_only;

/// What a client says of an upload beforehand: the body of `POST /v1/media/upload-url`, of which all can be left out.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    media_type: Option<String>,
    length: Option<u64>,
    checksum: Option<Checksum>,
    /// The most bytes, below the limit of its type.
    most: Option<u64>,
}

/// Where an upload goes.
#[derive(Debug)]
pub(crate) struct UploadTicket {
    pub(super) id: String,
    pub(super) media_type: Option<String>,
    pub(super) expires_at: SystemTime,
    pub(super) most: u64,
}

/// How far an upload is.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(super) id: String,
    pub(super) expires_at: SystemTime,
    pub(super) received: u64,
    /// What it is, once it is all there.
    pub(super) media: Option<Media>,
}

impl Wanted {
    /// An upload of which nothing is known but that it may have so many bytes at most.
    pub(crate) fn within(most: u64) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Reads `{media_type?, size_bytes?, checksum?}`.
    ///
    /// # Errors
    /// E1001 for a shape that is not this.
    pub(crate) fn read(body: &Value) -> Result<Self, ErrorBody> {
        allow_only(body.node(), "", &["media_type", "size_bytes", "checksum"])?;
        let given = |key: &str| body.get(key);
        let media_type =
            given("media_type").map(|it| it.as_str().map(str::to_owned).ok_or("media_type: a text"));
        let length = |it: Node<'_>| it.as_u64().filter(|length| *length > 0);
        let length = given("size_bytes").map(|it| length(it).ok_or("size_bytes: a whole number from 1"));
        let wrong =
            |allowed| ErrorBody::new(Code::InvalidInput, format!("{allowed} is allowed, and nothing else"));
        Ok(Self {
            media_type: media_type.transpose().map_err(wrong)?,
            length: length.transpose().map_err(wrong)?,
            checksum: given("checksum")
                .map(Checksum::read)
                .transpose()
                .map_err(|error| ErrorBody::from(&error))?,
            most: None,
        })
    }

    /// What an upload is held to.
    ///
    /// # Errors
    /// E1010 for a type that no module takes, E1011 for more bytes than a medium of its type may have.
    pub(super) fn said(self) -> Result<Said, UploadError> {
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
        let limit = self.most.map_or(limit, |most| most.min(limit));
        if self.length.is_some_and(|length| length > limit) {
            return Err(MediaError::TooLarge { limit }.into());
        }
        let expected =
            Expected { media_type: self.media_type, checksum: self.checksum, ..Expected::default() };
        Ok(Said { expected, length: self.length, most: self.length.unwrap_or(limit) })
    }
}

/// Supplement section 9.
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
            w.field("max_size_bytes", &self.most);
        });
    }
}

impl UploadTicket {
    /// What an input calls it.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Where the bytes go, below the server's own address.
    pub(crate) fn url(&self) -> String {
        format!("/v1/media/uploads/{}", self.id)
    }
}

impl Progress {
    /// How many bytes are there.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether it is all there.
    pub(crate) fn is_complete(&self) -> bool {
        self.media.is_some()
    }

    /// `Range`: the bytes that are there; none where there are none.
    pub(crate) fn range(&self) -> Option<HeaderValue> {
        let last = self.received.checked_sub(1)?;
        HeaderValue::from_str(&format!("bytes=0-{last}")).ok()
    }
}

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
