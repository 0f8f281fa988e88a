//! `cog calibrate`: what the confidences of a module are worth, and above which an answer can be accepted.

mod from_labels;
mod read;
mod report;

use cog_batch::{Format, Source};
use cog_host::settings::{Environment, Flags, Settings};
use cog_trust::Goal;

use self::{read::Labels, report::Report};
use super::runtime;
use crate::{
    args::CalibrateArgs,
    error::{CliError, Exit},
    output::{Console, ErrorReport},
};

/// The invalid lines that are reported.
const MAX_ERRORS: usize = 20;

/// How often a promise may be broken, unless `--risk` says it.
const RISK: f64 = 0.1;

/// Prints what the stated confidences of labelled runs are worth. With a target, the exit code says whether there is a threshold.
pub(crate) fn calibrate(
    args: &CalibrateArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let module = cog_module::load(&settings.finder().find(&args.module)?)?;
    console.diagnose(&module.warnings);
    let labels = match &args.runs {
        Some(file) => {
            let source = Source::new(file, Format::JsonLines);
            let Some(labels) = runtime::wait(read::labels(&source, &module.contract))? else {
                return Ok(Exit::Interrupted);
            };
            labels?
        }
        None => from_labels::labels(&settings, &module, console)?,
    };
    if !labels.errors.is_empty() {
        report_errors(&labels, console);
        return Ok(Exit::Failed);
    }
    if labels.runs.is_empty() {
        return Err(match &args.runs {
            Some(file) => read::no_runs(&Source::new(file, Format::JsonLines).name()),
            None => from_labels::no_runs(&module),
        }
        .into());
    }
    let goal = args.target.and_then(|target| Goal::new(target, args.risk.unwrap_or(RISK)));
    let report = Report::new(&module.manifest.name, &labels.runs, goal);
    if console.prints_json(args.format) {
        console.print_json(&report)?;
    } else {
        console.print(&report.describe(console))?;
    }
    Ok(if report.lacks_threshold() { Exit::Failed } else { Exit::Ok })
}

fn report_errors(labels: &Labels, console: &Console) {
    for error in labels.errors.iter().take(MAX_ERRORS) {
        console.error(&ErrorReport { location: Some(&error.location), ..ErrorReport::from(&error.body) });
    }
    if let Some(more) = labels.errors.len().checked_sub(MAX_ERRORS).filter(|more| *more > 0) {
        console.note(&format!("{more} more lines are invalid"));
    }
}
