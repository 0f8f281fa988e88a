//! `cargo xtask probe URL`: measures which keywords of a schema an engine enforces, and writes the table of the engine.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::engine::{ENGINE, SCRIPTS};
use crate::project::{Outcome, capture, root, say, write};
use crate::test::python;

/// The schemas, one for each feature of an engine.
const PROBES: &str = "crates/cog-schema/probes.json";
/// The tables, one for each engine.
const TABLES: &str = "crates/cog-schema/src/enforcement";
/// The number of answers for each schema.
const ANSWERS: &str = "40";

/// Probes the engine at a URL; `random` starts llama.cpp with a random model. The table of an engine without one is only
/// printed.
pub(crate) fn run(url: &str) -> Outcome {
    let interpreter = python(&[ENGINE, &["jsonschema-rs==0.60.3"]].concat())?;
    let mut command = Command::new(interpreter);
    command.arg(root().join(SCRIPTS).join("probe.py")).args([url, ANSWERS, PROBES]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let measured = capture(&mut command)?;
    let measured: Value = serde_json::from_str(&measured).map_err(|error| error.to_string())?;
    let table = table(&measured, &today()?)?;
    let path = format!("{TABLES}/{}.rs", text(&measured, "engine"));
    if !root().join(&path).exists() {
        say(format_args!("{table}\n{path} does not exist, so the table is not stored"));
        return Ok(());
    }
    write(&path, &table)?;
    say(format_args!("wrote {path}"));
    Ok(())
}

fn table(measured: &Value, today: &str) -> Outcome<String> {
    let engine = text(measured, "engine");
    let version = text(measured, "version");
    let mut table = format!(
        "//! Written by `cargo xtask probe`.\n\n\
         use super::{{Enforcement, Measured}};\n\n\
         pub(super) const {}: Enforcement = Enforcement {{\n    engine: \"{engine}\",\n    version: \"{version}\",\n    \
         date: \"{today}\",\n    features: FEATURES,\n}};\n\n\
         const FEATURES: &[Measured] = &[\n",
        engine.to_uppercase()
    );
    let features =
        measured.get("features").and_then(Value::as_array).ok_or("the probe printed no features")?;
    for feature in features {
        let refused = feature.get("refused").and_then(Value::as_bool).unwrap_or_default();
        let name = text(feature, "feature");
        let valid = count(feature, "valid");
        let invalid = count(feature, "invalid");
        let _ = writeln!(
            table,
            "    Measured {{ feature: \"{name}\", valid: {valid}, invalid: {invalid}, is_refused: {refused} }},"
        );
    }
    table.push_str("];\n");
    Ok(table)
}

/// Returns the date as `2026-11-22`.
fn today() -> Outcome<String> {
    Ok(capture(Command::new("date").args(["-u", "+%F"]))?.trim().to_owned())
}

fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
