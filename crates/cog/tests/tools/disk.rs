//! `cog batch` on a disk of 1 MB that is full at another byte each time. The disk is a tmpfs in a namespace of its own, which `unshare`
//! of util-linux creates.

#![expect(clippy::disallowed_methods, reason = "modules and results that are written here")]

use std::{
    path::Path,
    process::{Command, Output},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::Value;

const ROWS: usize = 60;

/// The answers have this length and more.
const LENGTH: usize = 600;

const SCHEMA: &str = r#"{"input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
    "data": {"type": "object", "required": ["label"], "properties": {"label": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// For each room in KiB: a batch on a disk that has no more, then the same with room. Leaves `ROOM.code`, `ROOM.err` and `ROOM.out`.
const SCRIPT: &str = r#"
    set -e
    mkdir disk
    mount -t tmpfs -o size=1m disk disk
    for room in $(seq 0 4 160); do
        head -c $(( (1024 - room) * 1024 )) /dev/zero > disk/filler
        code=0
        $COG batch ./m rows.jsonl -o disk/out.jsonl --concurrency 4 2> $room.err || code=$?
        echo $code > $room.code
        rm disk/filler
        [ -e disk/out.jsonl ] || $COG batch ./m rows.jsonl -o disk/out.jsonl --concurrency 4 2> $room.again || { cat $room.again >&2; exit 1; }
        ls -A disk > $room.files
        mv disk/out.jsonl $room.out
    done
"#;

/// Runs the script with a model that answers every row.
fn run(place: &Path, mock: &Mock) -> Output {
    std::fs::create_dir(place.join("m")).unwrap();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Label\ntier: decision\nexcludes: [guessing]\n";
    for (file, content) in
        [("m/module.yaml", manifest), ("m/prompt.md", "Label $ARGUMENTS\n"), ("m/schema.json", SCHEMA)]
    {
        std::fs::write(place.join(file), content).unwrap();
    }
    let rows: String = (0..ROWS).map(|row| format!("\"row {row}\"\n")).collect();
    std::fs::write(place.join("rows.jsonl"), rows).unwrap();
    let mut script = Command::new("unshare");
    script
        .args(["--map-root-user", "--mount", "sh", "-c", SCRIPT])
        .current_dir(place)
        .env("COG", env!("CARGO_BIN_EXE_cog"))
        .env("COG_DETECT_OLLAMA", "off")
        .env("HOME", place)
        .env("OPENAI_API_KEY", "none")
        .env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    script.output().expect("`unshare` of util-linux is needed")
}

/// Returns the rows of an output with their labels.
fn labels(output: &str) -> Vec<(u64, usize)> {
    let label = |line: &str| {
        let result: Value = serde_json::from_str(line).unwrap();
        (result["row"].as_u64().unwrap(), result["data"]["label"].as_str().unwrap().len())
    };
    output.lines().map(label).collect()
}

#[test]
fn batch_on_a_full_disk_says_so_and_goes_on_with_room() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let answer = serde_json::json!({"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Done."},
        "data": {"label": "x".repeat(LENGTH), "rationale": "It says so."}, "error": null});
    let mock = Mock::start([Reply::text(answer.to_string())]);
    let script = run(place, &mock);
    let message = String::from_utf8_lossy(&script.stderr);
    assert!(script.status.success(), "a tmpfs needs root or user namespaces: {message}");
    let read = |name: String| std::fs::read_to_string(place.join(name)).unwrap();
    let expected: Vec<_> = (0..ROWS as u64).map(|row| (row, LENGTH)).collect();
    let mut codes = Vec::new();
    for room in (0..=160).step_by(4) {
        let (code, error) = (read(format!("{room}.code")), read(format!("{room}.err")));
        if code.trim() != "0" {
            assert!(
                error.contains("No space left on device") && error.contains("Free space"),
                "{room}: {error}"
            );
        }
        assert_eq!(labels(&read(format!("{room}.out"))), expected, "{room} KiB");
        assert_eq!(read(format!("{room}.files")), "out.jsonl\n", "{room} KiB: files are left");
        codes.push(code.trim().to_owned());
    }
    assert_eq!((codes.first().unwrap().as_str(), codes.last().unwrap().as_str()), ("1", "0"), "{codes:?}");
    let sent = mock.request_count();
    assert!(sent <= 2 * ROWS * codes.len(), "{sent} requests");
}
