//! `cog media` on generated files.

use crate::support::{Place, json, snapshot};

/// A GIF of one pixel.
pub(crate) const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn images() -> Place {
    let place = Place::new();
    place.write("pixel.gif", PIXEL).write("cut.gif", &PIXEL[..8]).write("notes.txt", "Hello");
    place
}

#[test]
fn probe_detects_media_by_content() {
    snapshot!(images().cog([
        "media",
        "probe",
        "pixel.gif",
        "cut.gif",
        "notes.txt",
        "nowhere.png",
        "--format",
        "human"
    ]));
}

#[test]
fn one_json_line_per_media_file() {
    snapshot!(images().cog(["media", "probe", "pixel.gif", "notes.txt"]));
}

#[test]
fn rejects_private_addresses() {
    let output = Place::new().cog(["media", "probe", "http://127.0.0.1/a.png"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["error"]["code"], "E1012");
}

/// A GIF of two frames, with a comment.
fn film() -> Vec<u8> {
    let comment = b"!\xfe\x06secret\0";
    let (head, frame) = (&PIXEL[..19], &PIXEL[19..PIXEL.len() - 1]);
    [head, comment, frame, frame, b";"].concat()
}

#[test]
fn strip_writes_to_file_or_stdout() {
    let place = Place::new();
    place.write("film.gif", film());
    let to_stdout = place.cog(["media", "strip", "film.gif"]).output().unwrap();
    assert_eq!(to_stdout.stdout, PIXEL, "{}", String::from_utf8_lossy(&to_stdout.stderr));
    let in_place = place.cog(["media", "strip", "film.gif", "-o", "film.gif"]).output().unwrap();
    assert!(in_place.status.success());
    let again = place.cog(["media", "strip", "film.gif", "-o", "-"]).output().unwrap();
    assert_eq!(again.stdout, PIXEL);
}

/// A lossless WebP with an orientation.
const TURNED: &str = "UklGRpwAAABXRUJQVlA4WAoAAAAIAAAAAgAAAQAAVlA4TBMAAAAvAkAAAA8Q87//8x8ObnAQ0f8QAEVYSUZiAAAATU0AKgAAABBF\
    eGlmTWV0YQAFARIAAwAAAAEABgAAARoABQAAAAEAAABSARsABQAAAAEAAABaASgAAwAAAAEAAgAAAhMAAwAAAAEAAQAAAAAAAAAAAEgAAAABAAAASAAAAAE=";

#[test]
fn strip_writes_the_format_of_the_file_name() {
    let place = Place::new();
    place.write("a.webp", base64_simd::STANDARD.decode_to_vec(TURNED).unwrap());
    for (name, expected) in
        [("b.webp", "image/webp"), ("b.png", "image/png"), ("b.jpg", "image/jpeg"), ("b", "image/webp")]
    {
        let stripped = place.cog(["media", "strip", "a.webp", "-o", name]).output().unwrap();
        assert!(stripped.status.success(), "{}", String::from_utf8_lossy(&stripped.stderr));
        let probed = json(&place.cog(["media", "probe", name]).output().unwrap());
        let facts = ["media_type", "width", "height"].map(|key| probed[key].clone());
        assert_eq!(facts, [serde_json::json!(expected), 2.into(), 3.into()]);
    }
    snapshot!(place.cog(["media", "strip", "a.webp", "-o", "b.gif"]));
}

#[test]
fn strip_rejects_other_files() {
    let place = Place::new();
    place.write("a.pdf", "%PDF-1.7\n");
    snapshot!(place.cog(["media", "strip", "a.pdf"]));
}
