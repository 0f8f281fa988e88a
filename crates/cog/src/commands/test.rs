//! `cog test`: the golden tests of modules (docs/spec/golden-tests.md).

mod case;
mod junit;
mod report;
mod update;

use std::{path::PathBuf, sync::Arc};

use cog_module::{Module, Origin, golden};
use cog_run::{Providers, Runtime};
use cog_spec::{Code, ErrorBody};

use self::report::{CaseReport, Report, Suite, Verdict};
use super::{emit, runtime, targets};
use crate::{
    args::{ReportFormat, TestArgs},
    commands::settings::load_settings,
    error::CliError,
    exit::Exit,
    output::{Console, Progress},
    settings::{Environment, Settings},
};

/// Runs the golden tests of the modules and reports on them.
pub(crate) fn test(args: &TestArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    if args.record && !args.model.names_provider() {
        return Err(CliError::usage("--record requires a provider: `offline` calls no model"));
    }
    emit::check(args.output.as_deref())?;
    let settings = load_settings(args.model.flags(), environment, console)?;
    let finder = targets::finder(&settings);
    let targets = targets::targets(&finder, &args.modules, args.all)?;
    let bench = Bench {
        args,
        settings: &settings,
        runtime: runtime::runtime(&settings, Providers::offline()),
        console,
    };
    let Some(suites) = runtime::wait(bench.suites(targets))? else { return Ok(Exit::Interrupted) };
    let report = Report { suites };
    bench.print(&report)?;
    Ok(report.exit())
}

/// What all test cases share.
struct Bench<'a> {
    args: &'a TestArgs,
    settings: &'a Settings,
    /// Loads modules; each case runs in its own runtime.
    runtime: Runtime,
    console: &'a Console,
}

impl Bench<'_> {
    async fn suites(&self, targets: Vec<targets::Target>) -> Vec<Suite> {
        let mut suites = Vec::new();
        for (name, origin) in targets {
            suites.push(self.suite(name, &origin).await);
        }
        suites
    }

    async fn suite(&self, name: String, origin: &Origin) -> Suite {
        let path = origin.path_of("").display().to_string();
        let target = match origin {
            Origin::Directory(_) => path.as_str(),
            _ => name.as_str(),
        };
        match runtime::load(&self.runtime, target, self.settings, self.console) {
            Ok(module) => Suite { cases: Ok(self.cases(&name, &module).await), module: name },
            Err(error) => Suite { cases: Err(error), module: name },
        }
    }

    async fn cases(&self, name: &str, module: &Arc<Module>) -> Vec<CaseReport> {
        let found = golden::discover(module);
        self.console.diagnose(&found.problems);
        let is_selected =
            |case: &golden::GoldenCase| self.args.case.as_deref().is_none_or(|part| case.name.contains(part));
        let mut reports: Vec<CaseReport> = found.problems.iter().map(CaseReport::unreadable).collect();
        for case in found.cases.iter().filter(|case| is_selected(case)) {
            let progress = Progress::begin(self.console, format!("{name} {}", case.name));
            reports.push(self.case(module, case).await);
            drop(progress);
        }
        reports
    }

    fn print(&self, report: &Report) -> Result<(), CliError> {
        let text = match self.args.format {
            ReportFormat::Human => report.describe(self.console.out().palette),
            ReportFormat::Json => cog_json::ToJson::to_json(report),
            ReportFormat::Junit => junit::xml(report)?,
        };
        match self.args.output.as_deref().filter(|path| !emit::is_stdout(path)) {
            Some(path) => emit::file(path, &text, self.console),
            None => Ok(self.console.print(&text)?),
        }
    }

    /// Returns the directory of a case's recording; only modules on disk can be recorded.
    fn cassette(&self, module: &Module, case: &golden::GoldenCase) -> Result<PathBuf, ErrorBody> {
        match (&module.origin, case.input_file.parent()) {
            (Origin::Directory(_), Some(directory)) => Ok(directory.join(format!("{}.cassette", case.name))),
            _ => Err(built_in(module)),
        }
    }
}

/// Creates the error of a change to a built-in module.
fn built_in(module: &Module) -> ErrorBody {
    let name = &module.manifest.name;
    ErrorBody::new(Code::PermissionDenied, format!("`{name}` is built in, so its tests cannot be changed"))
        .suggest(format!("copy it with `cog new NAME --from {name}`"))
}

impl CaseReport {
    /// Creates the report of a case with unreadable files. An input without an expected file is only a warning.
    fn unreadable(problem: &cog_module::Diagnostic) -> Self {
        let name = problem.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let verdict = match problem.severity {
            cog_module::Severity::Error => Verdict::failed("", problem.rule.as_str(), &problem.message),
            cog_module::Severity::Warning => Verdict::ContractOnly,
        };
        Self { name, verdict, time_ms: None }
    }
}
