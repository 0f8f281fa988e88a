//! Converts a checked image into what a provider supports (SPEC 8.3, media normalisation).

#[cfg_attr(not(feature = "decode"), path = "normalise/no_decoder.rs")]
mod decoder;
mod gif;
mod jpeg;
mod plan;
mod reencode;
mod structure;
mod webp;

use cog_json::Writer;
use cog_spec::Modality;

use crate::{FramePlan, Media, MediaError, MediaRules, Stored};

pub(crate) use self::decoder::{check_pixels, read_header};
use self::{
    reencode::{reencode, steps_of},
    structure::stripping_plan,
};

/// The media that a provider supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaCapabilities {
    /// The types of all kinds.
    pub media_types: Vec<&'static str>,
    /// The maximum side of an image, in pixels.
    pub max_dimension: Option<u32>,
    /// The maximum bytes of an image.
    pub max_bytes: Option<u64>,
    /// How frames are selected from a video.
    pub frames: FramePlan,
    /// Whether it fetches images from URLs.
    pub by_url: bool,
}

impl Default for MediaCapabilities {
    /// Supports images of every type and size.
    fn default() -> Self {
        Self {
            media_types: Modality::Image.media_types().to_vec(),
            max_dimension: None,
            max_bytes: None,
            frames: FramePlan::default(),
            by_url: false,
        }
    }
}

/// A part of a media file, ready to send.
#[derive(Debug, Clone)]
pub struct MediaPart {
    /// Its type.
    pub media_type: &'static str,
    /// Its bytes.
    pub stored: Stored,
    /// The URL that the provider fetches instead of the bytes.
    pub url: Option<String>,
    /// The processing steps that were applied.
    pub steps: Vec<Step>,
    /// Which part of the media file it is.
    pub part: PartKind,
    /// A warning about content that the model does not receive.
    pub warning: Option<String>,
}

impl MediaPart {
    /// Returns a media file unchanged.
    pub(crate) fn complete(media: &Media) -> Self {
        Self::converted(media.media_type(), media.bytes().clone(), Vec::new())
    }

    /// Returns a media file after these steps.
    fn converted(media_type: &'static str, stored: Stored, steps: Vec<Step>) -> Self {
        Self { media_type, stored, url: None, steps, part: PartKind::Complete, warning: None }
    }
}

/// Which part of a media file is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PartKind {
    /// The complete file.
    #[default]
    Complete,
    /// A frame of a video.
    Frame {
        /// Its time in milliseconds from the start.
        at_ms: u64,
        /// Its number in the video, from 0, if it is known.
        number: Option<u64>,
    },
    /// The audio track of a video.
    Audio,
    /// The text of a document.
    Text,
    /// The image of a page of a document without text.
    Page {
        /// Its number, from 1.
        number: u32,
    },
}

impl PartKind {
    /// Writes it into an open object; nothing for the complete file.
    pub(crate) fn write_fields(self, w: &mut Writer<'_>) {
        match self {
            Self::Complete => {}
            Self::Frame { at_ms, .. } => {
                w.field("part", "frame").field("at_ms", &at_ms);
            }
            Self::Audio => {
                w.field("part", "audio");
            }
            Self::Text => {
                w.field("part", "text");
            }
            Self::Page { number } => {
                w.field("part", "page").field("page", &number);
            }
        }
    }
}

/// A step of image processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Frames after the first were removed.
    FirstFrame,
    /// Exif, XMP, IPTC, comments, previews and bytes after the end were removed; no pixel changed.
    Stripped,
    /// It was rotated according to its metadata.
    Oriented,
    /// It was rotated as the source requested.
    Rotated,
    /// It was scaled down.
    Scaled,
    /// It was converted to another type.
    Converted,
}

impl Step {
    /// Returns the value in `meta.media_processed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FirstFrame => "first_frame",
            Self::Stripped => "metadata_stripped",
            Self::Oriented => "oriented",
            Self::Rotated => "rotated",
            Self::Scaled => "scaled",
            Self::Converted => "converted",
        }
    }
}

/// Converts an image into what a provider supports: the first frame, upright, without metadata if the rules say so,
/// within the size limits, of a supported type. Pixels are re-encoded only if required.
///
/// # Errors
/// [`MediaError::Damaged`] if it cannot be read; [`MediaError::UnsupportedByProvider`] (E4011) if it is not an image or
/// cannot become a supported type; [`MediaError::TooLarge`] if it cannot be made small enough.
pub fn normalise(
    media: &Media,
    capabilities: &MediaCapabilities,
    rules: &MediaRules,
) -> Result<MediaPart, MediaError> {
    if media.kind() != Modality::Image {
        return Err(MediaError::UnsupportedByProvider { media_type: media.media_type() });
    }
    let steps = steps_of(media, capabilities, rules);
    if !steps.is_empty() {
        return reencode(media, steps, capabilities, rules);
    }
    let Some(stripped) = without_metadata(media, rules)? else {
        return reencode(media, vec![Step::FirstFrame], capabilities, rules);
    };
    match capabilities.max_bytes {
        Some(limit) if stripped.stored.len() > limit => reencode(media, steps, capabilities, rules),
        _ => Ok(stripped),
    }
}

/// Removes everything except pixels and colour information. An animation keeps its first frame only, even if metadata
/// stays. Returns none if that requires decoding.
fn without_metadata(media: &Media, rules: &MediaRules) -> Result<Option<MediaPart>, MediaError> {
    let media_type = media.media_type();
    let stored = media.bytes();
    let is_one_of_several = media_type == "image/gif" || media.info().frames.is_some();
    if !rules.strip_metadata && !is_one_of_several {
        return Ok(Some(MediaPart::complete(media)));
    }
    let is_animated = media.info().frames.is_some();
    let plan = stripping_plan(stored, media_type, is_animated, !rules.strip_metadata);
    let Some(plan) = plan.map_err(|error| error.into_error(media_type))? else { return Ok(None) };
    let step = if is_one_of_several { Step::FirstFrame } else { Step::Stripped };
    // If nothing was removed, the original bytes are sent.
    match plan.len() == stored.len() {
        true => Ok(Some(MediaPart::complete(media))),
        false => Ok(Some(MediaPart::converted(media_type, plan.execute(stored)?, vec![step]))),
    }
}

#[cfg(test)]
mod tests;
