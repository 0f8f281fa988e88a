use std::io::{Cursor, Read as _};

use image::{
    DynamicImage, ExtendedColorType, Frame, ImageDecoder as _, ImageEncoder as _, ImageReader, RgbImage,
    RgbaImage,
    codecs::{gif::GifEncoder, jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
};

use super::*;
use crate::{MediaDeclaration, MediaLocation, MediaSource, Store, check::check_now};

/// Text that must be removed.
const SECRET: &[u8] = b"51.5007N 0.1246W";

fn drawing(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 7 % 256) as u8, (y * 5 % 256) as u8, ((x + y) * 3 % 256) as u8])
    })
}

/// Returns the parts of a colour profile that this code reads.
fn profile() -> Vec<u8> {
    let mut profile = vec![0; 128];
    profile[16..20].copy_from_slice(b"RGB ");
    profile
}

/// Returns Exif with an orientation and a secret.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    exif.extend(SECRET);
    exif
}

fn segment(code: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 2).unwrap();
    [&[0xFF, code], length.to_be_bytes().as_slice(), payload].concat()
}

/// Returns a JPEG with all the metadata that cameras and agencies write.
fn jpeg(orientation: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = drawing(40, 30);
    let mut encoder = JpegEncoder::new(&mut bytes);
    encoder.set_icc_profile(profile()).unwrap();
    encoder.write_image(&image, 40, 30, ExtendedColorType::Rgb8).unwrap();
    let metadata = [
        segment(0xE1, &[b"Exif\0\0".as_slice(), &exif(orientation)].concat()),
        segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0".as_slice(), SECRET].concat()),
        segment(0xE2, &[b"MPF\0".as_slice(), SECRET].concat()),
        segment(0xED, &[b"Photoshop 3.0\0".as_slice(), SECRET].concat()),
        segment(0xFE, SECRET),
    ];
    bytes.splice(2..2, metadata.concat());
    bytes.extend(SECRET);
    bytes
}

fn png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = PngEncoder::new(&mut bytes);
    encoder.set_icc_profile(profile()).unwrap();
    encoder.set_exif_metadata(exif(1)).unwrap();
    encoder.write_image(&drawing(40, 30), 40, 30, ExtendedColorType::Rgb8).unwrap();
    let text = [b"\0\0\0\x18tEXtComment\0".as_slice(), SECRET, &[0; 4]].concat();
    bytes.splice(33..33, text);
    bytes.extend(SECRET);
    bytes
}

fn webp() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut bytes);
    encoder.set_icc_profile(profile()).unwrap();
    encoder.set_exif_metadata(exif(1)).unwrap();
    encoder.write_image(&drawing(41, 31), 41, 31, ExtendedColorType::Rgb8).unwrap();
    bytes.extend(SECRET);
    bytes
}

fn gif() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for shade in [0, 90, 200] {
        encoder
            .encode_frame(Frame::new(RgbaImage::from_pixel(20, 10, image::Rgba([shade, 0, 0, 255]))))
            .unwrap();
    }
    drop(encoder);
    let comment = [b"!\xFE\x10".as_slice(), SECRET, b"\0"].concat();
    let screen = 13 + if bytes[10] & 0x80 == 0 { 0 } else { 3 << ((bytes[10] & 7) + 1) };
    bytes.splice(screen..screen, comment);
    bytes
}

/// Returns a WebP with two frames, the first at this horizontal offset.
fn moving_webp(left: u8) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let size = u32::try_from(content.len()).unwrap();
        [kind.as_slice(), &size.to_le_bytes(), content, &[0][..content.len() % 2]].concat()
    };
    let frame = |left: u8, shade: u8| {
        let mut still = Vec::new();
        let pixels = [shade; 10 * 8 * 3];
        WebPEncoder::new_lossless(&mut still).write_image(&pixels, 10, 8, ExtendedColorType::Rgb8).unwrap();
        let frame = [left / 2, 0, 0, 0, 0, 0, 9, 0, 0, 7, 0, 0, 100, 0, 0, 2];
        chunk(b"ANMF", &[frame.as_slice(), &still[12..]].concat())
    };
    let canvas = [0x02 | 0x08, 0, 0, 0, 9 + left, 0, 0, 7, 0, 0];
    let chunks = [
        chunk(b"VP8X", &canvas),
        chunk(b"ANIM", &[0, 0, 0, 0, 0, 0]),
        frame(left, 90),
        frame(0, 200),
        chunk(b"EXIF", SECRET),
    ];
    let chunks = chunks.concat();
    let size = u32::try_from(chunks.len() + 4).unwrap();
    [b"RIFF", size.to_le_bytes().as_slice(), b"WEBP", &chunks].concat()
}

/// Returns a PNG with two frames, the first of which is the still image.
fn moving_png() -> Vec<u8> {
    let chunk = |kind: &[u8; 4], content: &[u8]| {
        let size = u32::try_from(content.len()).unwrap().to_be_bytes();
        let sum = crc32fast::hash(&[kind.as_slice(), content].concat()).to_be_bytes();
        [&size, kind.as_slice(), content, &sum].concat()
    };
    let control = |number: u8| {
        let sides = [0, 0, 0, 40, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0];
        chunk(b"fcTL", &[[0, 0, 0, number].as_slice(), &sides, &[0, 1, 0, 10, 0, 0]].concat())
    };
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes).write_image(&drawing(40, 30), 40, 30, ExtendedColorType::Rgb8).unwrap();
    let begin = memchr::memmem::find(&bytes, b"IDAT").unwrap() - 4;
    let end = memchr::memmem::find(&bytes, b"IEND").unwrap() - 4;
    let pixels = [[0, 0, 0, 2].as_slice(), &bytes[begin + 8..end - 4]].concat();
    bytes.splice(end..end, [control(1), chunk(b"fdAT", &pixels), chunk(b"tEXt", SECRET)].concat());
    bytes.splice(begin..begin, [chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]), control(0)].concat());
    bytes
}

fn media(bytes: &[u8]) -> Media {
    checked(bytes, &MediaDeclaration::default())
}

fn checked(bytes: &[u8], expected: &MediaDeclaration) -> Media {
    let mut store = Store::with_limit(1 << 30);
    store.push(bytes).unwrap();
    check_now(store.finish(), expected, &MediaRules::default()).unwrap()
}

fn bytes(prepared: &MediaPart) -> Vec<u8> {
    let mut bytes = Vec::new();
    prepared.stored.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

fn decoded(bytes: &[u8]) -> DynamicImage {
    ImageReader::new(Cursor::new(bytes)).with_guessed_format().unwrap().decode().unwrap()
}

fn profile_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().unwrap();
    reader.into_decoder().unwrap().icc_profile().unwrap()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn normal(media: &Media, capabilities: &MediaCapabilities) -> Result<MediaPart, MediaError> {
    normalise(media, capabilities, &MediaRules::default())
}

#[test]
fn removes_metadata_and_keeps_pixels_and_colours() {
    for original in [jpeg(1), png(), webp()] {
        assert!(contains(&original, SECRET));
        let prepared = normal(&media(&original), &MediaCapabilities::default()).unwrap();
        let stripped = bytes(&prepared);
        assert_eq!(prepared.steps, [Step::Stripped], "{}", prepared.media_type);
        assert!(!contains(&stripped, SECRET), "{}", prepared.media_type);
        assert!(decoded(&stripped) == decoded(&original), "{}", prepared.media_type);
        assert_eq!(profile_of(&stripped), Some(profile()), "{}", prepared.media_type);
    }
}

#[test]
fn stripping_is_idempotent() {
    for original in [jpeg(1), png(), webp(), gif()] {
        let once = normal(&media(&original), &MediaCapabilities::default()).unwrap();
        let twice = normal(&media(&bytes(&once)), &MediaCapabilities::default()).unwrap();
        assert!(twice.steps.is_empty());
        assert!(bytes(&once) == bytes(&twice));
    }
}

#[test]
fn metadata_stays_if_the_rules_allow_it() {
    let rules = MediaRules { strip_metadata: false, ..MediaRules::default() };
    for original in [jpeg(6), png(), webp()] {
        let prepared = normalise(&media(&original), &MediaCapabilities::default(), &rules).unwrap();
        assert!(bytes(&prepared) == original && prepared.steps.is_empty());
    }
}

#[test]
fn gif_keeps_the_first_frame() {
    let original = gif();
    let prepared = normal(&media(&original), &MediaCapabilities::default()).unwrap();
    let first = bytes(&prepared);
    assert_eq!((prepared.media_type, &prepared.steps[..]), ("image/gif", &[Step::FirstFrame][..]));
    assert!(first.len() < original.len() && !contains(&first, SECRET) && !contains(&first, b"NETSCAPE"));
    assert!(decoded(&first) == decoded(&original));
}

#[test]
fn animation_keeps_the_first_frame() {
    for original in [moving_webp(0), moving_png()] {
        let moving = media(&original);
        assert_eq!(moving.info().frames, Some(2));
        let rules = MediaRules { strip_metadata: false, ..MediaRules::default() };
        for (rules, has_metadata) in [(MediaRules::default(), false), (rules, true)] {
            let prepared = normalise(&moving, &MediaCapabilities::default(), &rules).unwrap();
            let first = bytes(&prepared);
            assert_eq!(
                (prepared.media_type, &prepared.steps[..]),
                (moving.media_type(), &[Step::FirstFrame][..])
            );
            assert_eq!((media(&first).info().frames, contains(&first, SECRET)), (None, has_metadata));
            assert!(decoded(&first) == decoded(&original));
        }
    }
}

#[test]
fn partial_first_frame_is_re_encoded() {
    let original = moving_webp(6);
    let prepared = normal(&media(&original), &MediaCapabilities::default()).unwrap();
    assert_eq!((prepared.media_type, &prepared.steps[..]), ("image/webp", &[Step::FirstFrame][..]));
    let first = decoded(&bytes(&prepared));
    assert_eq!((first.width(), first.height()), (16, 8));
}

#[test]
fn first_frame_without_pixels_is_an_error() {
    let mut original = moving_webp(0);
    let pixels = memchr::memmem::find(&original, b"VP8L").unwrap();
    original[pixels + 2] = b'0';
    let mut store = Store::with_limit(1 << 20);
    store.push(&original).unwrap();
    let error = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default()).unwrap_err();
    assert_eq!(error.code(), cog_spec::Code::MediaDecodeFailed, "{error}");
}

#[test]
fn extended_header_of_another_size_is_an_error() {
    let mut original = moving_webp(0);
    let header = memchr::memmem::find(&original, b"VP8X").unwrap();
    original[header + 4] = 9;
    let mut store = Store::with_limit(1 << 20);
    store.push(&original).unwrap();
    let error = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default()).unwrap_err();
    assert_eq!(error.code(), cog_spec::Code::MediaDecodeFailed, "{error}");
}

#[test]
fn image_with_one_frame_is_not_animated() {
    for still in [jpeg(1), png(), webp()] {
        assert_eq!(media(&still).info().frames, None);
    }
    assert_eq!(media(&gif()).info().frames, Some(3));
    let without_trailer = gif();
    assert_eq!(media(&without_trailer[..without_trailer.len() - 1]).info().frames, Some(3));
}

#[test]
fn applies_the_orientation_of_metadata() {
    let prepared = normal(&media(&jpeg(6)), &MediaCapabilities::default()).unwrap();
    let turned = bytes(&prepared);
    assert_eq!(prepared.steps, [Step::Oriented]);
    assert_eq!((decoded(&turned).width(), decoded(&turned).height()), (30, 40));
    assert!(!contains(&turned, SECRET) && !contains(&turned, b"Exif"));
    assert_eq!(profile_of(&turned), Some(profile()));
    let upright = decoded(&turned).to_rgb8();
    let expected = decoded(&jpeg(1)).rotate90().to_rgb8();
    let differs = |(a, b): (&u8, &u8)| a.abs_diff(*b) > 24;
    let far = upright.as_raw().iter().zip(expected.as_raw()).filter(|pair| differs(*pair)).count();
    assert!(far * 100 < upright.as_raw().len(), "{far} values are far off");
}

#[test]
fn applies_the_rotation_of_the_source() {
    let input = cog_json::Value::parse(r#"{"type":"file","path":"a","rotation":90}"#).unwrap();
    let source = MediaSource::read(&input, input.node()).unwrap();
    let prepared =
        normal(&checked(&png(), &MediaDeclaration::from_source(&source)), &MediaCapabilities::default())
            .unwrap();
    assert_eq!((prepared.media_type, &prepared.steps[..]), ("image/png", &[Step::Rotated][..]));
    assert!(decoded(&bytes(&prepared)).to_rgb8() == image::imageops::rotate90(&drawing(40, 30)));
    assert!(matches!(source.location, MediaLocation::File(_)));
}

#[test]
fn oversized_profile_is_dropped_when_re_encoding() {
    let input = cog_json::Value::parse(r#"{"type":"file","path":"a","rotation":90}"#).unwrap();
    let source = MediaSource::read(&input, input.node()).unwrap();
    for (length, stays) in [(1 << 20, true), (20 << 20, false)] {
        let mut large = profile();
        large.resize(length, 0);
        let mut bomb = Vec::new();
        let mut encoder = PngEncoder::new(&mut bomb);
        encoder.set_icc_profile(large).unwrap();
        encoder.write_image(&drawing(40, 30), 40, 30, ExtendedColorType::Rgb8).unwrap();
        let prepared =
            normal(&checked(&bomb, &MediaDeclaration::from_source(&source)), &MediaCapabilities::default())
                .unwrap();
        assert_eq!(profile_of(&bytes(&prepared)).is_some(), stays, "{length}");
    }
}

#[test]
fn scales_an_image_to_the_size_limit() {
    let capabilities = MediaCapabilities { max_dimension: Some(20), ..MediaCapabilities::default() };
    let prepared = normal(&media(&jpeg(1)), &capabilities).unwrap();
    let small = decoded(&bytes(&prepared));
    assert_eq!((small.width(), small.height(), &prepared.steps[..]), (20, 15, &[Step::Scaled][..]));
    let capabilities = MediaCapabilities { max_bytes: Some(900), ..MediaCapabilities::default() };
    let prepared = normal(&media(&png()), &capabilities).unwrap();
    assert!((450..=900).contains(&prepared.stored.len()), "{}", prepared.stored.len());
    let capabilities = MediaCapabilities { max_bytes: Some(10), ..MediaCapabilities::default() };
    assert!(matches!(normal(&media(&png()), &capabilities), Err(MediaError::TooLarge { limit: 10 })));
}

#[test]
fn converts_to_a_supported_type() {
    for (original, supported, expected) in [
        (gif(), vec!["image/jpeg", "image/png"], "image/png"),
        (webp(), vec!["image/jpeg", "image/png"], "image/png"),
        (png(), vec!["image/jpeg"], "image/jpeg"),
    ] {
        let capabilities = MediaCapabilities { media_types: supported, ..MediaCapabilities::default() };
        let prepared = normal(&media(&original), &capabilities).unwrap();
        assert_eq!(prepared.media_type, expected);
        assert!(prepared.steps.contains(&Step::Converted));
        assert!(decoded(&bytes(&prepared)).width() == decoded(&original).width());
    }
    let capabilities = MediaCapabilities { media_types: Vec::new(), ..MediaCapabilities::default() };
    let refused = normal(&media(&png()), &capabilities).unwrap_err();
    assert_eq!(refused.code(), cog_spec::Code::MultimodalNotSupported);
}

#[test]
fn transparent_image_gets_a_white_background() {
    let mut clear = Vec::new();
    let pixels = RgbaImage::from_pixel(2, 2, image::Rgba([0, 0, 0, 0]));
    PngEncoder::new(&mut clear).write_image(&pixels, 2, 2, ExtendedColorType::Rgba8).unwrap();
    let capabilities = MediaCapabilities { media_types: vec!["image/jpeg"], ..MediaCapabilities::default() };
    let prepared = normal(&media(&clear), &capabilities).unwrap();
    assert!(decoded(&bytes(&prepared)).to_rgb8().as_raw().iter().all(|value| *value > 250));
}

#[test]
fn truncated_image_is_refused() {
    for original in [jpeg(1), png(), webp(), moving_webp(0), moving_png()] {
        // Bytes after the end may be missing.
        let end = original.len() - if original.ends_with(SECRET) { SECRET.len() } else { 0 };
        for cut in [end / 4, end / 2, end - 1] {
            let mut store = Store::with_limit(1 << 20);
            store.push(&original[..cut]).unwrap();
            let refused = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default());
            assert_eq!(refused.unwrap_err().code(), cog_spec::Code::MediaDecodeFailed, "{cut}");
        }
    }
}

#[test]
fn gif_that_ends_inside_a_frame_is_refused() {
    let original = gif();
    for missing in [2, 3, 30] {
        let mut store = Store::with_limit(1 << 20);
        store.push(&original[..original.len() - missing]).unwrap();
        let refused = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default());
        assert_eq!(refused.unwrap_err().code(), cog_spec::Code::MediaDecodeFailed, "{missing}");
    }
}

#[test]
fn webp_with_exif_that_begins_like_that_of_jpeg_is_turned() {
    let original = lossless_webp([b"Exif\0\0".as_slice(), &exif(6)].concat());
    let prepared = normal(&media(&original), &MediaCapabilities::default()).unwrap();
    assert_eq!(prepared.steps[0], Step::Oriented);
    assert!(decoded(&bytes(&prepared)).to_rgb8() == decoded(&original).rotate90().to_rgb8());
}

fn lossless_webp(exif: Vec<u8>) -> Vec<u8> {
    let mut original = Vec::new();
    let mut encoder = WebPEncoder::new_lossless(&mut original);
    encoder.set_exif_metadata(exif).unwrap();
    encoder.write_image(&drawing(41, 31), 41, 31, ExtendedColorType::Rgb8).unwrap();
    original
}

#[test]
fn lossless_webp_stays_lossless() {
    let original = lossless_webp(exif(6));
    for media_types in [vec!["image/jpeg", "image/png", "image/webp"], vec!["image/jpeg", "image/png"]] {
        let target = *media_types.last().unwrap();
        let capabilities = MediaCapabilities { media_types, ..MediaCapabilities::default() };
        let prepared = normal(&media(&original), &capabilities).unwrap();
        let upright = bytes(&prepared);
        assert_eq!((prepared.media_type, prepared.steps[0]), (target, Step::Oriented));
        assert!(decoded(&upright).to_rgb8() == decoded(&original).rotate90().to_rgb8());
        assert!(!contains(&upright, SECRET));
    }
}

#[test]
fn bytes_between_the_segments_of_a_jpeg_are_skipped() {
    let original = jpeg(1);
    let pixels = decoded(&original);
    // Before the tables, with a byte that looks like the start of a marker.
    for stray in [&b"\0\0"[..], b"12345\xff\0", b"\xff\xff"] {
        let mut bytes_with = original.clone();
        let tables = memchr::memmem::find(&bytes_with, b"\xff\xdb").unwrap();
        bytes_with.splice(tables..tables, stray.iter().copied());
        let prepared = normal(&media(&bytes_with), &MediaCapabilities::default()).unwrap();
        assert!(decoded(&bytes(&prepared)) == pixels, "{stray:x?}");
        assert!(!contains(&bytes(&prepared), SECRET));
    }
}

fn pixels_of(bytes: &[u8]) -> Result<Option<&'static str>, MediaError> {
    check_pixels(&media(bytes), &MediaRules::default())
}

#[test]
fn pixels_are_there_or_the_image_is_refused() {
    for complete in [jpeg(1), png(), webp(), gif(), moving_webp(0), moving_png()] {
        assert_eq!(pixels_of(&complete).unwrap(), None);
    }
    // The checksum of the data is right, and so is the length.
    let mut original = png();
    let at = memchr::memmem::find(&original, b"IDAT").unwrap();
    let length = usize::try_from(u32::from_be_bytes(original[at - 4..at].try_into().unwrap())).unwrap();
    original[at + 4..at + 4 + length].fill(0x55);
    let crc = crc32fast::hash(&original[at..at + 4 + length]).to_be_bytes();
    original[at + 4 + length..at + 8 + length].copy_from_slice(&crc);
    assert!(matches!(pixels_of(&original), Err(MediaError::Damaged { .. })));
}

#[test]
fn jpeg_that_ends_early_is_noted() {
    let noise: RgbImage = RgbImage::from_fn(200, 200, |x, y| {
        let value = x.wrapping_mul(2_654_435_761).rotate_left(y % 31) ^ y.wrapping_mul(40_503);
        image::Rgb(value.to_le_bytes()[..3].try_into().unwrap())
    });
    let mut complete = Vec::new();
    JpegEncoder::new(&mut complete).write_image(&noise, 200, 200, ExtendedColorType::Rgb8).unwrap();
    assert_eq!(pixels_of(&complete).unwrap(), None);
    for tenth in [3, 6, 9] {
        let cut = [&complete[..complete.len() / 10 * tenth], b"\xff\xd9"].concat();
        assert!(pixels_of(&cut).unwrap().is_some(), "{tenth}");
    }
}

#[test]
fn png_with_a_wrong_checksum_is_refused() {
    for kind in [b"IHDR", b"IDAT", b"IEND"] {
        let mut original = png();
        let at = memchr::memmem::find(&original, kind).unwrap();
        let length = u32::from_be_bytes(original[at - 4..at].try_into().unwrap());
        original[at + 4 + usize::try_from(length).unwrap()] ^= 1;
        let mut store = Store::with_limit(1 << 20);
        store.push(&original).unwrap();
        let refused = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default());
        assert_eq!(refused.unwrap_err().code(), cog_spec::Code::MediaDecodeFailed, "{kind:?}");
    }
}

#[test]
fn truncated_or_changed_image_returns_an_error_or_a_result() {
    let capabilities = MediaCapabilities { max_dimension: Some(16), ..MediaCapabilities::default() };
    for original in [jpeg(6), png(), webp(), gif(), moving_webp(0), moving_png()] {
        let truncations = (0..original.len()).map(|end| original[..end].to_vec());
        let changes = (0..original.len()).map(|at| {
            let mut changed = original.clone();
            changed[at] ^= 0xA5;
            changed
        });
        for bytes in truncations.chain(changes) {
            let mut store = Store::with_limit(1 << 20);
            store.push(&bytes).unwrap();
            let Ok(media) = check_now(store.finish(), &MediaDeclaration::default(), &MediaRules::default())
            else {
                continue;
            };
            for capabilities in [&MediaCapabilities::default(), &capabilities] {
                assert!(!matches!(normal(&media, capabilities), Err(MediaError::Storage(_))));
            }
        }
    }
}
