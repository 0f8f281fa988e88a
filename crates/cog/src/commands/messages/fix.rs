//! `cog messages fix`: fixes what can be fixed without inventing anything.

use cog_harmony::{Change, FixReport, Problem, Severity};
use cog_json::{Array, ToJson, Writer};

use super::history;
use crate::{args::FixArgs, commands::emit, error::CliError, exit::Exit, output::Console};

/// Writes the fixed history. The exit code is 0 if no errors are left, otherwise 1.
pub(crate) fn fix(args: &FixArgs, console: &Console) -> Result<Exit, CliError> {
    [&args.output, &args.report].into_iter().try_for_each(|file| emit::check(file.as_deref()))?;
    let document = history::read(&args.file)?;
    let fixed = cog_harmony::fix(&document).map_err(|problem| history::unreadable(&args.file, &problem))?;
    match &args.report {
        Some(file) => emit::file(file, &Report(&fixed).to_json(), console)?,
        None => report(&fixed, console),
    }
    history::write(&fixed.text, args.output.as_deref(), console)?;
    let is_valid = !fixed.problems.iter().any(|problem| problem.rule.is_error());
    Ok(if is_valid { Exit::Ok } else { Exit::Failed })
}

/// Prints a line for each change, then for each problem that is left.
fn report(fixed: &FixReport, console: &Console) {
    let palette = console.err().palette;
    for Change { path, rule, message } in &fixed.changes {
        console.note(&format!("fixed: {}", history::line(path, message, rule.name, palette)));
    }
    for Problem { path, rule, message } in &fixed.problems {
        let severity = severity(rule.severity);
        console.note(&format!("{severity}: {}", history::line(path, message, rule.name, palette)));
    }
}

const fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

struct Report<'a>(&'a FixReport);

/// Written by hand: the text of the history is not part of it.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let problems: Vec<Left<'_>> = self.0.problems.iter().map(Left).collect();
        w.object(|w| {
            w.field("changes", &self.0.changes).field("problems", &Array(&problems));
        });
    }
}

/// A problem that is left.
struct Left<'a>(&'a Problem);

/// Written by hand: severity and suggestion are those of the rule.
impl ToJson for Left<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Problem { path, rule, message } = self.0;
        w.object(|w| {
            w.field("severity", severity(rule.severity)).field("path", path).field("rule", rule.name);
            w.field("message", message).field("suggestion", rule.suggestion);
        });
    }
}
