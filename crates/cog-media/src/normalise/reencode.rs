//! Re-encodes images.

use crate::{Media, MediaError, MediaRules, Stored};

use super::{MediaCapabilities, MediaPart, Step, decoder::Pixels, structure::is_lossless_webp};

const JPEG: &str = "image/jpeg";
const PNG: &str = "image/png";
const WEBP: &str = "image/webp";

/// How many times an image is scaled down to reach the size limit.
const ATTEMPTS: usize = 12;

/// Returns the steps that require decoding; none if the file can stay except for its metadata.
pub(super) fn steps_of(media: &Media, capabilities: &MediaCapabilities, rules: &MediaRules) -> Vec<Step> {
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
pub(super) fn reencode(
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
