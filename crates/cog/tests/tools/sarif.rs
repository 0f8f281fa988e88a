//! The SARIF of `cog validate`, checked with the schema of an npm package.

#![expect(clippy::disallowed_methods, reason = "the schema is read from the directory of npm")]

use std::{path::Path, process::Command};

use serde_json::Value;

const PACKAGE: &str = "@microsoft/jest-sarif";
const VERSION: &str = "1.0.0-beta.0";
const SCHEMA: &str = "lib/schemas/sarif-2.1.0-rtm.5.json";

#[test]
fn sarif_matches_its_schema() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let cog = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
        command.args(args).env("HOME", place.path()).current_dir(place.path()).output().unwrap()
    };
    assert!(cog(&["new", "a", "--in", "."]).status.success());
    let manifest = place.path().join("a/module.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replacen("tier:", "teir:", 1)).unwrap();
    for modules in [["a", "code-reviewer"], ["code-reviewer", "api-designer"]] {
        let output = cog(&["validate", modules[0], modules[1], "--format", "sarif"]);
        let log: Value = serde_json::from_slice(&output.stdout).unwrap();
        let has_results = log["runs"][0]["results"] != serde_json::json!([]);
        assert_eq!(has_results, modules.contains(&"a"));
        let errors: Vec<_> = schema.iter_errors(&log).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

fn schema() -> Value {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    let package = format!("{PACKAGE}@{VERSION}");
    let install = ["install", "--silent", "--no-save", "--no-audit", "--no-fund", "--prefix"];
    let status = Command::new("npm").args(install).arg(&directory).arg(package).status().unwrap();
    assert!(status.success());
    let file = directory.join("node_modules").join(PACKAGE).join(SCHEMA);
    // Its pattern of languages closes a bracket that is not open, which is not a valid regular expression.
    let text = std::fs::read_to_string(file).unwrap().replace("{2}]?$", "{2}$");
    serde_json::from_str(&text).unwrap()
}
