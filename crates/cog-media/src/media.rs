//! A checked media file, and what is known about it.

use cog_json::Writer;
use cog_spec::{Modality, media_type::says_nothing};

use crate::{
    Checksum, Detail, MediaError, MediaLocation, MediaSource, Rotation, Stored,
    checksum::{hex, sha256_of},
    guard::shareable_url,
    kind::{is_named, type_of_name},
};

/// A media file that has passed every check.
#[derive(Debug, Clone)]
pub struct Media {
    pub(crate) stored: Stored,
    pub(crate) kind: Modality,
    pub(crate) media_type: &'static str,
    pub(crate) facts: MediaInfo,
    pub(crate) declared: MediaDeclaration,
    /// The type of the file that it was converted from.
    pub(crate) original: Option<&'static str>,
}

/// What the sender declared about a media file.
#[derive(Debug, Clone, Default)]
pub struct MediaDeclaration {
    /// The declared `media_type`, which the content must match (ruling R61).
    pub media_type: Option<String>,
    /// The type suggested by the file name, the server or the provider; the content decides (rulings R61, R69).
    pub hint: Option<String>,
    /// The requested level of detail.
    pub detail: Option<Detail>,
    /// The rotation to apply before a model sees it.
    pub rotation: Rotation,
    /// The `type` of its source.
    pub source: Option<&'static str>,
    /// A public URL of the same file.
    pub public_url: Option<String>,
    /// The expected checksum.
    pub checksum: Option<Checksum>,
}

impl MediaDeclaration {
    /// Returns what a source declares; a file name extension is a hint.
    pub(crate) fn from_source(source: &MediaSource) -> Self {
        let declared = Self {
            media_type: source.media_type.clone(),
            hint: None,
            detail: source.detail,
            rotation: source.rotation,
            source: Some(source.location.kind()),
            public_url: None,
            checksum: source.checksum.clone(),
        };
        match &source.location {
            MediaLocation::File(path) | MediaLocation::Artifact(path) => {
                Self { hint: type_of_name(path).map(str::to_owned), ..declared }
            }
            MediaLocation::Url(url) => Self { public_url: shareable_url(url), ..declared },
            _ => declared,
        }
    }
}

impl Media {
    /// Returns its bytes.
    pub fn bytes(&self) -> &Stored {
        &self.stored
    }

    /// Returns the SHA-256 of its bytes in hexadecimal. Reads them if it is not known yet.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    pub fn sha256(&self) -> Result<String, MediaError> {
        sha256_of(&self.stored)
    }

    /// Returns a copy with only its first bytes in memory. Blocks on the disk.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn on_disk(&self) -> Result<Self, MediaError> {
        Ok(Self { stored: self.stored.on_disk()?, ..self.clone() })
    }

    /// Returns its kind.
    pub fn kind(&self) -> Modality {
        self.kind
    }

    /// Returns the type that was suggested, such as by a file name; the content decides.
    pub fn hint(&self) -> Option<&str> {
        self.declared.hint.as_deref()
    }

    /// Returns its type, by content.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Returns what its header says.
    pub fn info(&self) -> &MediaInfo {
        &self.facts
    }

    /// Returns the `type` of its source, if it has one.
    pub fn source(&self) -> Option<&'static str> {
        self.declared.source
    }

    /// Returns a public https URL without a query, which may contain a token; none if the bytes had a checksum, which
    /// the provider would not verify.
    pub(crate) fn public_url(&self) -> Option<&str> {
        self.declared.public_url.as_deref().filter(|_| self.declared.checksum.is_none())
    }

    /// Returns the checksum that it was verified against.
    pub fn checksum(&self) -> Option<&Checksum> {
        self.declared.checksum.as_ref()
    }

    /// Returns the requested level of detail.
    pub fn detail(&self) -> Option<Detail> {
        self.declared.detail
    }

    /// Returns the rotation to apply before a model sees it.
    pub fn rotation(&self) -> Rotation {
        self.declared.rotation
    }

    /// Writes `kind`, `media_type`, `size_bytes`, `sha256` and the facts of its header into an open object.
    pub fn write_fields(&self, w: &mut Writer<'_>) {
        w.field("kind", self.kind.as_str());
        w.field("media_type", self.media_type);
        w.optional("converted_from", &self.original);
        w.field("size_bytes", &self.stored.len());
        w.optional("sha256", &self.stored.sha256().map(|hash| hex(hash)));
        self.facts.write_fields(w);
    }

    /// Returns a warning if the file name, the server or the provider suggested another type (rulings R61, R69).
    pub fn hint_warning(&self) -> Option<String> {
        let is_other = |hint: &&str| !says_nothing(hint) && !is_named(self.media_type, hint);
        let hint = self.declared.hint.as_deref().filter(is_other)?;
        let suggested = match self.source() {
            Some("url") => "the server declared",
            Some("upload_ref") => "the upload declared",
            Some(_) => "the file name suggests",
            None => "the provider declared",
        };
        Some(format!("{suggested} {hint}, but the content is {}", self.media_type))
    }
}

/// What the header of a media file says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct MediaInfo {
    /// Width in pixels, after the orientation is applied.
    pub width: Option<u32>,
    /// Height in pixels, after the orientation is applied.
    pub height: Option<u32>,
    /// Milliseconds of audio or video.
    pub duration_ms: Option<u64>,
    /// How much earlier a recording ends than its header declares, in milliseconds.
    pub missing_ms: Option<u64>,
    /// Pages of a document.
    pub pages: Option<u32>,
    /// What the pages of a document stand for, if its content is elsewhere.
    pub placeholder: Option<Placeholder>,
    /// Frames of an animated image; none for a still image.
    pub frames: Option<u32>,
    /// Samples per second of the audio track; none without audio.
    pub sample_rate: Option<u32>,
    /// Channels of the audio track.
    pub channels: Option<u32>,
    /// How the image must be rotated for display; none if it is upright.
    pub orientation: Option<Orientation>,
}

impl MediaInfo {
    /// Writes the known facts into an open object.
    pub(crate) fn write_fields(&self, w: &mut Writer<'_>) {
        w.optional("width", &self.width);
        w.optional("height", &self.height);
        w.optional("duration_ms", &self.duration_ms);
        w.optional("missing_ms", &self.missing_ms);
        w.optional("pages", &self.pages);
        w.optional("placeholder", &self.placeholder.map(Placeholder::as_str));
        w.optional("frames", &self.frames);
        w.optional("sample_rate", &self.sample_rate);
        w.optional("channels", &self.channels);
        w.optional("orientation", &self.orientation.map(|turn| u32::from(turn.exif())));
    }
}

/// What the pages of a document stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placeholder {
    /// An XFA form, which replaces the pages when it is displayed.
    XfaForm,
    /// Attached files (ISO 32000-1, 12.3.5).
    Portfolio,
}

impl Placeholder {
    /// Returns the value in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::XfaForm => "xfa_form",
            Self::Portfolio => "portfolio",
        }
    }

    /// Reads a value of a report.
    pub(crate) fn read(value: &str) -> Option<Self> {
        [Self::XfaForm, Self::Portfolio].into_iter().find(|placeholder| placeholder.as_str() == value)
    }
}

/// How an image must be rotated for display: EXIF orientation 2 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orientation(u8);

impl Orientation {
    /// Returns the orientation of an EXIF value; none for 1 (upright) and unknown values.
    pub fn new(exif: u8) -> Option<Self> {
        (2..=8).contains(&exif).then_some(Self(exif))
    }

    /// Returns the EXIF value.
    pub fn exif(self) -> u8 {
        self.0
    }

    /// Returns whether width and height are swapped.
    pub fn swaps_sides(self) -> bool {
        self.0 >= 5
    }
}
