//! Tests that replay recorded replies in every split of their bytes.
//!
//! Each file under `wire/` contains the raw bytes of one reply. The snapshot next to it contains its events.

use std::path::{Path, PathBuf};

use cog_provider::protocol::{MAX_FRAME_BYTES, ProtocolKind};
use cog_spec::ModelEvent;
use cog_testkit::{Reply, Wire, splits};

#[test]
fn openai() {
    replay(Wire::OpenAi, ProtocolKind::OpenAiChat);
}

#[test]
fn openai_responses() {
    replay(Wire::OpenAiResponses, ProtocolKind::OpenAiResponses);
}

#[test]
fn openai_images() {
    replay(Wire::OpenAiImages, ProtocolKind::OpenAiImages);
}

#[test]
fn anthropic() {
    replay(Wire::Anthropic, ProtocolKind::Anthropic);
}

#[test]
fn gemini() {
    replay(Wire::Gemini, ProtocolKind::Gemini);
}

#[test]
fn ollama() {
    replay(Wire::Ollama, ProtocolKind::Ollama);
}

/// The mock's own replies are also stored as files, so that the vendors' clients can validate them.
#[test]
fn files_of_the_mock_are_current() {
    let reply = Reply::text("{\"ok\": true, \"note\": \"é漢🙂\"}").chunk_size(5);
    let image = Reply::text("A red dot.").media("image/png", "iVBORw0KGgo=");
    let calls = Reply::tool_calls([("search", "{\"q\":\"é漢🙂\"}"), ("now", "{}")]).reasoning("Two tools.");
    let images = format!("{}\n", Wire::OpenAiImages.complete(&image));
    let images = (directory(Wire::OpenAiImages).join("mock.json"), images);
    let stale: Vec<String> = Wire::ALL
        .into_iter()
        .flat_map(|wire| {
            let ending = if wire == Wire::Ollama { "ndjson" } else { "sse" };
            let complete = |reply| format!("{}\n", wire.complete(reply));
            [
                (directory(wire).join(format!("mock.{ending}")), wire.stream(&reply).concat()),
                (directory(wire).join("mock.json"), complete(&reply)),
                (directory(wire).join(format!("mock_tools.{ending}")), wire.stream(&calls).concat()),
                (directory(wire).join("mock_tools.json"), complete(&calls)),
                (directory(wire).join("models.list"), format!("{}\n", wire.models())),
            ]
        })
        .chain([images])
        .filter_map(|(path, expected)| stale(&path, &expected))
        .collect();
    assert!(stale.is_empty(), "out of date; rename these files if the change is intended: {stale:?}");
}

#[test]
fn character_that_is_split_between_events_is_joined() {
    let event = |text: &str| {
        format!(r#"data: {{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}"#) + "\n\n"
    };
    let end = r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#;
    let decoded = |texts: &[&str]| {
        let events: String = texts.iter().map(|text| event(text)).collect();
        decode(ProtocolKind::OpenAiChat, [format!("{events}{end}\n\n").as_bytes()])
    };
    let split = decoded(&["a", "b\\ud83d", "\\ude00c", "d"]);
    assert!(split.contains(&r#"Text("ab😀cd")"#.to_owned()), "{split:?}");
    for unpaired in [["a", "b\\ud83d", "c"], ["a", "b", "\\ude00c"], ["a", "b", "c\\ud83d"]] {
        assert!(decoded(&unpaired).last().unwrap().starts_with("error: "), "{unpaired:?}");
    }
}

/// Replays every file of a wire form.
fn replay(wire: Wire, kind: ProtocolKind) {
    let files = files(&directory(wire));
    assert!(files.len() > 4, "the recordings are missing");
    for file in files {
        let bytes = read(&file);
        let at_once = decode(kind, [bytes.as_slice()]);
        assert_eq!(decode(kind, bytes.chunks(1)), at_once, "byte by byte: {}", file.display());
        for halves in splits(&bytes) {
            assert_eq!(decode(kind, halves), at_once, "split at {}: {}", halves[0].len(), file.display());
        }
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        insta::with_settings!({ snapshot_path => directory(wire), prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, at_once.join("\n"));
        });
    }
}

/// Returns the events of a reply, one per line, with adjacent texts joined, and the error if it ends in one.
fn decode<'a>(kind: ProtocolKind, parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = kind.protocol().decoder(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let pushed = parts.into_iter().try_for_each(|part| decoder.push(part, &mut events));
    let result = pushed.and_then(|()| decoder.finish(&mut events));
    let mut lines: Vec<String> = joined(events).iter().map(|event| format!("{event:?}")).collect();
    lines.extend(result.err().map(|error| format!("error: {error}")));
    lines
}

fn joined(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut all: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (all.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more)) => text.push_str(&more),
            (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => text.push_str(&more),
            (_, event) => all.push(event),
        }
    }
    all
}

fn directory(wire: Wire) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(wire.name())
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| {
            path.extension().is_some_and(|kind| kind == "sse" || kind == "ndjson" || kind == "json")
        })
        .collect();
    files.sort();
    files
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own recordings")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

/// Compares a file with its expected contents. If they differ, writes the expected contents next to the file and
/// returns the new path.
#[expect(clippy::disallowed_methods, reason = "a test writes beside its own recordings")]
fn stale(path: &Path, expected: &str) -> Option<String> {
    if read(path) == expected.as_bytes() {
        return None;
    }
    let new = format!("{}.actual", path.display());
    std::fs::write(&new, expected).unwrap();
    Some(new)
}
