//! `cog media strip` on images with every kind of metadata that their formats allow, and with trailing bytes.
//! Everything is removed, and the pixels are equal.

#![expect(clippy::disallowed_methods, reason = "images that are made here")]

use crate::metadata::{done, metadata_of, pixels_that_differ};

/// The content of every part.
const SECRET: &[u8] = b"at home of Jo Doe";

/// Its length as a byte.
const LENGTH: u8 = 17;

#[test]
fn removes_every_metadata_segment_of_a_jpeg() {
    let named = [
        segment(0xe0, b"JFXX\0\x10"),
        segment(0xe1, b"Exif\0\0MM\0*"),
        segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0"),
        segment(0xe1, &[&b"http://ns.adobe.com/xmp/extension/\0"[..], &[b'A'; 40]].concat()),
        segment(0xe2, b"MPF\0MM\0*"),
        segment(0xe2, b"FPXR\0"),
        segment(0xed, b"Photoshop 3.0\08BIM"),
        segment(0xed, b"Adobe_CM\0"),
        segment(0xfe, b""),
    ];
    let unnamed = (0xe0..=0xef).map(|code| segment(code, b"Mine\0"));
    let parts: Vec<u8> = unnamed.chain(named).flatten().collect();
    for options in [&[][..], &["-interlace", "JPEG"]] {
        nothing_is_left("jpg", options, |bytes| drop(bytes.splice(2..2, parts.iter().copied())));
    }
}

#[test]
fn removes_every_metadata_chunk_of_a_png() {
    let before = [
        chunk(b"tEXt", b"Author\0"),
        chunk(b"zTXt", b"Author\0\0"),
        chunk(b"iTXt", b"Author\0\0\0en\0\0"),
        chunk(b"eXIf", b"MM\0*\0\0\0\x08"),
        chunk(b"sPLT", b"Mine\0\x08"),
        chunk(b"tIME", b""),
        chunk(b"prVt", b""),
    ];
    let behind = [chunk(b"tEXt", b"Comment\0"), chunk(b"eXIf", b"II*\0\x08\0\0\0")];
    nothing_is_left("png", &[], |bytes| {
        bytes.splice(bytes.len() - 12..bytes.len() - 12, behind.concat());
        bytes.splice(33..33, before.concat());
    });
}

#[test]
fn removes_every_metadata_chunk_of_a_webp() {
    let part = |kind: &[u8]| [kind, &[LENGTH + 1, 0, 0, 0], SECRET, &[0]].concat();
    let parts = [part(b"EXIF"), part(b"XMP "), part(b"MINE")].concat();
    for options in [&[][..], &["-define", "webp:lossless=true"]] {
        nothing_is_left("webp", options, |bytes| {
            // The extended format, for an image of 70 by 46 pixels.
            bytes.splice(12..12, b"VP8X\x0a\0\0\0\x0c\0\0\0\x45\0\0\x2d\0\0".iter().copied());
            bytes.extend(&parts);
            let length = u32::try_from(bytes.len() - 8).unwrap().to_le_bytes();
            bytes[4..8].copy_from_slice(&length);
        });
    }
}

#[test]
fn removes_every_metadata_block_of_a_gif() {
    let block = |head: &[u8]| [head, &[LENGTH], SECRET, b"\0"].concat();
    let parts = [
        block(b"!\xfe"),
        block(b"!\x01\x0c\0\0\0\0\x01\0\x01\0\x01\x01\0\0"),
        block(b"!\xff\x0bXMP DataXMP"),
        block(b"!\xff\x0bMine    1.0"),
    ];
    nothing_is_left("gif", &[], |bytes| {
        let table = if bytes[10] & 0x80 == 0 { 0 } else { 3 << ((bytes[10] & 7) + 1) };
        bytes.splice(13 + table..13 + table, parts.concat());
    });
}

/// Hides the secret in an image and after its end, strips the image, and searches for the secret.
fn nothing_is_left(ending: &str, options: &[&str], hide: impl FnOnce(&mut Vec<u8>)) {
    let directory = tempfile::tempdir().unwrap();
    let (whole, clean) = (format!("whole.{ending}"), format!("clean.{ending}"));
    done(directory.path(), "/usr/bin/convert", &[&["rose:", "-strip"], options, &[whole.as_str()]].concat());
    let mut bytes = std::fs::read(directory.path().join(&whole)).unwrap();
    hide(&mut bytes);
    bytes.extend(SECRET);
    std::fs::write(directory.path().join(&whole), &bytes).unwrap();
    done(directory.path(), env!("CARGO_BIN_EXE_cog"), &["media", "strip", &whole, "-o", &clean]);
    let stripped = std::fs::read(directory.path().join(&clean)).unwrap();
    assert!(!stripped.windows(SECRET.len()).any(|window| window == SECRET), "{ending} {options:?}");
    let found = metadata_of(directory.path(), &clean);
    assert!(found.is_empty(), "{ending} {options:?}: {found:?}");
    assert_eq!(pixels_that_differ(directory.path(), &whole, &clean), "0", "{ending} {options:?}");
}

/// A part of a JPEG.
fn segment(code: u8, name: &[u8]) -> Vec<u8> {
    let length = u16::try_from(2 + name.len() + SECRET.len()).unwrap();
    [&[0xff, code], &length.to_be_bytes()[..], name, SECRET].concat()
}

/// A part of a PNG.
fn chunk(kind: &[u8], name: &[u8]) -> Vec<u8> {
    let body = [kind, name, SECRET].concat();
    let length = u32::try_from(body.len() - 4).unwrap();
    [&length.to_be_bytes()[..], &body, &crc32fast::hash(&body).to_be_bytes()].concat()
}
