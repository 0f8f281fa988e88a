//! `cog calibrate --check`: whether the stored calibrations of a module still hold, for CI.

use std::collections::BTreeSet;

use cog_batch::{Format, Source};
use cog_host::settings::Settings;
use cog_json::{Array, ToJson, Writer};
use cog_module::{
    Module,
    calibration::{CalibrationEntry, CalibrationKey},
};
use cog_spec::{Calibration, Code, ErrorBody};
use cog_trust::{Gate, Goal, Observation, Run, Sample, drift};

use super::{goal, read, report_errors};
use crate::{
    args::CalibrateArgs,
    commands::runtime,
    error::{CliError, Exit},
    output::{Console, Table},
};

/// The probability below which a difference of the scores is called drift: by chance, it is found in one of 100 checks.
const DRIFT: f64 = 0.01;

/// The state of a calibration.
struct Checked {
    model: String,
    cases: u64,
    problems: Vec<String>,
}

/// Checks each calibration, or the one of the model that the flags name. The exit code is 1 if one has a problem, or if there is none.
pub(super) fn check(
    args: &CalibrateArgs,
    settings: &Settings,
    module: &Module,
    console: &Console,
) -> Result<Exit, CliError> {
    let found = module.calibrations(settings.directories.state.as_deref());
    if let Some(problem) = found.problem() {
        let error = ErrorBody::new(Code::InvalidReference, problem);
        return Err(error.suggest("Remove the file, and run `cog calibrate` again.").into());
    }
    let named = |calibration: &&Calibration| {
        let provider = args.model.provider.first();
        provider.is_none_or(|name| *name == calibration.provider)
            && args.model.model.as_ref().is_none_or(|name| *name == calibration.model)
    };
    let kinds: BTreeSet<&str> =
        found.models().filter(named).flat_map(|calibration| calibration.map.kinds()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let recent = match &args.runs {
        None => None,
        Some(runs) => {
            let source = Source::new(runs, Format::JsonLines);
            let Some(runs) = runtime::wait(read::unlabelled(&source, &module.contract, &kinds))? else {
                return Ok(Exit::Interrupted);
            };
            let runs = runs?;
            if !runs.errors.is_empty() {
                report_errors(&runs, console);
                return Ok(Exit::Failed);
            }
            Some(runs.runs)
        }
    };
    let goal = goal(args).or_else(|| {
        let gate = module.manifest.confidence.gate?;
        Goal::new(gate.accuracy, gate.risk)
    });
    let checked: Vec<Checked> = found
        .models()
        .filter(named)
        .map(|calibration| {
            let key = CalibrationKey {
                provider: calibration.provider.clone(),
                model: calibration.model.clone(),
                effort: calibration.effort,
                form: calibration.form,
                evidence: calibration.collected.parse().unwrap_or_default(),
            };
            let mut problems = Vec::new();
            if let CalibrationEntry::Stale(_, why) = found.find(module, &key) {
                problems.push(format!("stale: {why}"));
            }
            problems.extend(goal.and_then(|goal| too_few(calibration, goal)));
            problems.extend(recent.as_ref().and_then(|recent| drifted(calibration, &kinds, recent)));
            Checked {
                model: format!("{}/{}", calibration.provider, calibration.model),
                cases: calibration.cases().cases,
                problems,
            }
        })
        .collect();
    if checked.is_empty() {
        let message = format!("{} has no calibration of this model", module.manifest.name);
        return Err(ErrorBody::new(Code::InvalidReference, message)
            .suggest("Run `cog calibrate MODULE --provider NAME`.")
            .into());
    }
    if console.prints_json(args.format) {
        console.print_json(&CheckReport(&checked))?;
    } else {
        console.print(&describe(&checked, console))?;
    }
    let is_good = checked.iter().all(|checked| checked.problems.is_empty());
    Ok(if is_good { Exit::Ok } else { Exit::Failed })
}

/// Returns why the cases promise nothing.
fn too_few(calibration: &Calibration, goal: Goal) -> Option<String> {
    let target = goal.target();
    match goal.gate_of_scores(&calibration.scores) {
        Gate::Threshold { .. } => None,
        Gate::Needed { answers, .. } => Some(format!(
            "too few cases: {answers} more right answers are needed for an accuracy of {target}"
        )),
    }
}

/// Returns how recent runs differ from the cases. `kinds` names the numbers of each run.
fn drifted(calibration: &Calibration, kinds: &[&str], recent: &[Observation]) -> Option<String> {
    let of_run = |run: &Observation| {
        let value = |kind: &str| {
            kinds.iter().zip(run.evidence()).find_map(|(name, value)| (*name == kind).then_some(*value))
        };
        calibration.map.score(value).ok()
    };
    let runs = recent.iter().enumerate();
    let runs: Vec<Run> = runs.filter_map(|(case, run)| Run::new(case, of_run(run)?, false)).collect();
    let recent = Sample::new(&runs);
    let of_cases = match calibration.compared.as_slice() {
        [] => &calibration.scores[..],
        compared => compared,
    };
    let scores = recent.scores();
    let drift = drift::compare(of_cases, &scores).filter(|drift| drift.p_value < DRIFT)?;
    let mean = recent.stated_mean().unwrap_or_default();
    let weights = of_cases.iter().map(|count| count.score * count.cases as f64);
    let of_cases = weights.sum::<f64>() / calibration.cases().cases.max(1) as f64;
    let kinds: Vec<String> = calibration.map.kinds().map(|kind| format!("`{kind}`")).collect();
    Some(format!(
        "drifted: recent runs have a mean of {mean:.3} by {}, the cases {of_cases:.3} (p = {:.2e})",
        kinds.join(", "),
        drift.p_value
    ))
}

fn describe(checked: &[Checked], console: &Console) -> String {
    let mut table = Table::new(["model", "cases", "state"]);
    for Checked { model, cases, problems } in checked {
        let state = if problems.is_empty() { "ok".to_owned() } else { problems.join("; ") };
        table.row([model.clone(), cases.to_string(), state]);
    }
    table.render(console.out().palette, console.out_columns())
}

struct CheckReport<'a>(&'a [Checked]);

impl ToJson for CheckReport<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("ok", &self.0.iter().all(|checked| checked.problems.is_empty()));
            w.field("calibrations", &Array(self.0));
        });
    }
}

impl ToJson for Checked {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("model", &self.model);
            w.field("cases", &self.cases);
            w.field("problems", &self.problems[..]);
        });
    }
}
