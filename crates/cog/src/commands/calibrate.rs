//! `cog calibrate`: what the confidences of a module are worth, and above which an answer can be accepted.

mod check;
mod from_labels;
mod golden;
mod read;
pub(super) mod report;

use std::{path::PathBuf, sync::Arc};

use cog_batch::{Format, Source};
use cog_host::{
    Host, Use,
    settings::{Environment, Settings},
};
use cog_module::{
    Module,
    calibration::{CalibrationKey, KeepCalibrationError, NewCalibration},
};
use cog_run::Providers;
use cog_spec::{Code, ErrorBody, GateRule};
use cog_trust::Goal;

use self::{golden::Golden, read::Labels, report::Report};
use super::{emit, runtime};
use crate::{
    args::CalibrateArgs,
    error::{CliError, Exit},
    output::{Console, ErrorReport},
};

/// The invalid lines, or cases without an answer, that are reported.
const MAX_ERRORS: usize = 20;

/// Reports what the confidences of a module are worth, from its golden cases or from labelled runs, and stores it. With a target, the
/// exit code says whether there is a threshold.
pub(crate) fn calibrate(
    args: &CalibrateArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    check_flags(args)?;
    let settings = runtime::load_run_settings(args.model.flags(), environment, console)?;
    let module = load(args, &settings, console)?;
    if args.check {
        return check::check(args, &settings, &module, console);
    }
    if args.runs.is_some() || args.from_labels {
        return labelled(args, &settings, &module, console);
    }
    golden(args, &settings, module, console)
}

fn check_flags(args: &CalibrateArgs) -> Result<(), CliError> {
    if args.model.provider.len() > 1 {
        return Err(CliError::usage("a calibration is for one model: name one provider"));
    }
    if args.write && !args.model.names_provider() {
        return Err(CliError::Usage {
            message: "--write stores the calibration of a model, and no provider is named".to_owned(),
            suggestion: Some("Name who made the runs, with --provider and --model.".to_owned()),
        });
    }
    Ok(())
}

/// Loads the module as a run does, with its trust.
fn load(args: &CalibrateArgs, settings: &Settings, console: &Console) -> Result<Arc<Module>, CliError> {
    let host = Host { providers: Some(Providers::offline().into()), ..Host::new(settings) };
    let runtime = host.runtime(Use::Test)?.runtime;
    Ok(runtime::load(&runtime, &args.module, settings, console)?)
}

/// Runs the golden cases.
fn golden(
    args: &CalibrateArgs,
    settings: &Settings,
    module: Arc<Module>,
    console: &Console,
) -> Result<Exit, CliError> {
    let golden = Golden::new(args, settings, Arc::clone(&module), console)?;
    let problems = golden.problems();
    if !problems.is_empty() {
        console.diagnose(&problems);
        return Ok(Exit::Failed);
    }
    let key = golden.key()?;
    let state = settings.directories.state.as_deref();
    if !args.no_write {
        // Before the calls, which cost money.
        module.check_calibrations(state).map_err(|error| not_kept(&module, error))?;
    }
    let Some(found) = runtime::wait(golden.run())? else { return Ok(Exit::Interrupted) };
    note_left_out(&found.left_out, console);
    if found.runs.is_empty() {
        let message = format!("no case of {} has an answer with a confidence", module.manifest.name);
        return Err(ErrorBody::new(Code::InvalidInput, message).into());
    }
    let mut report = Report::new(&module.manifest.name, &args.kinds(), &found.runs, goal(args));
    report.compare(&found.by_kind);
    let kept = (!args.no_write).then(|| keep(settings, &module, key, &report)).transpose()?;
    finish(args, &report, kept, console)
}

/// Reads labelled runs: of a file, or of the log.
fn labelled(
    args: &CalibrateArgs,
    settings: &Settings,
    module: &Arc<Module>,
    console: &Console,
) -> Result<Exit, CliError> {
    let key = match args.write {
        true => Some(Golden::new(args, settings, Arc::clone(module), console)?.key()?),
        false => None,
    };
    let labels = match &args.runs {
        Some(file) => {
            let source = Source::new(file, Format::JsonLines);
            let Some(labels) = runtime::wait(read::labels(&source, &module.contract, &args.kinds()))? else {
                return Ok(Exit::Interrupted);
            };
            labels?
        }
        None => from_labels::labels(settings, module, &args.kinds(), console)?,
    };
    if !labels.errors.is_empty() {
        report_errors(&labels, console);
        return Ok(Exit::Failed);
    }
    if labels.runs.is_empty() {
        return Err(match &args.runs {
            Some(file) => read::no_runs(&Source::new(file, Format::JsonLines).name()),
            None => from_labels::no_runs(module),
        }
        .into());
    }
    let report = Report::new(&module.manifest.name, &args.kinds(), &labels.runs, goal(args));
    let kept = key.map(|key| keep(settings, module, key, &report)).transpose()?;
    finish(args, &report, kept, console)
}

fn goal(args: &CalibrateArgs) -> Option<Goal> {
    args.target.and_then(|target| Goal::new(target, args.risk.unwrap_or(GateRule::RISK)))
}

/// Stores the calibration. Returns the path.
fn keep(
    settings: &Settings,
    module: &Module,
    key: CalibrationKey,
    report: &Report,
) -> Result<PathBuf, CliError> {
    let new = NewCalibration {
        key,
        map: report.map().clone(),
        scores: report.scores(),
        compared: report.compared(),
    };
    let kept = module.keep_calibration(settings.directories.state.as_deref(), new);
    kept.map_err(|error| not_kept(module, error).into())
}

fn finish(
    args: &CalibrateArgs,
    report: &Report,
    kept: Option<PathBuf>,
    console: &Console,
) -> Result<Exit, CliError> {
    if let Some(file) = &args.html {
        emit::file(file, &report.page(), console)?;
    }
    if console.prints_json(args.format) {
        console.print_json(report)?;
    } else {
        console.print(&report.describe(console))?;
    }
    if let Some(path) = kept {
        console.note(&format!("wrote {}", path.display()));
    }
    Ok(if report.lacks_threshold() { Exit::Failed } else { Exit::Ok })
}

fn not_kept(module: &Module, error: KeepCalibrationError) -> ErrorBody {
    let name = &module.manifest.name;
    match error {
        KeepCalibrationError::NoDirectory => {
            let message = format!("there is no directory in which the calibration of `{name}` can be stored");
            ErrorBody::new(Code::PermissionDenied, message)
                .suggest(format!("Copy it with `cog new NAME --from {name}`, or use --no-write."))
        }
        KeepCalibrationError::Damaged { .. } => ErrorBody::new(Code::InvalidReference, error.to_string())
            .suggest("Remove the file, or use --no-write."),
        error => ErrorBody::new(Code::InvalidReference, error.to_string()),
    }
}

fn note_left_out(reasons: &[String], console: &Console) {
    for reason in reasons.iter().take(MAX_ERRORS) {
        console.note(&format!("left out: {reason}"));
    }
    note_more(reasons.len(), "cases are left out", console);
}

fn report_errors(labels: &Labels, console: &Console) {
    for error in labels.errors.iter().take(MAX_ERRORS) {
        console.error(&ErrorReport { location: Some(&error.location), ..ErrorReport::from(&error.body) });
    }
    note_more(labels.errors.len(), "lines are invalid", console);
}

fn note_more(count: usize, what: &str, console: &Console) {
    if let Some(more) = count.checked_sub(MAX_ERRORS).filter(|more| *more > 0) {
        console.note(&format!("{more} more {what}"));
    }
}
