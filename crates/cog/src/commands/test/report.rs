//! The test report, as text and as JSON.

use std::path::PathBuf;

use cog_json::{Array, ToJson, Writer};
use cog_module::{Diagnostic, Severity, golden::Mismatch};
use cog_spec::{Code, ErrorBody};
use cog_trust::{
    Rate, interval,
    repeat::{self, PassRate},
};

use super::{
    answer::Answer,
    baseline::Comparison,
    cascade::{self, Cascade},
    figures::Figures,
    forms::Outcome,
    plan::Column,
};
use crate::{
    error::Exit,
    output::{Console, Palette, Table},
};

/// The report of all modules.
pub(super) struct Report {
    pub(super) suites: Vec<Suite>,
    /// Whether a case that is only checked against the contract counts as failed.
    pub(super) requires_model: bool,
    /// Whether a module without cases counts as failed.
    pub(super) requires_tests: bool,
    /// Whether the models are a cascade.
    pub(super) is_cascade: bool,
    /// The comparison with the report of another run, with `--baseline`.
    pub(super) comparison: Option<Comparison>,
}

/// The report of one module, on one model if several are compared.
pub(super) struct Suite {
    /// The name of the module as given.
    pub(super) module: String,
    /// The provider and the model, if several are compared.
    pub(super) column: Option<Column>,
    /// Its cases, or the error of loading it.
    pub(super) cases: Result<Vec<CaseReport>, ErrorBody>,
}

/// The report of one case.
pub(super) struct CaseReport {
    pub(super) name: String,
    /// The expected file, or the file that cannot be read.
    pub(super) file: PathBuf,
    /// Its runs; one, unless it is repeated.
    pub(super) attempts: Vec<Attempt>,
    /// How many of them must pass.
    pub(super) required: usize,
}

/// The result of one run of a case.
pub(super) struct Attempt {
    pub(super) verdict: Verdict,
    /// What the run took, if there was one.
    pub(super) figures: Option<Figures>,
    /// The answer, if it failed.
    pub(super) answer: Option<Answer>,
}

impl Attempt {
    /// Creates an attempt without an answer.
    pub(super) fn new(verdict: Verdict) -> Self {
        Self { verdict, figures: None, answer: None }
    }
}

/// The verdict of a case.
pub(in crate::commands) enum Verdict {
    /// The answer matches.
    Passed,
    /// The answer differs.
    Failed(Vec<Mismatch>),
    /// There is no answer: the provider failed, a limit was reached, or the recording is of another request.
    Error(Vec<Mismatch>),
    /// The answer differed, and replaced the expected one.
    Updated,
    /// No model was called; the input and the expected file match the schema.
    ContractOnly,
    /// The answer matches, but no model judged its criteria.
    NotJudged,
}

impl Verdict {
    /// Creates a failure with one mismatch.
    pub(super) fn failed(path: &str, rule: &str, message: &str) -> Self {
        Verdict::Failed(vec![mismatch(path, rule, message)])
    }

    /// Creates the verdict of a run without an answer.
    pub(super) fn error(rule: &str, message: &str) -> Self {
        Verdict::Error(vec![mismatch("", rule, message)])
    }

    /// Returns the name of the verdict.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Error(_) => "error",
            Verdict::Updated => "updated",
            Verdict::ContractOnly => "contract only",
            Verdict::NotJudged => "not judged",
        }
    }

    /// Whether the answer is right.
    pub(super) fn is_passed(&self) -> bool {
        matches!(self, Verdict::Passed | Verdict::Updated)
    }

    /// Returns the mismatches.
    pub(in crate::commands) fn mismatches(&self) -> &[Mismatch] {
        match self {
            Verdict::Failed(mismatches) | Verdict::Error(mismatches) => mismatches,
            Verdict::Passed | Verdict::Updated | Verdict::ContractOnly | Verdict::NotJudged => &[],
        }
    }
}

fn mismatch(path: &str, rule: &str, message: &str) -> Mismatch {
    Mismatch { path: path.to_owned(), rule: rule.to_owned(), message: message.to_owned() }
}

/// The verdicts, in the order of the summary.
const VERDICTS: [&str; 6] = ["passed", "failed", "error", "updated", "contract only", "not judged"];

/// The confidence of the intervals.
pub(super) const INTERVAL: f64 = 0.95;

impl Report {
    /// Returns the exit code; an invalid module outranks a failed test.
    pub(super) fn exit(&self) -> Exit {
        let mut errors = self.suites.iter().filter_map(|suite| suite.cases.as_ref().err());
        if errors.any(|error| error.code == Code::ModuleInvalid.into()) {
            return Exit::Invalid;
        }
        let is_missing = self.suites.iter().any(|suite| suite.cases.is_err());
        let is_empty = self.requires_tests && self.suites.iter().any(Suite::is_empty);
        let is_unanswered = self.requires_model && self.count("contract only") + self.count("not judged") > 0;
        // Compared with another run, it matters whether the answers are worse, and not whether all are right.
        let is_worse = match &self.comparison {
            Some(comparison) => comparison.fails(),
            // The first model of a cascade need not be right.
            None if self.is_cascade => false,
            None => self.count("failed") > 0,
        };
        if is_missing || is_empty || is_unanswered || is_worse || self.count("error") > 0 {
            Exit::Failed
        } else {
            Exit::Ok
        }
    }

    /// Returns the number of cases with a verdict.
    pub(super) fn count(&self, verdict: &str) -> usize {
        self.suites.iter().map(|suite| suite.count(verdict)).sum()
    }

    /// Formats the counts: `3 passed, 1 failed`.
    pub(super) fn summary(&self) -> String {
        let counts = VERDICTS.map(|verdict| (verdict, self.count(verdict)));
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<_> = counts.map(|(verdict, count)| format!("{count} {verdict}")).collect();
        if parts.is_empty() { "no golden tests".to_owned() } else { parts.join(", ") }
    }

    /// Returns the figures of all runs.
    fn figures(&self) -> Figures {
        self.suites.iter().fold(Figures::default(), |sum, suite| sum.plus(&suite.figures()))
    }

    /// Returns how many of the runs with an answer passed, for each case with one. Several models have no rate in common.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let is_single = self.suites.iter().all(|suite| suite.column.is_none());
        self.suites.iter().filter(|_| is_single).flat_map(Suite::rates).collect()
    }

    /// Formats the rate of right answers, and what repeats say; empty if no case was answered.
    pub(super) fn rate_line(&self) -> String {
        let cases = self.rates();
        let Some(rate) = repeat::pass_rate(&cases, INTERVAL) else { return String::new() };
        let mut line = format!("right {:.0} %, 95 % interval {}", rate.share * 100.0, shown(&rate));
        let runs = cases.iter().map(|case| case.cases()).max().unwrap_or_default();
        if runs > 1
            && let Some(all) = repeat::pass_power(&cases, runs)
        {
            line += &format!("; all {runs} runs of a case right {:.0} %", all * 100.0);
        }
        line
    }

    /// Returns the cases of which some runs passed and others failed, with their counts.
    pub(super) fn flaky(&self) -> Vec<String> {
        let suites = self.suites.iter();
        let cases = suites.flat_map(|suite| suite.cases.iter().flatten().map(move |case| (suite, case)));
        let flaky = cases.filter(|(_, case)| case.is_flaky()).map(|(suite, case)| {
            let (passed, all) = case.passed();
            format!("{} {}, {passed} of {all} passed", suite.title(), case.name)
        });
        flaky.collect()
    }

    /// Formats the report as text.
    pub(super) fn describe(&self, console: &Console) -> String {
        let palette = console.out().palette;
        let mut text: String = self.suites.iter().map(|suite| suite.describe(palette)).collect();
        if self.suites.iter().any(|suite| suite.column.is_some()) {
            for table in self.grids() {
                text += &format!("\n{}", table.render(palette, console.out_columns()));
            }
            text += &format!("\n{}", self.matrix().render(palette, console.out_columns()));
            for (heading, table) in self.cascades().iter().map(Cascade::table) {
                text += &format!("\n{heading}\n{}", table.render(palette, console.out_columns()));
            }
        }
        text += &format!("\n{}\n", palette.bold(self.summary() + &self.figures().spent()));
        let rate = self.rate_line();
        if !rate.is_empty() {
            text += &format!("{}\n", palette.dim(rate));
        }
        self.flaky().iter().for_each(|case| text += &format!("{} {case}\n", palette.warning("flaky")));
        for line in self.comparison.iter().flat_map(Comparison::lines) {
            text += &format!("{line}\n");
        }
        if self.count("contract only") > 0 {
            let hint =
                "contract only: no model was called; use --provider NAME to run, --record to save replies";
            text += &format!("{}\n", palette.dim(hint));
        }
        if self.count("not judged") > 0 {
            let hint = "not judged: no model judged the criteria of `$judge`; use --judge NAME";
            text += &format!("{}\n", palette.dim(hint));
        }
        text
    }

    /// Returns the table that compares the models.
    fn matrix(&self) -> Table {
        let mut table = Table::new(COMPARED);
        self.comparison().into_iter().for_each(|row| table.row(row));
        table
    }

    /// Returns what each threshold gives, if the models are a cascade.
    fn cascades(&self) -> Vec<Cascade> {
        if self.is_cascade { cascade::of(self) } else { Vec::new() }
    }

    /// Returns for each module that ran on several models a table of its cases and the models.
    fn grids(&self) -> Vec<Table> {
        let modules = self.suites.chunk_by(|one, other| one.module == other.module);
        modules.filter(|suites| suites.len() > 1).filter_map(grid).collect()
    }

    /// Returns the cells of the comparison: a row for each module and model, then one for each model.
    pub(super) fn comparison(&self) -> Vec<[String; 8]> {
        let mut rows: Vec<_> = self.suites.iter().map(Suite::cells).collect();
        let mut columns: Vec<&Column> = Vec::new();
        for column in self.suites.iter().filter_map(|suite| suite.column.as_ref()) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        if columns.len() > 1 && self.suites.len() > columns.len() {
            rows.extend(columns.into_iter().map(|column| self.total(column)));
        }
        rows
    }

    /// Returns the row of a model for all modules.
    fn total(&self, column: &Column) -> [String; 8] {
        let mut figures = Figures::default();
        let mut passed = 0;
        let mut all = 0;
        let mut cases = Vec::new();
        for suite in self.suites.iter().filter(|suite| suite.column.as_ref() == Some(column)) {
            let (suite_passed, suite_all) = suite.counts();
            passed += suite_passed;
            all += suite_all;
            cases.extend(suite.rates());
            figures = figures.plus(&suite.figures());
        }
        let counts =
            Counted { passed: format!("{passed} of {all}"), rate: repeat::pass_rate(&cases, INTERVAL) };
        cells("all modules", column.to_string(), counts, &figures)
    }
}

/// The columns of the comparison.
pub(super) const COMPARED: [&str; 8] =
    ["module", "model", "passed", "95 % interval", "input", "output", "cost", "time"];

/// Formats the interval of a rate: `19 to 99 %`.
fn shown(rate: &PassRate) -> String {
    format!("{:.0} to {:.0} %", rate.interval.low * 100.0, rate.interval.high * 100.0)
}

/// How many runs of a row passed, and the rate of its cases.
struct Counted {
    passed: String,
    rate: Option<PassRate>,
}

/// Returns the cells of a row of the comparison.
fn cells(module: &str, model: String, counts: Counted, figures: &Figures) -> [String; 8] {
    let [input, output] = [figures.input(), figures.output()];
    let interval = counts.rate.as_ref().map(shown).unwrap_or_default();
    [module.to_owned(), model, counts.passed, interval, input, output, figures.shown_cost(), figures.time()]
}

/// Returns the table of the cases of a module and the models on which they ran; none if it has no cases.
fn grid(suites: &[Suite]) -> Option<Table> {
    let cases = suites.first()?.cases.as_ref().ok()?;
    let headings = suites.iter().filter_map(|suite| suite.column.as_ref()).map(Column::heading);
    let mut table = Table::with_headings(std::iter::once("CASE".to_owned()).chain(headings));
    for (index, case) in cases.iter().enumerate() {
        let verdicts = suites.iter().map(|suite| {
            let case = suite.cases.iter().flatten().nth(index);
            case.map(CaseReport::short_verdict).unwrap_or_default()
        });
        table.row(std::iter::once(case.name.clone()).chain(verdicts));
    }
    Some(table)
}

impl Suite {
    pub(super) fn is_empty(&self) -> bool {
        self.cases.as_ref().is_ok_and(Vec::is_empty)
    }

    /// Returns its row of the comparison.
    fn cells(&self) -> [String; 8] {
        let model = self.column.as_ref().map(ToString::to_string).unwrap_or_default();
        let counts = Counted { passed: self.passed(), rate: self.rate() };
        cells(&self.module, model, counts, &self.figures())
    }

    /// Returns how many of the runs with an answer passed, for each case with one.
    fn rates(&self) -> Vec<Rate> {
        self.cases.iter().flatten().filter_map(CaseReport::rate).collect()
    }

    fn rate(&self) -> Option<PassRate> {
        repeat::pass_rate(&self.rates(), INTERVAL)
    }

    fn count(&self, verdict: &str) -> usize {
        let cases = self.cases.iter().flatten();
        cases.filter(|case| case.verdict().as_str() == verdict).count()
    }

    /// Returns what all runs took.
    pub(super) fn figures(&self) -> Figures {
        let attempts = self.cases.iter().flatten().flat_map(|case| &case.attempts);
        attempts
            .filter_map(|attempt| attempt.figures.as_ref())
            .fold(Figures::default(), |sum, one| sum.plus(one))
    }

    /// Formats the share of runs that passed: `3 of 4`.
    pub(super) fn passed(&self) -> String {
        let (passed, all) = self.counts();
        if self.cases.is_err() { "invalid".to_owned() } else { format!("{passed} of {all}") }
    }

    /// Returns the number of runs that passed, and of all.
    fn counts(&self) -> (usize, usize) {
        let cases = self.cases.iter().flatten();
        cases.map(CaseReport::passed).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }

    /// Formats its name, with the model if several are compared.
    pub(super) fn title(&self) -> String {
        match &self.column {
            Some(column) => format!("{} on {column}", self.module),
            None => self.module.clone(),
        }
    }

    fn describe(&self, palette: Palette) -> String {
        let name = palette.name(self.title());
        match &self.cases {
            Err(error) => format!("{name}\n  {} {}\n", palette.error("invalid"), error.message),
            Ok(cases) if cases.is_empty() => format!("{name}\n  {}\n", palette.dim("no golden tests")),
            Ok(cases) => {
                format!("{name}\n{}", cases.iter().map(|case| case.describe(palette)).collect::<String>())
            }
        }
    }
}

impl CaseReport {
    /// Creates the report of a case with unreadable files. An input without an expected file is only a warning.
    pub(super) fn unreadable(problem: &Diagnostic) -> Self {
        let name = problem.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let verdict = match problem.severity {
            Severity::Error => Verdict::failed("", problem.rule.as_str(), &problem.message),
            Severity::Warning => Verdict::ContractOnly,
        };
        Self { name, file: problem.file.clone(), attempts: vec![Attempt::new(verdict)], required: 1 }
    }

    /// Returns the attempt that decides: one that failed if too few can pass, otherwise one that passed if enough did, otherwise one
    /// without an answer.
    pub(super) fn decisive(&self) -> Option<&Attempt> {
        let find = |is_it: fn(&Verdict) -> bool| self.attempts.iter().find(|attempt| is_it(&attempt.verdict));
        if self.failed_runs() + self.required > self.attempts.len() {
            return find(|verdict| matches!(verdict, Verdict::Failed(_)));
        }
        if self.passed().0 >= self.required {
            return find(Verdict::is_passed);
        }
        find(|verdict| matches!(verdict, Verdict::Error(_)))
            .or_else(|| find(|verdict| matches!(verdict, Verdict::ContractOnly | Verdict::NotJudged)))
            .or_else(|| self.attempts.first())
    }

    fn failed_runs(&self) -> usize {
        self.attempts.iter().filter(|attempt| matches!(attempt.verdict, Verdict::Failed(_))).count()
    }

    /// Returns how many of the runs with an answer passed; none if no run has one.
    fn rate(&self) -> Option<Rate> {
        let is_wrong =
            |attempt: &&Attempt| attempt.figures.is_some() && matches!(attempt.verdict, Verdict::Failed(_));
        let passed = self.passed().0;
        let answered = passed + self.attempts.iter().filter(is_wrong).count();
        Rate::new(passed as u64, answered as u64).filter(|_| answered > 0)
    }

    /// Formats the exact interval of the rate at which the case passes: `28 to 99 %`.
    fn interval(&self) -> Option<String> {
        let interval = interval::exact(self.rate()?, INTERVAL);
        Some(format!("{:.0} to {:.0} %", interval.low * 100.0, interval.high * 100.0))
    }

    /// Whether some runs passed and others failed.
    pub(super) fn is_flaky(&self) -> bool {
        self.passed().0 > 0 && self.failed_runs() > 0
    }

    /// Formats the verdict for a table: `passed`, `failed 2 of 5`.
    fn short_verdict(&self) -> String {
        let verdict = self.verdict().as_str();
        match self.passed() {
            (passed, all) if all > 1 => format!("{verdict} {passed} of {all}"),
            _ => verdict.to_owned(),
        }
    }

    /// Returns the verdict of the decisive attempt.
    pub(super) fn verdict(&self) -> &Verdict {
        self.decisive().map_or(&Verdict::ContractOnly, |attempt| &attempt.verdict)
    }

    /// Returns the outcome of the case for a comparison of forms.
    pub(super) fn outcome(&self) -> Outcome {
        let is_answered = |attempt: &Attempt| attempt.figures.as_ref().is_some_and(|it| it.unanswered == 0);
        match self.verdict() {
            Verdict::Passed if self.attempts.iter().all(is_answered) => Outcome::Right,
            Verdict::Failed(_) if self.attempts.iter().all(is_answered) => Outcome::Wrong,
            _ => Outcome::Unknown,
        }
    }

    /// Returns the number of runs that passed, and of all.
    pub(super) fn passed(&self) -> (usize, usize) {
        let verdicts = self.attempts.iter().map(|attempt| &attempt.verdict);
        let passed = verdicts.filter(|verdict| verdict.is_passed());
        (passed.count(), self.attempts.len())
    }

    /// Returns what all its runs took.
    pub(super) fn figures(&self) -> Option<Figures> {
        let figures = self.attempts.iter().filter_map(|attempt| attempt.figures.as_ref());
        figures.fold(None, |sum: Option<Figures>, one| Some(sum.unwrap_or_default().plus(one)))
    }

    /// Formats what its runs took: `3 ms`, or `8 of 10 passed, 320 ms, confidence 0.8 to 0.95`.
    pub(super) fn facts(&self) -> String {
        let Some(figures) = self.figures() else { return String::new() };
        if self.attempts.len() == 1 {
            return figures.time();
        }
        let (passed, all) = self.passed();
        let interval = self.interval().map(|interval| format!(" ({interval})")).unwrap_or_default();
        format!("{passed} of {all} passed{interval}, {}{}", figures.time(), figures.confidence())
    }

    fn describe(&self, palette: Palette) -> String {
        let verdict = self.verdict();
        let shown = format!("{:<13}", verdict.as_str());
        let shown = match verdict {
            Verdict::Passed => palette.success(shown),
            Verdict::Failed(_) | Verdict::Error(_) => palette.error(shown),
            Verdict::Updated | Verdict::ContractOnly | Verdict::NotJudged => palette.warning(shown),
        };
        let facts = Some(self.facts()).filter(|facts| !facts.is_empty());
        let facts = facts.map(|facts| palette.dim(format_args!(" {facts}"))).unwrap_or_default();
        let mut text = format!("  {shown} {}{facts}\n", self.name);
        for Mismatch { path, message, .. } in verdict.mismatches() {
            let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
            text += &format!("      {place}{message}\n");
        }
        let answer = self.decisive().and_then(|attempt| attempt.answer.as_ref());
        text + &answer.map(|answer| answer.describe(palette)).unwrap_or_default()
    }
}

/// Written by hand: the counts are computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for verdict in VERDICTS {
                w.field(&verdict.replace(' ', "_"), &(self.count(verdict) as u64));
            }
            w.field("cost", &self.figures().cost());
            self.figures().write_spent(w.key("spent"));
            write_rate(w, repeat::pass_rate(&self.rates(), INTERVAL));
            if let Some(comparison) = &self.comparison {
                w.field("baseline", comparison);
            }
            if self.is_cascade {
                w.field("cascades", &Array(&self.cascades()));
            }
            w.field("modules", &Array(&self.suites));
        });
    }
}

/// Writes the rate of right answers with its exact interval; null if no case was answered.
fn write_rate(w: &mut Writer<'_>, rate: Option<PassRate>) {
    match rate {
        Some(PassRate { share, cases, interval }) => w.key("rate").object(|w| {
            w.field("right", &share);
            w.field("cases", &cases);
            w.field("interval", &[interval.low, interval.high][..]);
        }),
        None => w.key("rate").null(),
    }
}

/// Written by hand: it has either cases or an error.
impl ToJson for Suite {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            w.optional("provider", &self.column.as_ref().map(|column| column.provider.as_str()));
            w.optional("model", &self.column.as_ref().map(|column| column.model.as_str()));
            write_rate(w, self.rate());
            match &self.cases {
                Ok(cases) => w.field("cases", &Array(cases)),
                Err(error) => w.field("error", error),
            };
        });
    }
}

/// Written by hand: the verdict is written as text.
impl ToJson for CaseReport {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("verdict", &self.verdict().as_str().replace(' ', "_"));
            let (passed, all) = self.passed();
            w.field("runs", &(all as u64));
            w.field("passed_runs", &(passed as u64));
            w.field("flaky", &self.is_flaky());
            if let Some(figures) = self.figures() {
                figures.write_members(w);
            }
            w.field("mismatches", self.verdict().mismatches());
            let answer = self.decisive().and_then(|attempt| attempt.answer.as_ref());
            w.optional("answer", &answer.map(Answer::found_value));
        });
    }
}
