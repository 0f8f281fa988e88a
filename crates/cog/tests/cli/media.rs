//! `cog media` on files made here.

use crate::support::{Place, json, snapshot};

/// A GIF of one pixel.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn pictures() -> Place {
    let place = Place::new();
    place.write("pixel.gif", PIXEL).write("cut.gif", &PIXEL[..8]).write("notes.txt", "Hello");
    place
}

#[test]
fn media_are_told_by_what_they_are() {
    snapshot!(pictures().cog([
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
fn each_medium_is_a_line_of_json() {
    snapshot!(pictures().cog(["media", "probe", "pixel.gif", "notes.txt"]));
}

#[test]
fn private_addresses_are_refused() {
    let output = Place::new().cog(["media", "probe", "http://127.0.0.1/a.png"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["error"]["code"], "E1012");
}
