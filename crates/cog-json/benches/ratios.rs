//! The time of the parser compared with `serde_json`, as ratios that are valid on any machine.
//!
//! `cargo bench -p cog-json` prints each ratio with its limit, and fails if one exceeds it. Both sides run alternately,
//! and the best run of each counts.

use std::hint::black_box;
use std::process::ExitCode;

use cog_json::{EventKind, Limits, Parser, Value};
use cog_testkit::bench::{limit, ratio};

fn main() -> ExitCode {
    let small = records(200);
    let large = records(2000);
    let string = format!("{{\"text\":\"{}\"}}", "lorem ipsum dolor ".repeat((1 << 20) / 18));
    let escapes = format!("[{}]", vec![r#""say \"hi\"\nand \u00e9\ud83d\ude00""#; 2000].join(","));
    let answer = records(100);
    let results = [
        limit(
            3.0,
            "1 MB of records in 16-byte chunks ÷ append and parse at the end",
            ratio(|| stream(&large), || append(&large)),
        ),
        limit(
            15.0,
            "one string of 1 MB in 16-byte chunks ÷ append and parse at the end",
            ratio(|| stream(&string), || append(&string)),
        ),
        limit(12.0, "1 MB in 16-byte chunks ÷ 100 KB", ratio(|| stream(&large), || stream(&small))),
        limit(0.5, "a 50 KB answer at once ÷ serde_json::Value", against_serde(&answer)),
        limit(0.5, "a small envelope at once ÷ serde_json::Value", against_serde(ENVELOPE)),
        limit(1.5, "strings full of escapes at once ÷ serde_json::Value", against_serde(&escapes)),
    ];
    if results.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const ENVELOPE: &str = r#"{"ok":true,"meta":{"confidence":0.92,"risk":"low","explain":"One query is open to injection."},"data":{"issues":[{"line":1,"severity":"high","kind":"security","text":"The value is put into the statement as text."}],"rationale":"The query is built by adding strings; a parameter would do.","score":3}}"#;

fn records(count: usize) -> String {
    let record = |at: usize| {
        format!(
            r#"{{"id":{at},"label":"object {at}","kind":"vehicle","confidence":0.{at:04},"box":[{at},{},{},17],"visible":true,"parent":null,"colour":"dark green","note":"Seen behind the second tree on the left, partly hidden by a \"no parking\" sign and a parked bicycle.\nCheck again in daylight, since the number plate could not be read from this distance.","text":"The quick brown fox jumps over the lazy dog while nobody is watching, and then it runs away into the dark forest beyond the river where all the other foxes are."}}"#,
            at * 2,
            at * 3,
        )
    };
    format!("{{\"objects\":[{}]}}", (0..count).map(record).collect::<Vec<_>>().join(",\n  "))
}

/// Parses in chunks of 16 bytes, and reads the draft after each chunk.
fn stream(text: &str) {
    let mut parser = Parser::tolerant(Limits::model_output());
    let mut bytes = 0;
    for chunk in text.as_bytes().chunks(16) {
        let pushed = parser.push(chunk, &mut |event| {
            if let EventKind::Text { delta, .. } = event.kind {
                bytes += delta.len() + event.path.depth();
            }
        });
        assert!(pushed.is_ok());
        black_box(parser.root().map(|root| (root.len(), root.is_complete())));
    }
    assert!(parser.finish(&mut |_| {}).is_ok());
    black_box((bytes, parser));
}

fn append(text: &str) {
    let mut buffer = Vec::new();
    for chunk in text.as_bytes().chunks(16) {
        buffer.extend_from_slice(black_box(chunk));
    }
    black_box(serde_json::from_slice::<serde_json::Value>(&buffer).is_ok());
}

fn against_serde(text: &str) -> f64 {
    ratio(
        || {
            black_box(Value::parse(black_box(text)).is_ok());
        },
        || {
            black_box(serde_json::from_str::<serde_json::Value>(black_box(text)).is_ok());
        },
    )
}
