use std::io::{Cursor, Read as _};

use image::{
    DynamicImage, ExtendedColorType, Frame, ImageDecoder as _, ImageEncoder as _, ImageReader, RgbImage,
    RgbaImage,
    codecs::{gif::GifEncoder, jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
};

use super::*;
use crate::{Expected, MediaSource, Place, Store, check::check_now};

/// What must not come through.
const SECRET: &[u8] = b"51.5007N 0.1246W";

fn drawing(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 7 % 256) as u8, (y * 5 % 256) as u8, ((x + y) * 3 % 256) as u8])
    })
}

/// A profile of colours as far as anybody here looks at it.
fn profile() -> Vec<u8> {
    let mut profile = vec![0; 128];
    profile[16..20].copy_from_slice(b"RGB ");
    profile
}

/// Exif that says how the picture is turned, and a secret.
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

/// A JPEG with everything that a telephone and an agency put into one.
fn jpeg(orientation: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = drawing(40, 30);
    let mut encoder = JpegEncoder::new(&mut bytes);
    encoder.set_icc_profile(profile()).unwrap();
    encoder.write_image(&image, 40, 30, ExtendedColorType::Rgb8).unwrap();
    let told = [
        segment(0xE1, &[b"Exif\0\0".as_slice(), &exif(orientation)].concat()),
        segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0".as_slice(), SECRET].concat()),
        segment(0xE2, &[b"MPF\0".as_slice(), SECRET].concat()),
        segment(0xED, &[b"Photoshop 3.0\0".as_slice(), SECRET].concat()),
        segment(0xFE, SECRET),
    ];
    bytes.splice(2..2, told.concat());
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

fn media(bytes: &[u8]) -> Media {
    checked(bytes, &Expected::default())
}

fn checked(bytes: &[u8], expected: &Expected) -> Media {
    let mut store = Store::within(1 << 30);
    store.push(bytes).unwrap();
    check_now(store.finish(), expected, &MediaRules::default()).unwrap()
}

fn bytes(prepared: &Prepared) -> Vec<u8> {
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

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

fn normal(media: &Media, takes: &Takes) -> Result<Prepared, MediaError> {
    normalise(media, takes, &MediaRules::default())
}

#[test]
fn metadata_go_and_pixels_and_their_colours_stay() {
    for original in [jpeg(1), png(), webp()] {
        assert!(holds(&original, SECRET));
        let prepared = normal(&media(&original), &Takes::default()).unwrap();
        let stripped = bytes(&prepared);
        assert_eq!(prepared.steps, [Step::Stripped], "{}", prepared.media_type);
        assert!(!holds(&stripped, SECRET), "{}", prepared.media_type);
        assert!(decoded(&stripped) == decoded(&original), "{}", prepared.media_type);
        assert_eq!(profile_of(&stripped), Some(profile()), "{}", prepared.media_type);
    }
}

#[test]
fn what_was_stripped_is_stripped_no_further() {
    for original in [jpeg(1), png(), webp(), gif()] {
        let once = normal(&media(&original), &Takes::default()).unwrap();
        let twice = normal(&media(&bytes(&once)), &Takes::default()).unwrap();
        assert!(twice.steps.is_empty());
        assert!(bytes(&once) == bytes(&twice));
    }
}

#[test]
fn metadata_stay_where_the_rules_keep_them() {
    let keep = MediaRules { strip_metadata: false, ..MediaRules::default() };
    for original in [jpeg(6), png(), webp()] {
        let prepared = normalise(&media(&original), &Takes::default(), &keep).unwrap();
        assert!(bytes(&prepared) == original && prepared.steps.is_empty());
    }
}

#[test]
fn of_a_gif_the_first_frame_is_left() {
    let original = gif();
    let prepared = normal(&media(&original), &Takes::default()).unwrap();
    let first = bytes(&prepared);
    assert_eq!((prepared.media_type, &prepared.steps[..]), ("image/gif", &[Step::FirstFrame][..]));
    assert!(first.len() < original.len() && !holds(&first, SECRET) && !holds(&first, b"NETSCAPE"));
    assert!(decoded(&first) == decoded(&original));
}

#[test]
fn a_picture_that_its_metadata_turn_is_turned() {
    let prepared = normal(&media(&jpeg(6)), &Takes::default()).unwrap();
    let turned = bytes(&prepared);
    assert_eq!(prepared.steps, [Step::Oriented]);
    assert_eq!((decoded(&turned).width(), decoded(&turned).height()), (30, 40));
    assert!(!holds(&turned, SECRET) && !holds(&turned, b"Exif"));
    assert_eq!(profile_of(&turned), Some(profile()));
    let (upright, expected) = (decoded(&turned).to_rgb8(), decoded(&jpeg(1)).rotate90().to_rgb8());
    let differs = |(a, b): (&u8, &u8)| a.abs_diff(*b) > 24;
    let far = upright.as_raw().iter().zip(expected.as_raw()).filter(|pair| differs(*pair)).count();
    assert!(far * 100 < upright.as_raw().len(), "{far} values are far off");
}

#[test]
fn a_picture_that_its_source_turns_is_turned() {
    let input = cog_json::Value::parse(r#"{"type":"file","path":"a","rotation":90}"#).unwrap();
    let source = MediaSource::read(&input, input.node()).unwrap();
    let prepared = normal(&checked(&png(), &Expected::of(&source)), &Takes::default()).unwrap();
    assert_eq!((prepared.media_type, &prepared.steps[..]), ("image/png", &[Step::Rotated][..]));
    assert!(decoded(&bytes(&prepared)).to_rgb8() == image::imageops::rotate90(&drawing(40, 30)));
    assert!(matches!(source.place, Place::File(_)));
}

#[test]
fn a_picture_is_made_as_small_as_the_provider_takes_it() {
    let takes = Takes { max_dimension: Some(20), ..Takes::default() };
    let prepared = normal(&media(&jpeg(1)), &takes).unwrap();
    let small = decoded(&bytes(&prepared));
    assert_eq!((small.width(), small.height(), &prepared.steps[..]), (20, 15, &[Step::Scaled][..]));
    let takes = Takes { max_bytes: Some(900), ..Takes::default() };
    let prepared = normal(&media(&png()), &takes).unwrap();
    assert!(prepared.stored.len() <= 900);
    let takes = Takes { max_bytes: Some(10), ..Takes::default() };
    assert!(matches!(normal(&media(&png()), &takes), Err(MediaError::TooLarge { limit: 10 })));
}

#[test]
fn what_a_provider_lacks_is_made_what_it_has() {
    for (original, taken, made) in [
        (gif(), vec!["image/jpeg", "image/png"], "image/png"),
        (webp(), vec!["image/jpeg", "image/png"], "image/jpeg"),
        (png(), vec!["image/jpeg"], "image/jpeg"),
    ] {
        let takes = Takes { media_types: taken, ..Takes::default() };
        let prepared = normal(&media(&original), &takes).unwrap();
        assert_eq!(prepared.media_type, made);
        assert!(prepared.steps.contains(&Step::Converted));
        assert!(decoded(&bytes(&prepared)).width() == decoded(&original).width());
    }
    let takes = Takes { media_types: Vec::new(), ..Takes::default() };
    let refused = normal(&media(&png()), &takes).unwrap_err();
    assert_eq!(refused.code(), cog_spec::Code::MultimodalNotSupported);
}

#[test]
fn what_can_be_seen_through_stands_on_white() {
    let mut clear = Vec::new();
    let pixels = RgbaImage::from_pixel(2, 2, image::Rgba([0, 0, 0, 0]));
    PngEncoder::new(&mut clear).write_image(&pixels, 2, 2, ExtendedColorType::Rgba8).unwrap();
    let takes = Takes { media_types: vec!["image/jpeg"], ..Takes::default() };
    let prepared = normal(&media(&clear), &takes).unwrap();
    assert!(decoded(&bytes(&prepared)).to_rgb8().as_raw().iter().all(|value| *value > 250));
}

#[test]
fn every_cut_and_every_changed_byte_is_an_answer() {
    let takes = Takes { max_dimension: Some(16), ..Takes::default() };
    for original in [jpeg(6), png(), webp(), gif()] {
        let cuts = (0..original.len()).map(|end| original[..end].to_vec());
        let changes = (0..original.len()).map(|at| {
            let mut changed = original.clone();
            changed[at] ^= 0xA5;
            changed
        });
        for bytes in cuts.chain(changes) {
            let mut store = Store::within(1 << 20);
            store.push(&bytes).unwrap();
            let Ok(media) = check_now(store.finish(), &Expected::default(), &MediaRules::default()) else {
                continue;
            };
            for takes in [&Takes::default(), &takes] {
                assert!(!matches!(normal(&media, takes), Err(MediaError::Storage(_))));
            }
        }
    }
}
