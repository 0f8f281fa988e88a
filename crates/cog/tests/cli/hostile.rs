//! Hostile input, and what the program does with it.

#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    ffi::OsStr,
    fs::File,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::symlink, net::UnixDatagram},
    },
    process::Command,
};

use crate::support::{Place, json, snapshot, stderr, stdout};

/// Returns the error code of a run with this input file.
fn code_of(place: &Place, input: impl AsRef<OsStr>) -> String {
    let output = place.cog(["run", "code-reviewer"]).arg(input).output().unwrap();
    let envelope = json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(envelope["error"]["suggestion"].is_string(), "{envelope}");
    envelope["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn rejects_endless_inputs() {
    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", place.path().join("zero")).unwrap();
    assert_eq!(code_of(&place, "pipe"), "E1006");
    assert_eq!(code_of(&place, "zero"), "E1006");
    let endless = place.cog(["run", "code-reviewer", "-"]).stdin(File::open("/dev/zero").unwrap()).output();
    assert_eq!(json(&endless.unwrap())["error"]["code"], "E1005");
}

#[test]
fn rejects_endless_recording() {
    let place = Place::new();
    place.write("tape/x", "");
    let made = Command::new("mkfifo").arg(place.path().join("tape/0001.json")).status().unwrap();
    assert!(made.success());
    snapshot!(place.cog(["run", "code-reviewer", "--args", "x", "--replay", "tape"]));
}

#[test]
fn invalid_utf8_variable_is_not_unset() {
    let place = Place::new();
    let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
    let output = command.env("LLM_PROVIDER", OsStr::from_bytes(b"\xff")).output().unwrap();
    assert_eq!(json(&output)["error"]["code"], "E4001");
}

/// Parallel processes can share one stdout, such as those of `xargs -P`. Each write to this one is a message of its own.
#[test]
fn envelope_and_its_line_break_are_one_write() {
    let (place, (reader, writer)) = (Place::new(), UnixDatagram::pair().unwrap());
    let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
    assert!(command.stdout(OwnedFd::from(writer)).status().unwrap().success());
    let mut message = vec![0; 1 << 20];
    let length = reader.recv(&mut message).unwrap();
    let line = std::str::from_utf8(&message[..length]).unwrap().strip_suffix('\n').unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["ok"], true);
}

#[test]
fn inputs_in_other_encodings() {
    let place = Place::new();
    let json_text = r#"{"code": "x = 1"}"#;
    place.write("bom.json", format!("\u{feff}{json_text}"));
    let utf16: Vec<u8> = json_text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(place.path().join("utf16.json"), [&[0xff, 0xfe], utf16.as_slice()].concat()).unwrap();
    let read = place.cog(["run", "code-reviewer", "bom.json"]).output().unwrap();
    assert_eq!(json(&read)["ok"], true);
    assert_eq!(code_of(&place, "utf16.json"), "E1000");
}

#[test]
fn inputs_nested_too_deep_or_too_large() {
    let place = Place::new();
    place.write("deep.json", "[".repeat(1_000_000));
    place.write("large.json", format!("\"{}\"", "x".repeat(31 * 1024 * 1024)));
    assert_eq!(code_of(&place, "deep.json"), "E1000");
    assert_eq!(code_of(&place, "large.json"), "E1005");
}

#[test]
fn file_name_may_be_invalid_utf8() {
    let place = Place::new();
    let (input, output) = (OsStr::from_bytes(b"\xff.json"), OsStr::from_bytes(b"\xfe.json"));
    std::fs::write(place.path().join(input), r#"{"code": "x = 1"}"#).unwrap();
    let run = place.cog(["run", "code-reviewer"]).args([input, OsStr::new("-o"), output]).output().unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    let verified = place.cog(["verify"]).arg(output).output().unwrap();
    assert!(verified.status.success(), "{}", stdout(&verified));
}

#[test]
fn invalid_utf8_argument() {
    let place = Place::new();
    let mut command = place.cog(["run", "code-reviewer", "--args"]);
    snapshot!(command.arg(OsStr::from_bytes(b"a\xffb")));
}

#[test]
fn negative_number_is_parsed_as_a_number() {
    let place = Place::new();
    for flag in ["--timeout", "--temperature", "--max-tokens"] {
        let output = place.cog(["run", "code-reviewer", "--args", "x", flag, "-1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(&format!("invalid value '-1' for '{flag}")), "{}", stderr(&output));
    }
}

#[test]
fn misspelt_name_gets_a_suggestion() {
    snapshot!(Place::new().cog(["new", "My Module_2"]));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let place = Place::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in [&["--help"][..], &["list"], &["run", "code-reviewer", "--args", "x"]] {
        let output = place.cog(args.iter().copied()).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
}

#[test]
fn module_cannot_read_outside_its_directory() {
    let place = Place::new();
    place.copy_module("format-v22", "m").write("secret", "sk-canary");
    std::fs::remove_file(place.path().join("m/prompt.md")).unwrap();
    symlink("../secret", place.path().join("m/prompt.md")).unwrap();
    let output = place.cog(["render", "./m", "--args", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("outside the module's directory"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("canary") && !stdout(&output).contains("canary"));
}
