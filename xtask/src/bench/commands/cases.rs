//! `cog test --jobs`: the time of many cases, beside that of a model which replies to all jobs at once.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Bound, Model, median, quiet, report, timed};
use crate::project::{Outcome, emptied, say, write};

const CASES: u32 = 40;
const JOBS: u32 = 8;
const DELAY: Duration = Duration::from_millis(300);
/// How often the command is run.
const ROUNDS: usize = 5;

/// Prints the time of the command divided by that of the replies.
pub(super) fn in_parallel(cog: &str, mock: &Path) -> Outcome<bool> {
    let directory = emptied("tmp/cases")?;
    let module = directory.join("sorter");
    for (name, text) in files() {
        let path = module.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&module)).map_err(|error| error.to_string())?;
        write(&path, &text)?;
    }
    let model = Model::start(mock, &reply())?;
    let mut command = quiet(cog);
    command.arg("test").arg(&module).args(["--provider", "openai", "--jobs", &JOBS.to_string()]);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", format!("{}/v1", model.address));
    let times: Outcome<Vec<_>> = (0..ROUNDS).map(|_| timed(&mut command)).collect();
    let time = median(times?);
    let ideal = (DELAY * CASES.div_ceil(JOBS)).as_secs_f64();
    say(format_args!("{:>8.0} ms, {:>8.0} ms", time * 1000.0, ideal * 1000.0));
    Ok(report(time / ideal, &Bound { what: "cog test of 40 cases, --jobs 8 ÷ replies", at_most: 1.3 }))
}

/// A module with many cases, each with the answer of the model.
fn files() -> Vec<(String, String)> {
    let schema = json!({
        "input": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } },
        "data": { "type": "object", "required": ["queue", "rationale"], "properties": {
            "queue": { "type": "string" }, "rationale": { "type": "string" } } },
    });
    let manifest = "name: sorter\nversion: 1.0.0\ntier: decision\nresponsibility: Sorts.\nexcludes: []\n";
    let cases = (0..CASES).flat_map(|n| {
        let file = |kind: &str, json: String| (format!("tests/case{n}.{kind}.json"), json);
        [file("input", json!({ "n": n }).to_string()), file("expected", data().to_string())]
    });
    [
        ("module.yaml".to_owned(), manifest.to_owned()),
        ("prompt.md".to_owned(), "Sort.\n".to_owned()),
        ("schema.json".to_owned(), schema.to_string()),
    ]
    .into_iter()
    .chain(cases)
    .collect()
}

fn data() -> serde_json::Value {
    json!({ "queue": "a", "rationale": "It is the only one." })
}

fn reply() -> String {
    let meta = json!({ "confidence": 0.9, "risk": "none", "explain": "Sorted." });
    let delay = u64::try_from(DELAY.as_millis()).unwrap_or(0);
    json!({ "text": { "ok": true, "meta": meta, "data": data() }, "delay_ms": delay }).to_string()
}
