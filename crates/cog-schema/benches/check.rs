//! Measures parsing and checking of an answer as ratios, which are independent of the machine.
//!
//! `cargo bench -p cog-schema` prints one line per ratio with its bound, and fails if a bound is missed. It writes the
//! rates to `target/bench/cog-schema.json`, where the scripts in `peers/` compare them with validators of other languages.
//! `cargo xtask bench` runs all of it.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints its table, and panics if it cannot run"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cog_json::Value;
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest, Strictness};
use serde_json::json;

const SCHEMA: &str = include_str!("data/envelope.schema.json");
/// An answer of 50 KB.
const ANSWER: &str = include_str!("data/answer.json");
const ENVELOPE: &str = include_str!("data/envelope.json");

fn main() -> ExitCode {
    let ours = contract();
    let theirs = validator();
    let parts = parts_contract();
    let answer = Duel::run(|| check(&ours, ANSWER), || check_serde(&theirs, ANSWER));
    let envelope = Duel::run(|| check(&ours, ENVELOPE), || check_serde(&theirs, ENVELOPE));
    let parts_of_answer = Duel::run(|| check_parts(&parts, ANSWER), || check_serde(&theirs, ANSWER));
    let small = Duel::run(|| check_parts(&parts, ENVELOPE), || check_serde(&theirs, ENVELOPE));
    record(&answer, &envelope);
    let met = [
        answer.report("a 50 KB answer", 3.5),
        envelope.report("a small envelope", 2.0),
        parts_of_answer.report("a 50 KB answer by its parts, with enums and strictness", 2.5),
        small.report("a small envelope by its parts, with enums and strictness", 1.5),
    ];
    if met.iter().all(|met| *met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Our time, and the time of `serde_json::Value` with the same validator: the best of rounds that alternate.
struct Duel {
    ours: Duration,
    theirs: Duration,
}

impl Duel {
    fn run(ours: impl Fn(), theirs: impl Fn()) -> Self {
        let mut duel = Duel { ours: Duration::MAX, theirs: Duration::MAX };
        for _ in 0..60 {
            duel.ours = duel.ours.min(timed(&ours));
            duel.theirs = duel.theirs.min(timed(&theirs));
        }
        duel
    }

    fn report(&self, what: &str, min: f64) -> bool {
        let ratio = self.theirs.as_secs_f64() / self.ours.as_secs_f64();
        let verdict = if ratio >= min { "met" } else { "MISSED" };
        println!(
            "{what}: {:.0}/s, {ratio:.2} times serde_json::Value (at least {min}: {verdict})",
            rate(self.ours)
        );
        ratio >= min
    }
}

/// Returns the time of one iteration, averaged over enough of them to be measured.
fn timed(work: &impl Fn()) -> Duration {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_millis(10) {
        for _ in 0..16 {
            work();
        }
        count += 16;
    }
    start.elapsed() / count
}

fn rate(time: Duration) -> f64 {
    1.0 / time.as_secs_f64()
}

/// Returns the schema as one document, which the peers check too.
fn contract() -> Contract {
    let rules = Rules {
        strictness: Strictness::Low,
        ..Rules::from(&Manifest::with_defaults("bench", Format::V1, None))
    };
    let mut document: serde_json::Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let definitions = document.as_object_mut().and_then(|members| members.remove("definitions"));
    compile(&json!({ "output": document, "definitions": definitions }), &rules)
}

/// Returns the schema with separate meta and data, as in a run.
fn parts_contract() -> Contract {
    let rules = Rules {
        strictness: Strictness::Medium,
        ..Rules::from(&Manifest::with_defaults("bench", Format::V22, None))
    };
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let part = |name: &str| schema.pointer(&format!("/properties/{name}"));
    compile(
        &json!({ "meta": part("meta"), "data": part("data"), "definitions": schema.get("definitions") }),
        &rules,
    )
}

fn compile(document: &serde_json::Value, rules: &Rules) -> Contract {
    Contract::compile(document, rules).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn validator() -> jsonschema::Validator {
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::draft7::new(&schema).expect("the schema compiles")
}

fn check(contract: &Contract, text: &str) {
    let value = Value::parse(black_box(text)).expect("the answer is JSON");
    assert!(contract.check_data(value.node()).violations.is_empty());
    black_box(value);
}

fn check_parts(contract: &Contract, text: &str) {
    let value = Value::parse(black_box(text)).expect("the answer is JSON");
    let part = |name: &str| value.get(name).expect("the part exists");
    assert!(contract.check_meta(part("meta")).is_empty());
    assert!(contract.check_data(part("data")).violations.is_empty());
    black_box(value);
}

fn check_serde(validator: &jsonschema::Validator, text: &str) {
    let value: serde_json::Value = serde_json::from_str(black_box(text)).expect("the answer is JSON");
    assert!(validator.is_valid(&value));
    black_box(value);
}

/// Writes the rates for the peers.
#[expect(clippy::disallowed_methods, reason = "a benchmark writes its figures to a file for the peers")]
fn record(answer: &Duel, envelope: &Duel) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    let figures = json!({ "answer": rate(answer.ours), "envelope": rate(envelope.ours) });
    std::fs::create_dir_all(&directory).expect("the directory can be created");
    std::fs::write(directory.join("cog-schema.json"), figures.to_string())
        .expect("the figures can be written");
}
