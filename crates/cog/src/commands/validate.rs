//! `cog validate`: checks module files.

use cog_contract::diff::{Verdict, diff};
use cog_host::settings::Environment;
use cog_json::{Array, Value};
use cog_module::{Diagnostic, Level, Origin, Report, Rule, Severity};
use serde_json::json;

use super::{
    revision::Git,
    runtime::{default_finder, targets},
};
use crate::{
    args::{ExamplesArg, LevelArgs, ValidateArgs, ValidateFormat},
    commands::emit::{Annotation, relative},
    error::{CliError, Exit},
    output::Console,
};

/// Prints the findings of each module. The JSON of one module is an object, and of several a list.
pub(crate) fn validate(
    args: &ValidateArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let finder = default_finder(environment.clone())?;
    let level = level(args.level);
    let targets = targets(&finder, &args.modules, args.all)?;
    let mut reports = cog_host::validate(targets.iter().map(|(_, origin)| origin), level, &finder);
    if args.examples == ExamplesArg::Warn {
        reports.iter_mut().for_each(Report::accept_examples);
    }
    if let Some(revision) = &args.against {
        for report in &mut reports {
            let found = since(report, revision, &environment)?;
            report.diagnostics.extend(found);
        }
    }
    match (args.format, reports.as_slice()) {
        (ValidateFormat::Json, [only]) if !args.all => console.print_json(only)?,
        (ValidateFormat::Json, all) => console.print_json(&Array(all))?,
        (ValidateFormat::Github, all) => console.print(&annotations(all))?,
        (ValidateFormat::Sarif, all) => console.print_json(&Value::from(sarif_log(all)))?,
        (ValidateFormat::Human, all) => {
            let names = targets.iter().map(|(name, _)| name.as_str());
            let text: Vec<_> = names.zip(all).map(|(name, report)| describe(name, report, console)).collect();
            console.print(&text.join("\n"))?;
        }
    }
    let is_accepted = reports
        .iter()
        .all(|report| report.is_valid() && (!args.deny_warnings || report.diagnostics.is_empty()));
    Ok(if is_accepted { Exit::Ok } else { Exit::Invalid })
}

/// Compares a module with its version at a git revision. A module that is new, or does not load there, has no callers yet.
fn since(report: &Report, revision: &str, environment: &Environment) -> Result<Option<Diagnostic>, CliError> {
    let (Some(module), Origin::Directory(directory)) = (&report.module, &report.origin) else {
        return Ok(None);
    };
    let before = Git::new(directory, environment).module(revision, "./")?;
    let Some(before) = before.and_then(|origin| cog_module::load(&origin).ok()) else { return Ok(None) };
    let difference = diff(&before, module);
    if difference.is_version_raised() {
        return Ok(None);
    }
    let step = difference.version_step();
    let decisive = difference.changes.iter().max_by_key(|change| change.step());
    let change =
        decisive.map(|change| format!(", for example `{}`: {}", change.path, change.kind.replace('_', " ")));
    let message = format!(
        "the changes since `{revision}` need a {} version{}",
        step.as_str(),
        change.unwrap_or_default()
    );
    let next = difference.next_version().unwrap_or_default();
    let mut help = format!("Set `version: {next}`, or undo the change.");
    if directory.is_relative() {
        let directory = directory.strip_prefix("./").unwrap_or(directory).display();
        help += &format!(" `cog diff {revision}:./{directory} ./{directory}` lists all.");
    }
    let file = report.manifest_file().unwrap_or_default();
    let found = match difference.verdict() {
        Verdict::Breaking => Diagnostic::error(Rule::VersionStep, file, message),
        _ => Diagnostic::warning(Rule::VersionStep, file, message),
    };
    Ok(Some(found.suggest(help)))
}

const fn level(args: LevelArgs) -> Level {
    match args {
        LevelArgs { v22: true, .. } => Level::V22,
        LevelArgs { v25: true, .. } => Level::V25,
        _ => Level::Any,
    }
}

/// Formats the findings and a summary line.
fn describe(name: &str, report: &Report, console: &Console) -> String {
    let palette = console.out().palette;
    let mut text = String::new();
    for diagnostic in &report.diagnostics {
        text += &format!("{}\n\n", diagnostic.render(palette.is_on()));
    }
    let errors = report.count(Severity::Error);
    let warnings = report.count(Severity::Warning);
    let verdict = if report.is_valid() { palette.success("valid") } else { palette.error("invalid") };
    let mut facts: Vec<String> = report.format().map(|format| format.to_string()).into_iter().collect();
    facts.extend(count(report.cases, "golden test"));
    facts.extend(count(errors, "error"));
    facts.extend(count(warnings, "warning"));
    if !report.is_valid() && report.is_module_valid() {
        facts.push("the module itself is valid: only its examples are not".to_owned());
    }
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    text + &format!("{}: {verdict}{facts}", palette.name(name))
}

/// Returns `2 errors`, or none for zero.
fn count(number: usize, thing: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {thing}")),
        _ => Some(format!("{number} {thing}s")),
    }
}

/// Formats one line per finding.
fn annotations(reports: &[Report]) -> String {
    reports.iter().flat_map(|report| &report.diagnostics).map(annotation).collect()
}

fn annotation(found: &Diagnostic) -> String {
    let help = found.suggestion.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    let annotation = Annotation {
        level: found.severity.as_str(),
        file: Some(&found.file),
        range: span(found),
        title: found.rule.as_str(),
        message: &format!("{}{help}", found.message),
    };
    format!("{annotation}\n")
}

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a SARIF log with one run.
fn sarif_log(reports: &[Report]) -> serde_json::Value {
    let results: Vec<_> = reports.iter().flat_map(|report| &report.diagnostics).map(sarif_result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": sarif_driver() }, "columnKind": "unicodeCodePoints", "results": results }],
    })
}

fn sarif_driver() -> serde_json::Value {
    let rules: Vec<_> = Rule::ALL
        .iter()
        .map(|rule| json!({ "id": rule.as_str(), "shortDescription": { "text": rule.requirement() } }))
        .collect();
    json!({ "name": "cog", "version": env!("CARGO_PKG_VERSION"), "rules": rules })
}

fn sarif_result(found: &Diagnostic) -> serde_json::Value {
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
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// Returns the line of a finding, and its first and last column; both in characters, from 1.
fn span(found: &Diagnostic) -> Option<(u32, u32, u32)> {
    let location = found.location.as_ref()?;
    let marked = location.excerpt.get(location.marked.clone()).unwrap_or_default();
    let length = u32::try_from(marked.chars().count()).unwrap_or(0);
    Some((location.line, location.column, location.column.saturating_add(length)))
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
