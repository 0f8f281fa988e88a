//! Pictures in HEIF and AVIF files: the whole of them, as they are displayed, or a refusal.

use cog_media::{Media, MediaDeclaration, MediaError, MediaRules, check};
use image::RgbImage;

use crate::{
    convert::converter,
    files::{refusal, stored, wait},
    heif::{Item, Reference, alpha, cropped, file, file_with, grid, mirrored, rotated, size},
    samples::generate,
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    picture_is_transformed_for_display,
    picture_has_all_its_tiles_or_is_refused,
    another_picture_of_the_file_is_refused,
    transparent_picture_is_refused,
    picture_is_checked_before_it_is_decoded,
];

const REFUSED: &str = "E1010 image/avif is not supported here";

/// Returns an item: a picture of this size with this colour, whose components are expressions.
fn picture(width: u32, height: u32, colour: &str, mut properties: Vec<Vec<u8>>) -> Item {
    let bytes = generate(&format!(
        "-an -frames:v 1 -vf scale={width}:{height},geq={colour},format=yuv420p -c:v libaom-av1 -cpu-used 8 \
         -still-picture 1 a.avif"
    ));
    let part = |kind: &[u8]| {
        let at = bytes.windows(4).position(|window| window == kind).unwrap() - 4;
        let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + usize::try_from(length).unwrap()].to_vec()
    };
    properties.splice(0..0, [size(width, height), part(b"av1C")]);
    Item { kind: *b"av01", data: part(b"mdat")[8..].to_vec(), properties }
}

/// Returns an item whose corners have different colours: yellow and green at the top, red and black at the bottom.
fn corners(properties: Vec<Vec<u8>>) -> Item {
    picture(96, 64, "r='255*lt(X,W/2)':g='255*lt(Y,H/2)':b=0", properties)
}

fn opened(bytes: &[u8]) -> Result<Media, MediaError> {
    wait(check(stored(bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&converter())))
}

/// Returns the size of the converted picture, and the colours of its corners, from the top left.
fn seen(media: &Media) -> ((u32, u32), String) {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut media.bytes().reader(), &mut bytes).unwrap();
    let image: RgbImage = image::load_from_memory(&bytes).unwrap().to_rgb8();
    let (right, bottom) = (image.width() - 4, image.height() - 4);
    let corners = [(3, 3), (right, 3), (3, bottom), (right, bottom)];
    let name = |(x, y): (u32, u32)| match image.get_pixel(x, y).0.map(|part| part > 127) {
        [true, true, false] => 'y',
        [false, true, false] => 'g',
        [true, false, false] => 'r',
        [false, false, false] => 'k',
        [false, false, true] => 'b',
        _ => '?',
    };
    (image.dimensions(), corners.map(name).iter().collect())
}

fn picture_is_transformed_for_display() {
    for (properties, expected) in [
        (vec![], ((96, 64), "ygrk")),
        (vec![rotated(1)], ((64, 96), "gkyr")),
        (vec![rotated(2)], ((96, 64), "krgy")),
        (vec![rotated(3)], ((64, 96), "rykg")),
        (vec![mirrored(0)], ((96, 64), "rkyg")),
        (vec![mirrored(1)], ((96, 64), "gykr")),
        // The order of the properties is the order of the changes.
        (vec![rotated(1), mirrored(0)], ((64, 96), "yrgk")),
        (vec![mirrored(0), rotated(1)], ((64, 96), "kgry")),
        (vec![cropped(33, 31, -63, -33)], ((33, 31), "yyyy")),
        (vec![cropped(40, 64, 0, 0), rotated(3), mirrored(1)], ((64, 40), "yrgk")),
    ] {
        let media = opened(&file(b"avif", &[corners(properties.clone())], 1, &[])).unwrap();
        let (found, colours) = seen(&media);
        assert_eq!((found, colours.as_str()), expected, "{properties:x?}");
        assert_eq!((media.info().width, media.info().height), (Some(expected.0.0), Some(expected.0.1)));
    }
    let outside = file(b"avif", &[corners(vec![cropped(96, 64, 2, 0)])], 1, &[]);
    assert!(refusal(opened(&outside)).starts_with(REFUSED));
}

/// Versions of ffmpeg that know the tiles of AVIF return the whole picture, others are not asked for a part of it.
fn picture_has_all_its_tiles_or_is_refused() {
    let colours = ["r=255:g=255:b=0", "r=0:g=255:b=0", "r=255:g=0:b=0", "r=0:g=0:b=0"];
    let mut items: Vec<_> = colours.iter().map(|colour| picture(64, 64, colour, vec![])).collect();
    for (properties, expected) in
        [(vec![], ((120, 100), "ygrk")), (vec![rotated(3), mirrored(1)], ((100, 120), "yrgk"))]
    {
        items.truncate(4);
        items.push(grid(2, 2, 120, 100, properties));
        match opened(&file(b"avif", &items, 5, &[1, 2, 3, 4])) {
            Ok(media) => assert_eq!(seen(&media), (expected.0, expected.1.to_owned())),
            Err(error) => {
                assert_eq!(error.suggestion(), "Convert it with `avifdec IN.avif OUT.png`.");
                assert!(refusal::<()>(Err(error)).starts_with(REFUSED));
            }
        }
    }
    for tiles in [&[1, 2, 3][..], &[1, 2, 3, 9], &[1, 2, 3, 5]] {
        assert!(refusal(opened(&file(b"avif", &items, 5, tiles))).starts_with(REFUSED), "{tiles:?}");
    }
}

fn another_picture_of_the_file_is_refused() {
    // A smaller picture under the number of the primary one.
    let mut small = corners(vec![]);
    small.properties[0] = size(192, 128);
    assert!(refusal(opened(&file(b"avif", &[small.clone()], 1, &[]))).starts_with(REFUSED));
    // Cropping would hide the difference.
    small.properties.push(cropped(40, 40, 0, 0));
    assert!(refusal(opened(&file(b"avif", &[small], 1, &[]))).starts_with(REFUSED));
    // There is no primary picture.
    assert!(refusal(opened(&file(b"avif", &[corners(vec![])], 2, &[]))).starts_with(REFUSED));
    // It is not the first one.
    let thumbnail = picture(64, 64, "r=255:g=0:b=0", vec![]);
    let second = file(b"avif", &[thumbnail, corners(vec![])], 2, &[]);
    assert_eq!(seen(&opened(&second).unwrap()), ((96, 64), "ygrk".to_owned()));
}

fn transparent_picture_is_refused() {
    let refused = "E1010 image/avif with transparency is not supported here";
    let mask = |properties| picture(96, 64, "r=255:g=255:b=255", properties);
    let file_of = |mask: Item, kind: &[u8; 4]| {
        file_with(b"avif", &[corners(vec![]), mask], 1, &Reference { kind, from: 2, to: &[1] })
    };
    let error = opened(&file_of(mask(vec![alpha()]), b"auxl")).unwrap_err();
    assert_eq!(error.suggestion(), "Convert it with `avifdec IN.avif OUT.png`.");
    assert!(refusal::<()>(Err(error)).starts_with(refused));
    // A depth map, or a thumbnail, leaves the picture as it is.
    for other in [file_of(mask(vec![]), b"auxl"), file_of(mask(vec![alpha()]), b"thmb")] {
        assert_eq!(seen(&opened(&other).unwrap()), ((96, 64), "ygrk".to_owned()));
    }
}

fn picture_is_checked_before_it_is_decoded() {
    let mut large = corners(vec![]);
    large.properties[0] = size(9000, 10);
    let error = refusal(opened(&file(b"avif", &[large], 1, &[])));
    assert_eq!(error, "E1015 9000×10 pixels; the maximum side length is 8192");
}
