//! Converts a checked image into what a provider supports (SPEC 8.3, media normalisation).

#[cfg_attr(not(feature = "decode"), path = "normalise/no_decoder.rs")]
mod decoder;
mod gif;
mod jpeg;
mod structure;
mod webp;

use cog_json::Writer;
use cog_spec::Modality;

use self::{
    decoder::Pixels,
    structure::{is_lossless_webp, stripping_plan},
};
use crate::{FramePlan, Media, MediaError, MediaRules, Stored};

pub(crate) use self::decoder::{check_pixels, read_header};

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

// Re-encodes images.

const JPEG: &str = "image/jpeg";
const PNG: &str = "image/png";
const WEBP: &str = "image/webp";

/// How many times an image is scaled down to reach the size limit.
const ATTEMPTS: usize = 12;

/// Returns the steps that require decoding; none if the file can stay except for its metadata.
fn steps_of(media: &Media, capabilities: &MediaCapabilities, rules: &MediaRules) -> Vec<Step> {
    let facts = media.info();
    let max_side = facts.width.max(facts.height);
    let steps = [
        (Step::Oriented, rules.strip_metadata && facts.orientation.is_some()),
        (Step::Rotated, media.rotation().degrees() != 0),
        (Step::Scaled, capabilities.max_dimension.is_some_and(|limit| max_side > Some(limit))),
        (Step::Converted, !capabilities.media_types.contains(&media.media_type())),
    ];
    steps.into_iter().filter_map(|(step, is_needed)| is_needed.then_some(step)).collect()
}

/// Decodes an image, applies these steps, and scales it until the provider accepts its size.
fn reencode(
    media: &Media,
    mut steps: Vec<Step>,
    capabilities: &MediaCapabilities,
    rules: &MediaRules,
) -> Result<MediaPart, MediaError> {
    // An image that cannot become a supported type fails before megabytes are decoded.
    target(media, false, capabilities)?;
    let mut pixels = Pixels::decode(media, rules)?;
    pixels.rotate(media.rotation());
    if let Some(limit) = capabilities.max_dimension.filter(|limit| pixels.max_side() > *limit) {
        pixels.scale_to(limit);
    }
    let media_type = target(media, pixels.is_transparent(), capabilities)?;
    let (stored, media_type) = encode_within_limit(&mut pixels, media_type, capabilities)?;
    let is_smaller = media.info().width.max(media.info().height) > Some(pixels.max_side());
    let is_one_of_several = media.media_type() == "image/gif" || media.info().frames.is_some();
    let done = [
        (Step::FirstFrame, is_one_of_several && !steps.contains(&Step::FirstFrame)),
        (Step::Scaled, is_smaller && !steps.contains(&Step::Scaled)),
        (Step::Converted, media_type != media.media_type() && !steps.contains(&Step::Converted)),
    ];
    steps.extend(done.into_iter().filter_map(|(step, is_done)| is_done.then_some(step)));
    Ok(MediaPart::converted(media_type, stored, steps))
}

/// Returns the target type that the provider supports: preferably JPEG for photographs, PNG for drawings and
/// transparent images. A lossless WebP stays one.
fn target(
    media: &Media,
    is_transparent: bool,
    capabilities: &MediaCapabilities,
) -> Result<&'static str, MediaError> {
    let media_type = media.media_type();
    let wanted = match media_type {
        WEBP if is_lossless_webp(media.bytes(), media_type) => [WEBP, PNG, JPEG],
        PNG | "image/gif" => [PNG, WEBP, JPEG],
        _ if is_transparent => [PNG, WEBP, JPEG],
        _ => [JPEG, PNG, WEBP],
    };
    let supported = wanted.into_iter().find(|wanted| capabilities.media_types.contains(wanted));
    supported.ok_or(MediaError::UnsupportedByProvider { media_type })
}

/// Estimates the side at which an image has at most `limit` bytes, assuming constant bytes per pixel.
fn estimated_side(limit: u64, found: u64, side: u32) -> u32 {
    let estimate = (u128::from(side).pow(2) * u128::from(limit) / u128::from(found.max(1))).isqrt();
    u32::try_from(estimate).unwrap_or(side).min(side / 10 * 9).max(1)
}

/// Encodes the image, as JPEG if PNG or WebP is too large, and scales it down until it fits.
fn encode_within_limit(
    pixels: &mut Pixels,
    mut media_type: &'static str,
    capabilities: &MediaCapabilities,
) -> Result<(Stored, &'static str), MediaError> {
    let limit = capabilities.max_bytes.unwrap_or(u64::MAX);
    for _ in 0..ATTEMPTS {
        let stored = pixels.encode(media_type)?;
        if stored.len() <= limit {
            return Ok((stored, media_type));
        }
        // Another type first: it keeps every pixel, and JPEG is several times smaller.
        if media_type != JPEG && !pixels.is_transparent() && capabilities.media_types.contains(&JPEG) {
            media_type = JPEG;
        } else {
            pixels.scale_to(estimated_side(limit, stored.len(), pixels.max_side()));
        }
    }
    Err(MediaError::TooLarge { limit })
}

#[cfg(test)]
mod tests;
