//! `cog conformance`: the level of conformance that a runtime reaches (docs/conformance-levels.md).

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cog_conformance::{CaseReport, CheckError, LevelReport, Levels, Report, Target};
use cog_spec::{Code, ErrorBody};

use super::runtime;
use crate::{
    args::ConformanceArgs,
    error::{CliError, Exit},
    output::{Console, Palette, Progress, wrap},
};

/// Runs the cases of all levels, and prints the level that is reached.
pub(crate) fn conformance(args: &ConformanceArgs, console: &Console) -> Result<Exit, CliError> {
    let levels = Levels::new().map_err(ErrorBody::from)?;
    if let Some(directory) = &args.write_modules {
        let count = levels.write_modules(directory).map_err(unwritable)?;
        console.print(&setup(count, directory, args.mock_port))?;
        return Ok(Exit::Ok);
    }
    let Some(report) = check(levels, args, console)? else { return Ok(Exit::Interrupted) };
    if console.prints_json(args.format) {
        console.print_json(&report)?;
    } else {
        console.print(&text(&report, console))?;
    }
    Ok(if report.is_reached() { Exit::Ok } else { Exit::Failed })
}

/// Checks the runtime on a thread of its own, until a signal. None if a signal ended the check.
fn check(levels: Levels, args: &ConformanceArgs, console: &Console) -> Result<Option<Report>, CliError> {
    let target = match &args.url {
        Some(url) => Target::Url { url: url.clone(), mock_port: args.mock_port },
        None => Target::Program(std::env::current_exe()?),
    };
    let required_level = args.level;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (send, mut names) = tokio::sync::mpsc::unbounded_channel();
    let stopped = Arc::clone(&is_stopped);
    let checking = std::thread::spawn(move || {
        levels.check(&target, required_level, |level, name| {
            let _ = send.send(format!("level {level} · {name}"));
            if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    let mut progress = Progress::begin(console, "cases");
    let waited = runtime::wait(async {
        while let Some(name) = names.recv().await {
            progress.show(name);
        }
    });
    // The case that runs ends first, so that its server and its directory are removed.
    is_stopped.store(true, Ordering::Relaxed);
    drop(progress);
    let report = checking.join().map_err(|_| CliError::from(panicked()))?;
    waited?;
    report.map_err(|error| match error {
        CheckError::Port { .. } => CliError::Usage {
            message: error.to_string(),
            suggestion: Some("Choose another --mock-port, and configure the runtime with it.".to_owned()),
        },
        error => ErrorBody::from(error).into(),
    })
}

fn panicked() -> ErrorBody {
    ErrorBody::new(Code::InternalError, "the check ended early")
}

fn unwritable(reason: String) -> CliError {
    ErrorBody::new(Code::InternalError, format!("cannot write the modules: {reason}")).into()
}

/// Describes how another runtime is checked.
fn setup(count: usize, directory: &Path, port: u16) -> String {
    format!(
        "{count} modules are in {}.\n\n\
         1. Start the runtime with these modules. Configure its provider for OpenAI Chat Completions:\n\
         \x20  base URL http://127.0.0.1:{port}/v1, any key, any model.\n\
         2. Run `cog conformance --url URL --mock-port {port}`.\n",
        directory.display(),
    )
}

/// The maximum characters of a difference in text.
const MAX_CHARS: usize = 400;
/// The maximum differences of a case in text.
const MAX_DIFFERENCES: usize = 3;

/// Formats a report as text.
fn text(report: &Report, console: &Console) -> String {
    let palette = console.out().palette;
    let columns = console.width();
    let mut text: String = report.levels.iter().map(|level| level_text(level, palette, columns)).collect();
    if let Some(hint) = &report.hint {
        text += &format!("\n{}\n", wrap(hint, columns).join("\n"));
    }
    let subject = report.url.as_deref().unwrap_or("this runtime");
    let verdict = match report.level {
        0 => format!("{subject} reaches no level"),
        level => format!("{subject} reaches level {level}"),
    };
    let verdict = match report.is_reached() {
        true => palette.success(verdict),
        false => palette.error(format!("{verdict}; level {} is required", report.required_level)),
    };
    format!("{text}\n{verdict}\n")
}

fn level_text(level: &LevelReport, palette: Palette, columns: usize) -> String {
    let passed = level.cases.iter().filter(|case| case.passed).count();
    let state = match level.passed {
        true => palette.success("passed"),
        false => palette.error("failed"),
    };
    let head = palette.bold(format_args!("level {}", level.level));
    let mut text = format!("{head}  {state}  {passed} of {} cases: {}\n", level.cases.len(), level.title);
    for case in level.cases.iter().filter(|case| !case.passed || !case.beyond.is_empty()) {
        text += &case_text(case, palette, columns);
    }
    text
}

fn case_text(case: &CaseReport, palette: Palette, columns: usize) -> String {
    let optional = if case.optional { " (optional)" } else { "" };
    let mut text = format!("  {} {}{optional}\n", palette.name(case.codes.join(" ")), case.name);
    text += &differences_text(&case.differences, "", palette, columns);
    text += &differences_text(&case.beyond, "beyond the specification: ", palette, columns);
    text
}

fn differences_text(differences: &[String], label: &str, palette: Palette, columns: usize) -> String {
    let mut text = String::new();
    for difference in differences.iter().take(MAX_DIFFERENCES) {
        let shown: String = difference.chars().take(MAX_CHARS).collect();
        let shown = if shown.len() < difference.len() { shown + "…" } else { shown };
        for line in wrap(&format!("{label}{shown}"), columns.saturating_sub(4)) {
            text += &format!("    {line}\n");
        }
    }
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        text += &format!("    {}\n", palette.dim(format_args!("… {more} more")));
    }
    text
}
