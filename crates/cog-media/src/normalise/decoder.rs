//! Reads the header of an image, and decodes and re-encodes its pixels.

use std::{
    borrow::Cow,
    io::{BufReader, Cursor, Read as _},
};

use image::{
    DynamicImage, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, ImageResult, Limits,
    Rgba,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
    error::ImageFormatHint,
    metadata::Orientation as Turn,
};
use zune_core::{bytestream::ZCursor, options::DecoderOptions};
use zune_jpeg::{JpegDecoder, errors::DecodeErrors};

use super::structure::{check_structure, frames};
use crate::{Media, MediaError, MediaInfo, MediaRules, Orientation, Rotation, Store, Stored};

/// The maximum size of decompressed metadata: a few bytes of PNG can expand to gigabytes.
const MAX_INFLATED: u64 = 8 << 20;

/// Reads the header of an image, and checks that the image is complete.
///
/// # Errors
/// [`MediaError::Damaged`] if it cannot be read or is truncated.
pub(crate) fn read_header(stored: &Stored, media_type: &'static str) -> Result<MediaInfo, MediaError> {
    let format = ImageFormat::from_mime_type(media_type).ok_or(damaged_header(media_type))?;
    let mut decoder = decoder(stored, format).map_err(|_| damaged_header(media_type))?;
    let (mut width, mut height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(MediaError::Damaged { media_type, what: "the image has no pixels" });
    }
    let orientation = Orientation::new(turn(&mut decoder).to_exif());
    if orientation.is_some_and(Orientation::swaps_sides) {
        std::mem::swap(&mut width, &mut height);
    }
    let frames = frames(stored, media_type);
    check_structure(stored, media_type, frames.is_some())?;
    Ok(MediaInfo { width: Some(width), height: Some(height), frames, orientation, ..MediaInfo::default() })
}

fn damaged_header(media_type: &'static str) -> MediaError {
    MediaError::Damaged { media_type, what: "the header is damaged or truncated" }
}

/// Returns the rotation of an image. Unreadable metadata means none.
fn turn(decoder: &mut impl ImageDecoder) -> Turn {
    let exif = decoder.exif_metadata().ok().flatten().unwrap_or_default();
    // Some programs begin the Exif of WebP and PNG like the Exif of JPEG.
    match exif.strip_prefix(b"Exif\0\0") {
        Some(exif) => Turn::from_exif_chunk(exif).unwrap_or(Turn::NoTransforms),
        None => decoder.orientation().unwrap_or(Turn::NoTransforms),
    }
}

/// Returns a decoder that has read everything before the pixels; oversized metadata is skipped.
fn decoder(stored: &Stored, format: ImageFormat) -> ImageResult<impl ImageDecoder> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_INFLATED);
    let mut reader = ImageReader::with_format(BufReader::new(stored.reader()), format);
    reader.limits(limits);
    reader.into_decoder()
}

// The pixels.

/// Memory that a decoder may use in addition to the pixels.
const WORKING_SPACE: u64 = 64 << 20;

/// The maximum side of a JPEG, which the rules have checked before.
const MAX_SIDE: usize = 1 << 16;

/// The quality of re-encoded JPEGs.
const QUALITY: u8 = 90;

/// A decoded image.
pub(super) struct Pixels {
    image: DynamicImage,
    profile: Option<Vec<u8>>,
}

impl Pixels {
    /// Decodes the first frame of an image and applies its orientation.
    ///
    /// # Errors
    /// [`MediaError::Damaged`].
    pub(super) fn decode(media: &Media, rules: &MediaRules) -> Result<Self, MediaError> {
        let Decoded { mut image, profile } =
            decode(media, rules).map_err(|_| damaged_pixels(media.media_type()))?;
        let turn = media.info().orientation.and_then(|turn| Turn::from_exif(turn.exif()));
        image.apply_orientation(turn.unwrap_or(Turn::NoTransforms));
        let profile = profile.filter(|profile| fits(profile, &image));
        Ok(Self { image, profile })
    }

    /// Returns the length of its longer side.
    pub(super) fn max_side(&self) -> u32 {
        self.image.width().max(self.image.height())
    }

    /// Rotates it.
    pub(super) fn rotate(&mut self, rotation: Rotation) {
        self.image.apply_orientation(match rotation.degrees() {
            90 => Turn::Rotate90,
            180 => Turn::Rotate180,
            270 => Turn::Rotate270,
            _ => Turn::NoTransforms,
        });
    }

    /// Scales it so that its longer side is `side`. Each pixel is the mean of the pixels it replaces. Unlike a
    /// filter, this needs no second floating-point image.
    pub(super) fn scale_to(&mut self, side: u32) {
        self.image = self.image.thumbnail(side, side);
    }

    /// Returns whether it has an alpha channel.
    pub(super) fn is_transparent(&self) -> bool {
        self.image.color().has_alpha()
    }

    /// Encodes it with its colour profile.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub(super) fn encode(&self, media_type: &'static str) -> Result<Stored, MediaError> {
        let mut bytes = Cursor::new(Vec::new());
        match media_type {
            "image/jpeg" => self.write(&self.opaque(), JpegEncoder::new_with_quality(&mut bytes, QUALITY)),
            "image/webp" => self.write(&self.with_eight_bits(), WebPEncoder::new_lossless(&mut bytes)),
            _ => self.write(&self.image, PngEncoder::new(&mut bytes)),
        }?;
        let bytes = bytes.into_inner();
        let mut store = Store::unhashed(bytes.len() as u64);
        store.push(&bytes)?;
        Ok(store.finish())
    }

    fn write(&self, image: &DynamicImage, mut encoder: impl ImageEncoder) -> Result<(), MediaError> {
        if let Some(profile) = &self.profile {
            // All formats support profiles.
            let _ = encoder.set_icc_profile(profile.clone());
        }
        image.write_with_encoder(encoder).map_err(|error| MediaError::Storage(std::io::Error::other(error)))
    }

    /// Returns the image in a colour type that WebP supports.
    fn with_eight_bits(&self) -> Cow<'_, DynamicImage> {
        match &self.image {
            DynamicImage::ImageRgb8(_) | DynamicImage::ImageRgba8(_) => Cow::Borrowed(&self.image),
            image if image.color().has_alpha() => Cow::Owned(DynamicImage::ImageRgba8(image.to_rgba8())),
            image => Cow::Owned(DynamicImage::ImageRgb8(image.to_rgb8())),
        }
    }

    /// Returns an image without alpha, on a white background, in a colour type that JPEG supports.
    fn opaque(&self) -> Cow<'_, DynamicImage> {
        if self.is_transparent() {
            let mut over_white = self.image.to_rgba8();
            for Rgba([red, green, blue, alpha]) in over_white.pixels_mut() {
                for colour in [red, green, blue] {
                    let mixed = u16::from(*colour) * u16::from(*alpha) + 255 * (255 - u16::from(*alpha));
                    *colour = u8::try_from(mixed / 255).unwrap_or(u8::MAX);
                }
            }
            return Cow::Owned(DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(over_white).to_rgb8()));
        }
        match &self.image {
            DynamicImage::ImageRgb8(_) | DynamicImage::ImageLuma8(_) => Cow::Borrowed(&self.image),
            image if image.color().has_color() => Cow::Owned(DynamicImage::ImageRgb8(image.to_rgb8())),
            image => Cow::Owned(DynamicImage::ImageLuma8(image.to_luma8())),
        }
    }
}

/// The first frame of an image as it is stored, and its colour profile.
struct Decoded {
    image: DynamicImage,
    profile: Option<Vec<u8>>,
}

fn decode(media: &Media, rules: &MediaRules) -> ImageResult<Decoded> {
    let format = ImageFormat::from_mime_type(media.media_type());
    let format = format.ok_or_else(|| ImageError::Unsupported(ImageFormatHint::Unknown.into()))?;
    let mut decoder = decoder(media.bytes(), format)?;
    decoder.set_limits(limits(rules))?;
    let profile = decoder.icc_profile().ok().flatten();
    Ok(Decoded { image: DynamicImage::from_decoder(decoder)?, profile })
}

fn damaged_pixels(media_type: &'static str) -> MediaError {
    MediaError::Damaged { media_type, what: "the pixel data is damaged or truncated" }
}

// Whether the pixels are there.

/// Decodes an image to see whether its pixels are there; the structure around them does not say. Returns a warning
/// about a JPEG that ends early, which viewers show with a grey rest.
///
/// # Errors
/// [`MediaError::Damaged`] if no decoder can read it.
pub(crate) fn check_pixels(media: &Media, rules: &MediaRules) -> Result<Option<&'static str>, MediaError> {
    let warning = match check_jpeg(media)? {
        JpegState::Complete => return Ok(None),
        JpegState::Damaged => Some("the image is damaged or ends early; a part of it may be grey"),
        JpegState::Unknown => None,
    };
    match decode(media, rules) {
        // Another decoder may know how the pixels are coded.
        Ok(_) | Err(ImageError::Unsupported(_)) => Ok(warning),
        Err(_) => Err(damaged_pixels(media.media_type())),
    }
}

/// How much of a JPEG is there.
enum JpegState {
    Complete,
    /// Its pixels cannot all be decoded.
    Damaged,
    /// It deviates from the format, or is another image.
    Unknown,
}

fn check_jpeg(media: &Media) -> Result<JpegState, MediaError> {
    if media.media_type() != "image/jpeg" {
        return Ok(JpegState::Unknown);
    }
    let mut bytes = Vec::new();
    media.bytes().reader().read_to_end(&mut bytes)?;
    Ok(match decode_jpeg(&bytes) {
        Ok(pixels) => match is_cut(&bytes, pixels) {
            true => JpegState::Damaged,
            false => JpegState::Complete,
        },
        // Bytes between the segments, which every decoder skips.
        Err(DecodeErrors::FormatStatic(text)) if text.starts_with("[strict-mode]") => JpegState::Unknown,
        Err(
            DecodeErrors::ExhaustedData
            | DecodeErrors::Format(_)
            | DecodeErrors::FormatStatic(_)
            | DecodeErrors::HuffmanDecode(_)
            | DecodeErrors::MCUError(_),
        ) => JpegState::Damaged,
        Err(_) => JpegState::Unknown,
    })
}

fn decode_jpeg(bytes: &[u8]) -> Result<Vec<u8>, DecodeErrors> {
    let options =
        DecoderOptions::default().set_strict_mode(true).set_max_width(MAX_SIDE).set_max_height(MAX_SIDE);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options).decode()
}

/// Returns whether the mark of the end comes before the last pixels. The decoder goes on with zeros there and reports nothing. If
/// other bits before the mark change the pixels, they belong to pixels that are missing.
fn is_cut(bytes: &[u8], pixels: Vec<u8>) -> bool {
    const END: &[u8] = b"\xff\xd9";
    const OTHER_BITS: [u8; 64] = [0x55; 64];
    // A progressive image that ends early is coarse, but whole.
    if memchr::memmem::find(bytes, b"\xff\xc2").is_some() {
        return false;
    }
    let Some(end) = memchr::memmem::rfind(bytes, END) else { return false };
    let checksum = crc32fast::hash(&pixels);
    // Two images of the largest size need not be in memory.
    drop(pixels);
    let data = bytes.get(..end).unwrap_or_default();
    decode_jpeg(&[data, &OTHER_BITS, END].concat()).is_ok_and(|pixels| crc32fast::hash(&pixels) != checksum)
}

/// Returns whether a profile fits the decoded colours: CMYK is decoded to RGB.
fn fits(profile: &[u8], image: &DynamicImage) -> bool {
    let colours = if image.color().has_color() { b"RGB " } else { b"GRAY" };
    profile.get(16..20) == Some(colours)
}

fn limits(rules: &MediaRules) -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(rules.max_dimension);
    limits.max_image_height = Some(rules.max_dimension);
    // A pixel of these formats has at most eight bytes.
    limits.max_alloc = Some(rules.max_pixels * 8 + WORKING_SPACE);
    limits
}
