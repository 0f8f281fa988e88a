//! `cog test`: the golden tests of modules (docs/spec/golden-tests.md).

pub(super) mod add;
mod answer;
mod baseline;
mod cascade;
mod case;
pub(super) mod figures;
mod formats;
mod forms;
mod import;
pub(super) mod judge;
mod last;
pub(super) mod live;
mod plan;
pub(super) mod report;

use std::cell::RefCell;

use cog_host::{
    Host, Use, providers,
    settings::{Environment, Settings},
};
use cog_run::{Budget, BudgetLimits, Providers, Runtime};
use cog_spec::ErrorBody;
use futures_util::{StreamExt as _, stream};

pub(super) use self::figures::is_about_provider;
use self::{
    baseline::Baseline,
    last::LastFailed,
    plan::{Job, Plan},
    report::{Attempt, CaseReport, Report, Suite},
};
use super::{emit, runtime};
use crate::{
    args::{ReportFormat, Required, TestArgs, TestCommand, TestCommandArgs},
    commands::runtime::load_run_settings,
    error::{CliError, Exit},
    output::{Console, Progress},
};

/// Runs the subcommand, or the golden tests.
pub(crate) fn test(
    args: &TestCommandArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    match &args.command {
        Some(TestCommand::Import(args)) => import::import(args, environment, console),
        Some(TestCommand::Add(args)) => add::add(args, environment, console),
        None => run(&args.test, environment, console),
    }
}

/// Runs the golden tests of the modules and reports on them.
fn run(args: &TestArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    emit::check(args.output.as_deref())?;
    forms::check(args)?;
    check_required(args)?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let settings = load_run_settings(args.flags(), environment, console)?;
    if args.record {
        check_recorded(&settings, console)?;
    }
    let targets = runtime::targets(&settings.finder(), &args.modules, args.all)?;
    let judge = args.judge.as_ref().map(|name| providers::named(&settings, name)).transpose()?;
    let bench = Bench {
        args,
        judge: judge.map(|providers| runtime_with(providers, &settings)).transpose()?,
        settings: &settings,
        budget: args.max_cost.map(budget),
        last: LastFailed::read(settings.directories.state.as_deref()),
        runtime: runtime_with(Providers::offline(), &settings)?,
        console,
    };
    let plan = bench.plan(targets)?;
    if args.forms {
        return forms::compare(&bench, &plan);
    }
    if plan.is_empty() && args.failed {
        console.note("no case failed when the modules were last tested");
        return Ok(Exit::Ok);
    }
    let Some(attempts) = runtime::wait(bench.attempts(&plan))? else { return Ok(Exit::Interrupted) };
    let modules = plan.modules();
    let mut report = bench.report(plan, attempts);
    if let Some(last) = bench.last.clone() {
        last.update(&modules, &report, console);
    }
    report.comparison = baseline.map(|baseline| baseline.compare(&report));
    bench.print(&bench.format(&report))?;
    Ok(report.exit())
}

/// Checks that `--require` counts the runs of `--repeat`.
fn check_required(args: &TestArgs) -> Result<(), CliError> {
    match args.require {
        Some(Required { of, .. }) if of != args.repeat => Err(CliError::Usage {
            message: format!("--require counts {of} runs, and --repeat makes {}", args.repeat),
            suggestion: Some(format!("Add `--repeat {of}`.")),
        }),
        _ => Ok(()),
    }
}

/// Returns a runtime for what is not a case: loading modules, and judging answers.
fn runtime_with(providers: Providers, settings: &Settings) -> Result<Runtime, ErrorBody> {
    let host = Host { providers: Some(providers.into()), ..Host::new(settings) };
    Ok(host.runtime(Use::Test)?.runtime)
}

/// Returns the budget of all calls.
fn budget(max_cost: f64) -> Budget {
    Budget::new("`cog test`", BudgetLimits { max_cost: Some(max_cost), ..BudgetLimits::default() })
}

/// Checks that a provider is selected whose answers can be recorded, and reports which.
fn check_recorded(settings: &Settings, console: &Console) -> Result<(), CliError> {
    let names = providers::names(settings)?;
    if names == cog_provider::OFFLINE {
        return Err(CliError::usage("--record requires a provider: `offline` calls no model"));
    }
    console.note(&format!("recording {names}"));
    Ok(())
}

/// What all test cases share.
struct Bench<'a> {
    args: &'a TestArgs,
    settings: &'a Settings,
    /// What all calls may cost together, with `--max-cost`.
    budget: Option<Budget>,
    /// The cases that failed when the modules were last tested; none without a state directory.
    last: Option<LastFailed>,
    /// Loads modules. Replays and recordings run in a runtime of their own.
    runtime: Runtime,
    /// Judges criteria, if `--judge` names a provider.
    judge: Option<Runtime>,
    console: &'a Console,
}

impl Bench<'_> {
    /// Runs every case of every module on every variant, as often as requested, in the order of [`Plan::jobs`].
    async fn attempts(&self, plan: &Plan) -> Vec<Attempt> {
        let jobs: Vec<_> = plan.jobs(self.args.repeat).collect();
        let progress = RefCell::new(Progress::begin(self.console, "tests"));
        let total = jobs.len();
        let runs = (1..).zip(jobs).map(|(number, job)| self.run(&progress, number, total, job));
        // In order, although the cases run at the same time: `report` distributes the attempts by their place.
        stream::iter(runs).buffered(self.args.jobs as usize).collect().await
    }

    async fn run(
        &self,
        progress: &RefCell<Progress<'_>>,
        number: usize,
        total: usize,
        job: Job<'_>,
    ) -> Attempt {
        progress.borrow_mut().show(format!("{} {} · {number} of {total}", job.name, job.case.name));
        self.attempt(&job).await
    }

    fn report(&self, plan: Plan, attempts: Vec<Attempt>) -> Report {
        let mut attempts = attempts.into_iter();
        let mut suites = Vec::new();
        for (variant, module) in plan.suites() {
            let cases = match &module.loaded {
                Ok(loaded) => {
                    let unreadable = loaded.problems.iter().map(CaseReport::unreadable);
                    let read = loaded.cases.iter().map(|case| CaseReport {
                        name: case.name.clone(),
                        file: case.expected_file.clone(),
                        attempts: attempts.by_ref().take(self.args.repeat as usize).collect(),
                        required: self.args.require.map_or(self.args.repeat, |required| required.passed)
                            as usize,
                    });
                    Ok(unreadable.chain(read).collect())
                }
                Err(error) => Err(error.clone()),
            };
            suites.push(Suite { module: module.name.clone(), column: variant.column.clone(), cases });
        }
        Report {
            suites,
            requires_model: self.args.require_model,
            requires_tests: !self.args.all,
            is_cascade: !self.args.cascade.is_empty(),
            comparison: None,
        }
    }

    fn format(&self, report: &Report) -> String {
        match self.args.format {
            ReportFormat::Human => report.describe(self.console),
            ReportFormat::Json => cog_json::ToJson::to_json(report),
            ReportFormat::Junit => formats::junit(report),
            ReportFormat::Html => formats::page(report),
            ReportFormat::Github => formats::annotations(report),
        }
    }

    fn print(&self, text: &str) -> Result<(), CliError> {
        match self.args.output.as_deref().filter(|path| !emit::is_stdout(path)) {
            Some(path) => emit::file(path, text, self.console),
            None => Ok(self.console.print(text)?),
        }
    }
}
