//! `cargo xtask autobahn [PYTHON]`: tests the WebSocket connection with the fuzzing client of Autobahn, about 300 cases of RFC 6455.
//!
//! Autobahn runs on Python 2.7 only, so this is not part of `cargo xtask test`. `PYTHON` is the interpreter, `python2.7` by default.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::project::{Outcome, capture, cargo, emptied, execute, read_json, say, target_directory, write};

const VERSION: &str = "autobahntestsuite==0.8.2";

/// The cases of extensions that the server does not offer: compression.
const EXCLUDED: [&str; 2] = ["12.*", "13.*"];

/// The results that are accepted. `NON-STRICT` and `INFORMATIONAL` follow the RFC.
const ACCEPTED: [&str; 3] = ["OK", "NON-STRICT", "INFORMATIONAL"];

/// Starts the echo server, runs all cases, and fails if one of them does.
pub(crate) fn run(python: &str) -> Outcome {
    let packages = install(python)?;
    let reports = emptied("autobahn")?;
    std::fs::create_dir_all(&reports).map_err(|error| error.to_string())?;
    execute(cargo().args(["build", "--package", "cog-server", "--example", "websocket_echo"]))?;
    let echo = Echo::start(&target_directory()?.join("debug/examples/websocket_echo"))?;
    let spec = reports.join("spec.json");
    let servers = json!([{ "agent": "cog", "url": echo.url }]);
    let text = json!({ "outdir": reports, "servers": servers, "cases": ["*"], "exclude-cases": EXCLUDED })
        .to_string();
    write(&spec, &text)?;
    let client = ["-m", "autobahntestsuite.wstest", "--mode", "fuzzingclient", "--spec"];
    capture(Command::new(python).args(client).arg(&spec).env("PYTHONPATH", packages))?;
    judge(&reports)
}

/// Installs Autobahn under `target/tools/`, and returns the directory of its packages.
fn install(python: &str) -> Outcome<PathBuf> {
    let directory = target_directory()?.join("tools/autobahn");
    // The package of this name is a namespace for another installer.
    let namespace = directory.join("zope/__init__.py");
    if !namespace.exists() {
        let install = ["-m", "pip", "install", "--quiet", VERSION, "--target"];
        execute(Command::new(python).args(install).arg(&directory))?;
        write(&namespace, "")?;
    }
    Ok(directory)
}

/// The echo server, which stops with this value.
struct Echo {
    process: Child,
    url: String,
}

impl Echo {
    fn start(program: &Path) -> Outcome<Self> {
        let mut process =
            Command::new(program).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("the echo server has no output")?;
        BufReader::new(output).read_line(&mut url).map_err(|error| error.to_string())?;
        Ok(Self { process, url: url.trim().to_owned() })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn judge(reports: &Path) -> Outcome {
    let index = read_json(reports.join("index.json"))?;
    let cases = index.get("cog").and_then(Value::as_object).ok_or("Autobahn reported no cases")?;
    let failed: Vec<String> = cases.iter().filter_map(|(name, case)| failure(name, case)).collect();
    say(format_args!("autobahn: {} cases, {} failed", cases.len(), failed.len()));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Says how a case failed: in its behavior, or in how it closes the connection.
fn failure(name: &str, case: &Value) -> Option<String> {
    let results =
        ["behavior", "behaviorClose"].map(|key| case.get(key).and_then(Value::as_str).unwrap_or("missing"));
    let is_accepted = results.iter().all(|result| ACCEPTED.contains(result));
    (!is_accepted).then(|| format!("case {name}: {}, close {}", results[0], results[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_cases_that_fail_in_behavior_or_close() {
        let case = |behavior: &str, close: &str| json!({ "behavior": behavior, "behaviorClose": close });
        assert_eq!(failure("1.1.1", &case("OK", "INFORMATIONAL")), None);
        assert_eq!(failure("1.1.1", &case("FAILED", "OK")).as_deref(), Some("case 1.1.1: FAILED, close OK"));
        assert_eq!(
            failure("1.1.1", &case("OK", "UNCLEAN")).as_deref(),
            Some("case 1.1.1: OK, close UNCLEAN")
        );
        assert_eq!(failure("1.1.1", &json!({})).as_deref(), Some("case 1.1.1: missing, close missing"));
    }
}
