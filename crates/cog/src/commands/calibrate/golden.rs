//! Runs the golden cases of a module, whose truth is known.

use std::{cell::RefCell, sync::Arc};

use cog_host::{
    Host, Use,
    mcp::{self, Needed},
    settings::Settings,
};
use cog_json::{ToJson as _, Value};
use cog_module::{
    Diagnostic, Module, Rule,
    calibration::CalibrationKey,
    golden::{self, GoldenCase},
};
use cog_run::{Budget, BudgetLimits, RunContext, RunInput, RunOptions, Runtime};
use cog_spec::{Calibration, Code, Envelope, ErrorBody, Evidence};
use cog_trust::{Observation, Run};
use futures_util::{StreamExt as _, stream};

use crate::{
    args::CalibrateArgs,
    commands::test::is_about_provider,
    error::CliError,
    output::{Console, Progress},
};

/// The golden cases of a module, and what runs them.
pub(super) struct Golden<'a> {
    args: &'a CalibrateArgs,
    runtime: Runtime,
    module: Arc<Module>,
    cases: Vec<GoldenCase>,
    budget: Option<Budget>,
    console: &'a Console,
}

/// The runs of the cases.
pub(super) struct GoldenRuns {
    pub(super) runs: Vec<Observation>,
    /// The runs with each kind of evidence, for a comparison.
    pub(super) by_kind: Vec<KindRuns>,
    /// The cases without a confidence, each with the reason.
    pub(super) left_out: Vec<String>,
}

/// The runs whose answers have a kind of evidence.
pub(super) struct KindRuns {
    pub(super) kind: &'static str,
    pub(super) runs: Vec<Run>,
}

impl<'a> Golden<'a> {
    /// Finds the cases whose truth is known.
    ///
    /// # Errors
    /// E1006 if there is none. A provider that calls no model, and truths that break the contract or contradict each other.
    pub(super) fn new(
        args: &'a CalibrateArgs,
        settings: &Settings,
        module: Arc<Module>,
        console: &'a Console,
    ) -> Result<Self, CliError> {
        let found = golden::discover(&module);
        console.diagnose(&found.problems);
        let (cases, judged): (Vec<_>, Vec<_>) =
            found.cases.into_iter().partition(|case| case.criteria.is_empty());
        if !judged.is_empty() {
            console
                .note(&format!("{} cases with `$judge` have no known truth, and are left out", judged.len()));
        }
        if cases.is_empty() {
            return Err(no_cases(&module).into());
        }
        let started = mcp::start(settings, Needed::ByLoaded(std::slice::from_ref(&module)))?;
        started.notes.iter().for_each(|sentence| console.note(sentence));
        let host = Host { tools: started.tools()?, ..Host::new(settings) };
        let budget = args.max_cost.map(|max_cost| {
            let limits = BudgetLimits { max_cost: Some(max_cost), ..BudgetLimits::default() };
            Budget::new("`cog calibrate`", limits)
        });
        let runtime = host.runtime(Use::Test)?.runtime;
        Ok(Self { args, runtime, module, cases, budget, console })
    }

    /// Returns what is wrong with the truths.
    pub(super) fn problems(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (index, case) in self.cases.iter().enumerate() {
            for (rule, mismatch) in golden::check_case(&self.module, case) {
                let file = if rule == Rule::GoldenInput { &case.input_file } else { &case.expected_file };
                let message = format!("`{}`: {}", mismatch.path, mismatch.message);
                problems.push(Diagnostic::error(rule, file, message));
            }
            let same = self.cases.iter().take(index).find(|other| other.input == case.input);
            if let Some(other) = same.filter(|other| differs(other, case)) {
                let message = format!("`{}` has the same input and another truth", other.name);
                problems.push(Diagnostic::error(Rule::GoldenExpected, &case.expected_file, message));
            }
        }
        problems
    }

    /// Returns how the model is asked.
    ///
    /// # Errors
    /// E4001 if no model is called, E1001 if the parts of the module give its answer, and the errors before a call.
    pub(super) fn key(&self) -> Result<CalibrationKey, ErrorBody> {
        let mut first_error = None;
        for case in &self.cases {
            let input = RunInput::Json(case.input.clone());
            match self.runtime.calibration_key(&self.module, input, self.options()) {
                Ok(key) => return Ok(key),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(first_error.unwrap_or_else(|| no_cases(&self.module)))
    }

    /// Runs every case, in order.
    pub(super) async fn run(&self) -> GoldenRuns {
        let total = self.cases.len();
        let progress = RefCell::new(Progress::begin(self.console, "cases"));
        let runs = (1..).zip(&self.cases).map(|(number, case)| {
            let progress = &progress;
            async move {
                progress.borrow_mut().show(format!("{} · {number} of {total}", case.name));
                self.answer(case).await
            }
        });
        let answers: Vec<Envelope> = stream::iter(runs).buffered(self.args.jobs as usize).collect().await;
        let by_kind = Evidence::KINDS.iter().map(|kind| KindRuns { kind, runs: Vec::new() });
        let mut found = GoldenRuns { runs: Vec::new(), by_kind: by_kind.collect(), left_out: Vec::new() };
        let kinds = self.args.kinds();
        for (number, (case, envelope)) in self.cases.iter().zip(&answers).enumerate() {
            let is_right = match judge(case, envelope) {
                Ok(is_right) => is_right,
                Err(reason) => {
                    found.left_out.push(format!("{}: {reason}", case.name));
                    continue;
                }
            };
            let of_case = kinds.iter().map(|kind| value(envelope, kind).ok_or(kind));
            match of_case.collect::<Result<Vec<f64>, _>>() {
                Ok(evidence) => found.runs.extend(Observation::new(number, evidence, is_right)),
                Err(kind) => found.left_out.push(format!("{}: the answer has no `{kind}`", case.name)),
            }
            let run = |kind: &str| Run::new(number, value(envelope, kind)?, is_right);
            found.by_kind.iter_mut().for_each(|of_kind| of_kind.runs.extend(run(of_kind.kind)));
        }
        found.by_kind.retain(|of_kind| !of_kind.runs.is_empty());
        found
    }

    async fn answer(&self, case: &GoldenCase) -> Envelope {
        let input = RunInput::Json(case.input.clone());
        let mut context = RunContext::default();
        context.is_folded = true;
        context.is_uncached = true;
        context.is_calibration = true;
        match self.runtime.prepare(&self.module, input, self.options(), context) {
            Ok(chunks) => chunks.fold().await,
            Err(refused) => *refused,
        }
    }

    fn options(&self) -> RunOptions {
        let of_manifest = self.module.manifest.evidence.request.clone();
        let evidence = self.args.kinds().iter().fold(of_manifest, |request, kind| request.with_kind(kind));
        RunOptions {
            evidence: Some(evidence),
            generation: self.args.generation.generation(),
            budgets: Vec::from_iter(self.budget.clone()),
            ..RunOptions::default()
        }
    }
}

/// Returns whether an answer is right, or why there is none: an answer that does not exist has no confidence.
fn judge(case: &GoldenCase, envelope: &Envelope) -> Result<bool, String> {
    let json = Value::parse(&envelope.to_json()).unwrap_or_default();
    let is_right = golden::compare(&case.expected, json.node()).is_empty();
    match envelope.error().filter(|error| !is_right || is_about_provider(error)) {
        Some(error) => Err(format!("{}: {}", error.code, error.message)),
        None => Ok(is_right),
    }
}

/// Returns a number of an answer: its confidence, or a kind of evidence.
fn value(envelope: &Envelope, kind: &str) -> Option<f64> {
    match kind {
        Calibration::STATED => envelope.meta.confidence,
        kind => envelope.meta.runtime.evidence.as_ref()?.value(kind),
    }
}

/// Whether two cases expect different answers.
fn differs(one: &GoldenCase, other: &GoldenCase) -> bool {
    match (one.expected.answer(), other.expected.answer()) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

fn no_cases(module: &Module) -> ErrorBody {
    let name = &module.manifest.name;
    let message = format!("{name} has no golden tests, so the truth of no answer is known");
    ErrorBody::new(Code::InvalidReference, message).suggest(
        "Write tests/NAME.input.json and tests/NAME.expected.json, or label runs and pass them with --runs.",
    )
}
