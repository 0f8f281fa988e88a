//! `cog media strip` on images of ImageMagick with metadata of exiftool. Afterwards exiftool finds no metadata, and
//! ImageMagick no changed pixel.

use std::{
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// The groups that exiftool reports for any image: the file, and the encoding of pixels and colours.
const OF_PIXELS: [&str; 15] = [
    "ExifTool",
    "System",
    "File",
    "Composite",
    "JFIF",
    "Adobe",
    "PNG",
    "PNG-pHYs",
    "PNG-gAMA",
    "PNG-cHRM",
    "RIFF",
    "GIF",
    "ICC-header",
    "ICC_Profile",
    "ICC-view",
];

/// Metadata of cameras, editors and agencies.
const METADATA: [&str; 12] = [
    "-GPSLatitude=51.5007",
    "-GPSLatitudeRef=N",
    "-GPSLongitude=0.1246",
    "-GPSLongitudeRef=W",
    "-EXIF:Artist=Jo Doe",
    "-EXIF:SerialNumber=4711",
    "-EXIF:DateTimeOriginal=2026:01:02 03:04:05",
    "-XMP:Creator=Jo Doe",
    "-XMP:Title=Home",
    "-IPTC:Keywords=home",
    "-IPTC:By-line=Jo Doe",
    "-Comment=at home",
];

fn run(directory: &Path, program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).current_dir(directory).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask test` installs it"))
}

pub(crate) fn done(directory: &Path, program: &str, args: &[&str]) -> String {
    let output = run(directory, program, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates a directory with `whole.ENDING`, and `clean.ENDING` from `cog media strip`.
fn stripped(ending: &str, options: &[&str], metadata: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (whole, clean) = (format!("whole.{ending}"), format!("clean.{ending}"));
    done(directory.path(), "/usr/bin/convert", &[&["rose:"], options, &[whole.as_str()]].concat());
    done(
        directory.path(),
        "exiftool",
        &[&["-q", "-m", "-overwrite_original"], metadata, &[whole.as_str()]].concat(),
    );
    assert!(!metadata_of(directory.path(), &whole).is_empty(), "{ending}: exiftool wrote nothing");
    done(directory.path(), env!("CARGO_BIN_EXE_cog"), &["media", "strip", &whole, "-o", &clean]);
    directory
}

/// Returns the metadata that exiftool finds, as `group:tag`.
pub(crate) fn metadata_of(directory: &Path, file: &str) -> Vec<String> {
    let stdout = done(directory, "exiftool", &["-j", "-G1", "-a", "-u", "-ee", file]);
    let files: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let tags = files[0].as_object().unwrap().keys();
    let is_of_pixels = |tag: &&String| match tag.split_once(':') {
        Some((group, name)) => OF_PIXELS.contains(&group) && !name.ends_with("Comment"),
        None => *tag == "SourceFile",
    };
    tags.filter(|tag| !is_of_pixels(tag)).cloned().collect()
}

/// Returns the number of pixels that differ.
pub(crate) fn pixels_that_differ(directory: &Path, one: &str, other: &str) -> String {
    let output = run(directory, "compare", &["-quiet", "-metric", "AE", one, other, "null:"]);
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

#[test]
fn removes_metadata_and_preserves_pixels() {
    let cases: [(&str, &[&str]); 6] = [
        ("jpg", &[]),
        ("jpg", &["-interlace", "JPEG", "-sampling-factor", "4:2:0", "-resize", "640x480!"]),
        ("jpg", &["-colorspace", "CMYK"]),
        ("png", &["-depth", "16"]),
        ("webp", &["-define", "webp:lossless=true"]),
        ("webp", &["-quality", "80"]),
    ];
    for (ending, options) in cases {
        let directory = stripped(ending, options, &METADATA);
        let (whole, clean) = (format!("whole.{ending}"), format!("clean.{ending}"));
        let found = metadata_of(directory.path(), &clean);
        assert!(found.is_empty(), "{ending} {options:?}: {found:?}");
        assert_eq!(pixels_that_differ(directory.path(), &whole, &clean), "0", "{ending} {options:?}");
    }
}

#[test]
fn animated_gif_becomes_its_first_frame() {
    let options = ["-negate", "rose:", "-set", "comment", "at home"];
    let directory = stripped("gif", &options, &["-Comment=at home", "-XMP:Creator=Jo Doe"]);
    assert!(metadata_of(directory.path(), "clean.gif").is_empty());
    assert_eq!(done(directory.path(), "identify", &["-format", "%n", "clean.gif"]), "1");
    assert_eq!(pixels_that_differ(directory.path(), "whole.gif[0]", "clean.gif"), "0");
}

#[test]
fn exif_rotation_is_applied_and_removed() {
    for orientation in 2..=8 {
        let turn = format!("-Orientation#={orientation}");
        let directory = stripped("jpg", &["-quality", "98"], &[&METADATA[..], &["-n", &turn]].concat());
        let found = metadata_of(directory.path(), "clean.jpg");
        assert!(found.is_empty(), "orientation {orientation}: {found:?}");
        done(directory.path(), "/usr/bin/convert", &["whole.jpg", "-auto-orient", "upright.png"]);
        let output = run(
            directory.path(),
            "compare",
            &["-quiet", "-metric", "PSNR", "upright.png", "clean.jpg", "null:"],
        );
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.trim().parse().is_ok_and(|likeness: f64| likeness > 30.0), "{orientation}: {stderr}");
    }
}

#[test]
fn colour_profile_is_preserved() {
    for ending in ["jpg", "png", "webp"] {
        let directory = tempfile::tempdir().unwrap();
        let (whole, clean) = (format!("whole.{ending}"), format!("clean.{ending}"));
        done(directory.path(), "/usr/bin/convert", &["rose:", &whole]);
        let profile = profile();
        #[expect(clippy::disallowed_methods, reason = "the file of the test")]
        std::fs::write(directory.path().join("p.icc"), &profile).unwrap();
        done(
            directory.path(),
            "exiftool",
            &["-q", "-overwrite_original", "-ICC_Profile<=p.icc", "-EXIF:Artist=Jo", &whole],
        );
        done(directory.path(), env!("CARGO_BIN_EXE_cog"), &["media", "strip", &whole, "-o", &clean]);
        let kept = run(directory.path(), "exiftool", &["-b", "-ICC_Profile", &clean]).stdout;
        assert!(kept == profile, "{ending}: {} bytes", kept.len());
    }
}

/// A profile with a header and no tags.
fn profile() -> Vec<u8> {
    let mut profile = vec![0; 132];
    profile[..4].copy_from_slice(&132_u32.to_be_bytes());
    profile[8] = 2;
    profile[12..24].copy_from_slice(b"mntrRGB XYZ ");
    profile[36..40].copy_from_slice(b"acsp");
    profile
}
