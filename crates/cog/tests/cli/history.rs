//! `cog messages count | trim | archive | expand`.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Place;

/// Returns a video of two seconds with a tone, as base64.
#[expect(clippy::disallowed_methods, reason = "the file of the test")]
fn film(place: &Place) -> String {
    let inputs = "-loglevel error -f lavfi -i testsrc=d=2:s=64x48:r=10 -f lavfi -i sine=d=2 film.mp4";
    let made = Command::new("ffmpeg").args(inputs.split(' ')).current_dir(place.path()).status();
    assert!(made.is_ok_and(|status| status.success()), "the tests of media need ffmpeg");
    base64_simd::STANDARD.encode_to_string(std::fs::read(place.path().join("film.mp4")).unwrap())
}

/// Returns the content of the only message after `cog messages expand`.
#[expect(clippy::disallowed_methods, reason = "where the test finds ffmpeg, the program shall")]
fn expanded(place: &Place, part: &Value) -> Vec<Value> {
    let text = json!({ "type": "text", "text": "What happens here?" });
    place.write("history.json", json!([{ "role": "user", "content": [text, part] }]).to_string());
    let mut command = place.cog(["messages", "expand", "history.json", "-o", "expanded.json"]);
    let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expanded: Value = serde_json::from_str(&place.read("expanded.json")).unwrap();
    expanded.pointer("/0/content").and_then(Value::as_array).cloned().unwrap_or_default()
}

#[test]
fn raw_video_becomes_frames_and_audio() {
    let place = Place::new();
    let data = film(&place);
    let url = format!("data:video/mp4;base64,{data}");
    for part in [
        json!({ "type": "file", "file": { "file_data": url, "filename": "film.mp4" } }),
        json!({ "type": "input_audio", "input_audio": { "data": data, "format": "mp4" } }),
        json!({ "type": "image_url", "image_url": { "url": url } }),
        json!({ "type": "image_url", "image_url": { "url": "film.mp4", "detail": "low" } }),
    ] {
        let content = expanded(&place, &part);
        let types: Vec<_> = content.iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["text", "image_url", "image_url", "input_audio"], "{}", part["type"]);
        let times: Vec<_> =
            content.iter().filter_map(|part| part["video_metadata"]["timestamp_sec"].as_f64()).collect();
        assert!(matches!(times[..], [first, second] if first < second && second < 2.0), "{times:?}");
        assert!(content[1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/jpeg;base64,/9j/"));
        assert_eq!(content[1]["image_url"]["detail"], part["image_url"]["detail"]);
        let numbers = [1, 2].map(|index| content[index]["video_metadata"]["frame_index"].as_u64());
        assert_eq!(numbers, [Some(0), Some(10)]); // the film has 10 frames per second
        assert_eq!(content[1]["video_metadata"]["video_id"], content[2]["video_metadata"]["video_id"]);
        assert_eq!(content[3]["input_audio"]["format"], "wav");
        let verdict = place.cog(["verify", "expanded.json", "--kind", "messages"]).output().unwrap();
        assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stdout));
    }
}

#[test]
fn damaged_video_stays_and_is_reported() {
    let place = Place::new();
    let part = json!({ "type": "file", "file": { "file_data": "data:video/mp4;base64,QUJDRA==" } });
    place.write("history.json", json!([{ "role": "user", "content": [part] }]).to_string());
    let output = place.cog(["messages", "expand", "history.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("not expanded: messages[0].content[0]: E1010"), "{stderr}");
    let left: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(left.pointer("/0/content/0"), Some(&part));
}

#[test]
fn long_history_is_trimmed() {
    let place = Place::new();
    let message = |at: usize| json!({ "role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("Line {at}.") });
    let lines: Vec<String> = (0..20_000).map(|at| message(at).to_string()).collect();
    place.write("history.jsonl", lines.join("\n"));
    let mut command =
        place.cog(["messages", "trim", "history.jsonl", "--max-tokens", "1000", "--model", "gpt-4o"]);
    let output = command.args(["--report", "report.json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert!(left.len() > 50 && left.len() < 250, "{}", left.len());
    assert_eq!(left.last().map(|line| serde_json::from_str::<Value>(line).unwrap()), Some(message(19_999)));
}
