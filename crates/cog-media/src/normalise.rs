//! From a checked image to what a provider is sent (SPEC 8.3, media normalisation).

#[cfg(feature = "decode")]
mod frames;
mod gif;
mod jpeg;
#[cfg_attr(not(feature = "decode"), path = "normalise/no_pixels.rs")]
mod pixels;
mod plan;
mod png;
mod remake;
mod webp;

use cog_json::Writer;
use cog_spec::Modality;

use crate::{FramePlan, Media, MediaError, MediaRules, Stored};

#[cfg(feature = "decode")]
pub(crate) use self::frames::frames;
use self::plan::{Broken, Scan};

/// What a provider takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaCapabilities {
    /// The types, of all kinds.
    pub media_types: Vec<&'static str>,
    /// The longest side of an image, in pixels.
    pub max_dimension: Option<u32>,
    /// The most bytes of an image.
    pub max_bytes: Option<u64>,
    /// Which frames stand for a video.
    pub frames: FramePlan,
    /// Whether it fetches images from addresses.
    pub by_address: bool,
}

impl Default for MediaCapabilities {
    /// Images of every type, however large.
    fn default() -> Self {
        Self {
            media_types: Modality::Image.media_types().to_vec(),
            max_dimension: None,
            max_bytes: None,
            frames: FramePlan::default(),
            by_address: false,
        }
    }
}

/// What a provider is sent of a medium.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its type.
    pub media_type: &'static str,
    /// Its bytes.
    pub stored: Stored,
    /// Where the provider fetches it, where it is not sent itself.
    pub address: Option<String>,
    /// What was done to it.
    pub steps: Vec<Step>,
    /// What it is of the medium.
    pub part: Part,
    /// What of the medium a model will not see, for a person.
    pub warning: Option<String>,
}

impl Prepared {
    /// A medium as it is.
    pub(crate) fn whole(media: &Media) -> Self {
        Self::made(media.media_type(), media.bytes().clone(), Vec::new())
    }

    /// A medium to which this was done.
    fn made(media_type: &'static str, stored: Stored, steps: Vec<Step>) -> Self {
        Self { media_type, stored, address: None, steps, part: Part::Whole, warning: None }
    }
}

/// What is sent of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// A frame of a video, so many milliseconds from its beginning.
    Frame {
        /// Milliseconds.
        at_ms: u64,
    },
    /// The sound of a video.
    Sound,
    /// The text of a document.
    Text,
}

impl Part {
    /// Writes it into an object that is open; nothing where it is the whole.
    pub(crate) fn write_fields(self, w: &mut Writer<'_>) {
        match self {
            Self::Whole => {}
            Self::Frame { at_ms } => {
                w.field("part", "frame").field("at_ms", &at_ms);
            }
            Self::Sound => {
                w.field("part", "sound");
            }
            Self::Text => {
                w.field("part", "text");
            }
        }
    }
}

/// What is done to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Its other frames were left out.
    FirstFrame,
    /// Exif, XMP, IPTC, comments, previews and whatever followed its end were left out; no pixel changed.
    Stripped,
    /// It was turned as its metadata said.
    Oriented,
    /// It was turned as the source said.
    Rotated,
    /// It was made smaller.
    Scaled,
    /// It was made another type.
    Converted,
}

impl Step {
    /// The word in `meta.media_processed`.
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

/// MediaSink of an image what a provider takes: its first frame, turned as it is shown, without metadata where the rules say
/// so, not too large, of a type that is taken. Pixels are coded anew only where one of these needs it.
///
/// # Errors
/// [`MediaError::Damaged`] where it cannot be read, [`MediaError::NotTaken`] (E4011) where it is no image or no type is
/// taken that it could be made, [`MediaError::TooLarge`] where it cannot be made small enough.
pub fn normalise(
    media: &Media,
    takes: &MediaCapabilities,
    rules: &MediaRules,
) -> Result<Prepared, MediaError> {
    if media.kind() != Modality::Image {
        return Err(MediaError::NotTaken { media_type: media.media_type() });
    }
    let steps = remake::steps(media, takes, rules);
    if !steps.is_empty() {
        return remake::remake(media, steps, takes, rules);
    }
    let Some(stripped) = without_metadata(media, rules)? else {
        return remake::remake(media, vec![Step::FirstFrame], takes, rules);
    };
    match takes.max_bytes {
        Some(limit) if stripped.stored.len() > limit => remake::remake(media, steps, takes, rules),
        _ => Ok(stripped),
    }
}

/// Leaves out what is neither pixels nor their colours. What moves keeps its first frame alone, also where metadata stay;
/// none where that takes decoding it.
fn without_metadata(media: &Media, rules: &MediaRules) -> Result<Option<Prepared>, MediaError> {
    let (media_type, stored, keeps) = (media.media_type(), media.bytes(), !rules.strip_metadata);
    let moves = media.facts().frames.is_some();
    let mut scan = Scan::new(stored.reader(), stored.len());
    let plan = match media_type {
        "image/gif" => gif::first_frame(&mut scan).map(Some),
        "image/png" if moves => png::still(&mut scan, keeps).map(Some),
        "image/webp" if moves => webp::first_frame(&mut scan, keeps),
        _ if keeps => return Ok(Some(Prepared::whole(media))),
        "image/jpeg" => jpeg::strip(&mut scan).map(Some),
        "image/png" => png::still(&mut scan, keeps).map(Some),
        "image/webp" => webp::strip(&mut scan).map(Some),
        _ => Err(Broken),
    };
    let plan = plan.map_err(|Broken| MediaError::Damaged {
        media_type,
        what: "the structure is damaged or truncated",
    })?;
    let Some(plan) = plan else { return Ok(None) };
    let step = if moves || media_type == "image/gif" { Step::FirstFrame } else { Step::Stripped };
    // What keeps as many bytes keeps all of them.
    match plan.len() == stored.len() {
        true => Ok(Some(Prepared::whole(media))),
        false => Ok(Some(Prepared::made(media_type, plan.carry_out(stored)?, vec![step]))),
    }
}

#[cfg(test)]
mod tests;
