//! `cog validate`: checks module files.

mod github;
mod sarif;
mod span;

use cog_host::settings::Environment;
use cog_json::{Array, Value};
use cog_module::{Level, Report, Severity};

use super::targets::{default_finder, targets};
use crate::{
    args::{LevelArgs, ValidateArgs, ValidateFormat},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Prints the findings of each module. The JSON of one module is an object, and of several a list.
pub(crate) fn validate(
    args: &ValidateArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let level = level(args.level);
    let targets = targets(&finder, &args.modules, args.all)?;
    let reports = cog_host::validate(targets.iter().map(|(_, origin)| origin), level, &finder);
    match (args.format, reports.as_slice()) {
        (ValidateFormat::Json, [only]) if !args.all => console.print_json(only)?,
        (ValidateFormat::Json, all) => console.print_json(&Array(all))?,
        (ValidateFormat::Github, all) => console.print(&github::annotations(all))?,
        (ValidateFormat::Sarif, all) => console.print_json(&Value::from(sarif::log(all)))?,
        (ValidateFormat::Human, all) => {
            let names = targets.iter().map(|(name, _)| name.as_str());
            let text: Vec<_> = names.zip(all).map(|(name, report)| describe(name, report, console)).collect();
            console.print(&text.join("\n"))?;
        }
    }
    let is_clean = |report: &Report| !args.deny_warnings || report.diagnostics.is_empty();
    let is_accepted = |report: &Report| report.is_valid() && is_clean(report);
    Ok(if reports.iter().all(is_accepted) { Exit::Ok } else { Exit::Invalid })
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
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let verdict = if report.is_valid() { palette.success("valid") } else { palette.error("invalid") };
    let mut facts: Vec<String> = report.format().map(|format| format.to_string()).into_iter().collect();
    facts.extend(count(report.cases, "golden test"));
    facts.extend(count(errors, "error"));
    facts.extend(count(warnings, "warning"));
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
