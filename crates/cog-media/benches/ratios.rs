//! Measures checking and stripping of media files as ratios, which are independent of the machine.
//!
//! `cargo bench -p cog-media` prints one line per ratio with its bound, and fails if a bound is missed.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark creates its files, prints its table, and panics if it cannot run"
)]

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use base64_simd::STANDARD;
use cog_media::{
    FileGuard, Media, MediaCapabilities, MediaDeclaration, MediaRules, Store, Stored, check, decode_base64,
    normalise,
};
use image::{
    ExtendedColorType, ImageEncoder as _,
    codecs::{jpeg::JpegEncoder, png::PngEncoder},
};
use sha2::{Digest as _, Sha256};

const ROUNDS: usize = 30;

fn main() -> ExitCode {
    let directory = tempfile::tempdir().expect("a directory for files");
    let met = [large_base64(), headers(directory.path()), stripped(directory.path())];
    if met.iter().all(|met| *met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares checking a PNG of 20 MB from base64 with decoding and hashing it.
fn large_base64() -> bool {
    let text = STANDARD.encode_to_string(png(2600));
    let rules = MediaRules::default();
    let ours = || {
        black_box(checked(decode_base64(&text, Store::with_limit(20 << 20)).expect("base64"), &rules));
    };
    let theirs = || {
        let bytes = STANDARD.decode_to_vec(&text).expect("base64");
        black_box((Sha256::digest(&bytes), bytes));
    };
    compare("20 MB PNG: base64 to checked ÷ base64-simd and SHA-256", ours, theirs, 2.0)
}

/// Compares reading the headers of a thousand images with reading their files.
fn headers(directory: &Path) -> bool {
    let paths: Vec<PathBuf> = (0..1000).map(|at| directory.join(format!("{at}.jpg"))).collect();
    let (jpeg, png) = (jpeg(600), png(180));
    for (at, path) in paths.iter().enumerate() {
        std::fs::write(path, if at % 2 == 0 { &jpeg } else { &png }).expect("a file");
    }
    let guard = FileGuard::new([directory.to_owned()]);
    let rules = MediaRules::default();
    let open = |path: &PathBuf| guard.open(path, Store::with_limit(20 << 20)).expect("a file");
    let stored: Vec<Stored> = paths.iter().map(open).collect();
    let ours = || stored.iter().for_each(|stored| drop(black_box(checked(stored.clone(), &rules))));
    let theirs = || paths.iter().for_each(|path| drop(black_box(std::fs::read(path).expect("a file"))));
    compare("1,000 images of 100 KB: headers probed ÷ files read", ours, theirs, 3.0)
}

/// Compares removing metadata from a JPEG of 5 MB with copying the file.
fn stripped(directory: &Path) -> bool {
    let (path, copy) = (directory.join("original.jpg"), directory.join("copy.jpg"));
    let mut bytes = jpeg(2420);
    let exif = [b"\xFF\xE1\x40\x02Exif\0\0".as_slice(), &[7; 0x4000 - 6]].concat();
    bytes.splice(2..2, exif);
    std::fs::write(&path, &bytes).expect("a file");
    let guard = FileGuard::new([path.clone()]);
    let stored = guard.open(&path, Store::with_limit(20 << 20)).expect("a file");
    let media = checked(stored, &MediaRules::default());
    let ours = || {
        let stripped =
            normalise(&media, &MediaCapabilities::default(), &MediaRules::default()).expect("an image");
        assert!(black_box(stripped).stored.len() + 0x4004 == bytes.len() as u64);
    };
    let theirs = || {
        black_box(std::fs::copy(&path, &copy).expect("a copy"));
    };
    let what = format!("JPEG of {:.1} MB: stripped ÷ copied", bytes.len() as f64 / 1e6);
    compare(&what, ours, theirs, 3.0)
}

fn checked(stored: Stored, rules: &MediaRules) -> Media {
    let events = tokio::runtime::Builder::new_current_thread().build().expect("an event loop");
    events.block_on(check(stored, &MediaDeclaration::default(), rules, None)).expect("an image")
}

/// Prints the ratio of the best rounds, which alternate. Returns whether the bound is met.
fn compare(what: &str, ours: impl Fn(), theirs: impl Fn(), max: f64) -> bool {
    let (mut our_best, mut their_best) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        our_best = our_best.min(timed(&ours));
        their_best = their_best.min(timed(&theirs));
    }
    let ratio = our_best.as_secs_f64() / their_best.as_secs_f64();
    let verdict = if ratio <= max { "met" } else { "MISSED" };
    println!("{what}: {our_best:.2?} ÷ {their_best:.2?} = {ratio:.2} (at most {max}: {verdict})");
    ratio <= max
}

fn timed(work: &impl Fn()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Returns a square image of noise, which cannot be compressed.
fn png(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new(&mut bytes);
    encoder.write_image(&noise(side), side, side, ExtendedColorType::Rgb8).expect("an image");
    bytes
}

fn jpeg(side: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, 50);
    encoder.write_image(&noise(side), side, side, ExtendedColorType::Rgb8).expect("an image");
    bytes
}

fn noise(side: u32) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take((side * side * 3) as usize).collect()
}
