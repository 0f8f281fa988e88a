//! The findings as SARIF 2.1.0, which code scanners read.

use cog_module::{Diagnostic, Report, Rule};
use serde_json::{Value, json};

use super::span::span;
use crate::commands::annotation::relative;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a log with one run.
pub(super) fn log(reports: &[Report]) -> Value {
    let results: Vec<_> = reports.iter().flat_map(|report| &report.diagnostics).map(result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver() }, "columnKind": "unicodeCodePoints", "results": results }],
    })
}

fn driver() -> Value {
    let rule =
        |rule: &Rule| json!({ "id": rule.as_str(), "shortDescription": { "text": rule.requirement() } });
    let rules: Vec<_> = Rule::ALL.iter().map(rule).collect();
    json!({ "name": "cog", "version": env!("CARGO_PKG_VERSION"), "rules": rules })
}

fn result(found: &Diagnostic) -> Value {
    let file = json!({ "uri": uri(&relative(&found.file)) });
    let location = match span(found) {
        Some((line, column, end)) => {
            let region = json!({ "startLine": line, "startColumn": column, "endColumn": end });
            json!({ "artifactLocation": file, "region": region })
        }
        None => json!({ "artifactLocation": file }),
    };
    let help = found.suggestion.as_ref().map(|help| format!(". {help}")).unwrap_or_default();
    json!({
        "ruleId": found.rule.as_str(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == found.rule),
        "level": found.severity.as_str(),
        "message": { "text": format!("{}{help}", found.message) },
        "locations": [{ "physicalLocation": location }],
    })
}

/// Returns a path as a URI reference.
fn uri(path: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    scheme.to_owned() + &path.bytes().map(escaped).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uri_references() {
        assert_eq!(uri("a b/ü.json"), "a%20b/%C3%BC.json");
        assert_eq!(uri("/a:b"), "file:///a%3Ab");
    }
}
