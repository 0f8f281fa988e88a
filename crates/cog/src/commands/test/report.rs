//! The test report, as text and as JSON.

use std::path::PathBuf;

use cog_json::{Array, ToJson, Writer};
use cog_module::{Diagnostic, Severity, golden::Mismatch};
use cog_spec::{Category, Code, Cost, Envelope, ErrorBody, ErrorCode, Usage};

use super::{answer::Answer, forms::Outcome, plan::Column};
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
pub(super) enum Verdict {
    /// The answer matches.
    Passed,
    /// The answer differs.
    Failed(Vec<Mismatch>),
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
        Verdict::Failed(vec![Mismatch {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: message.to_owned(),
        }])
    }

    /// Returns the name of the verdict.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Updated => "updated",
            Verdict::ContractOnly => "contract only",
            Verdict::NotJudged => "not judged",
        }
    }

    /// Returns the mismatches.
    pub(super) fn mismatches(&self) -> &[Mismatch] {
        match self {
            Verdict::Failed(mismatches) => mismatches,
            Verdict::Passed | Verdict::Updated | Verdict::ContractOnly | Verdict::NotJudged => &[],
        }
    }
}

/// The verdicts, in the order of the summary.
const VERDICTS: [&str; 5] = ["passed", "failed", "updated", "contract only", "not judged"];

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
        if is_missing || is_empty || is_unanswered || self.count("failed") > 0 {
            Exit::Failed
        } else {
            Exit::Ok
        }
    }

    fn count(&self, verdict: &str) -> usize {
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

    /// Formats the report as text.
    pub(super) fn describe(&self, console: &Console) -> String {
        let palette = console.out().palette;
        let mut text: String = self.suites.iter().map(|suite| suite.describe(palette)).collect();
        if self.suites.iter().any(|suite| suite.column.is_some()) {
            text += &format!("\n{}", self.matrix().render(palette, console.out_columns()));
        }
        text += &format!("\n{}\n", palette.bold(self.summary() + &self.figures().spent()));
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
        let mut table = Table::new(["module", "model", "passed", "input", "output", "cost", "time"]);
        self.comparison().into_iter().for_each(|row| table.row(row));
        table
    }

    /// Returns the cells of the comparison: a row for each module and model, then one for each model.
    pub(super) fn comparison(&self) -> Vec<[String; 7]> {
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
    fn total(&self, column: &Column) -> [String; 7] {
        let mut figures = Figures::default();
        let mut passed = 0;
        let mut all = 0;
        for suite in self.suites.iter().filter(|suite| suite.column.as_ref() == Some(column)) {
            let (suite_passed, suite_all) = suite.counts();
            passed += suite_passed;
            all += suite_all;
            figures = figures.plus(&suite.figures());
        }
        cells("all modules", column.to_string(), format!("{passed} of {all}"), &figures)
    }
}

/// Returns the cells of a row of the comparison.
fn cells(module: &str, model: String, passed: String, figures: &Figures) -> [String; 7] {
    let [input, output] = [figures.input(), figures.output()];
    [module.to_owned(), model, passed, input, output, figures.shown_cost(), figures.time()]
}

impl Suite {
    pub(super) fn is_empty(&self) -> bool {
        self.cases.as_ref().is_ok_and(Vec::is_empty)
    }

    /// Returns its row of the comparison.
    fn cells(&self) -> [String; 7] {
        let model = self.column.as_ref().map(ToString::to_string).unwrap_or_default();
        cells(&self.module, model, self.passed(), &self.figures())
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
        Self { name, file: problem.file.clone(), attempts: vec![Attempt::new(verdict)] }
    }

    /// Returns the first attempt that failed, otherwise the first one.
    pub(super) fn decisive(&self) -> Option<&Attempt> {
        let failed = self.attempts.iter().find(|attempt| matches!(attempt.verdict, Verdict::Failed(_)));
        failed.or_else(|| self.attempts.first())
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
        let passed = verdicts.filter(|verdict| matches!(verdict, Verdict::Passed | Verdict::Updated));
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
        format!("{passed} of {all} passed, {}{}", figures.time(), figures.confidence())
    }

    fn describe(&self, palette: Palette) -> String {
        let verdict = self.verdict();
        let shown = format!("{:<13}", verdict.as_str());
        let shown = match verdict {
            Verdict::Passed => palette.success(shown),
            Verdict::Failed(_) => palette.error(shown),
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
            w.field("modules", &Array(&self.suites));
        });
    }
}

/// Written by hand: it has either cases or an error.
impl ToJson for Suite {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            w.optional("provider", &self.column.as_ref().map(|column| column.provider.as_str()));
            w.optional("model", &self.column.as_ref().map(|column| column.model.as_str()));
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
            if let Some(figures) = self.figures() {
                figures.write_members(w);
            }
            w.field("mismatches", self.verdict().mismatches());
            let answer = self.decisive().and_then(|attempt| attempt.answer.as_ref());
            w.optional("answer", &answer.map(Answer::found_value));
        });
    }
}

/// What one or more runs took.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// The number of runs.
    runs: u32,
    /// The time of all runs in milliseconds.
    pub(super) time_ms: u64,
    /// The tokens of all runs; none if one did not report them.
    usage: Option<Usage>,
    /// The lowest and the highest confidence.
    confidence: Option<(f64, f64)>,
    /// The runs whose first reply of the model met the contract.
    pub(super) conforming: u32,
    /// The runs without an answer of the model: the provider failed, or a limit was reached.
    unanswered: u32,
}

impl Figures {
    /// Creates the figures of one run.
    pub(super) fn new(envelope: &Envelope) -> Self {
        let meta = &envelope.meta;
        let is_unanswered = envelope.error().is_some_and(is_about_provider);
        let is_conforming =
            !is_unanswered && meta.runtime.attempts.is_none() && !envelope.error().is_some_and(is_violation);
        Self {
            runs: 1,
            conforming: u32::from(is_conforming),
            unanswered: u32::from(is_unanswered),
            time_ms: meta.runtime.processing_time_ms.unwrap_or_default(),
            usage: meta.runtime.usage.clone(),
            confidence: meta.confidence.map(|confidence| (confidence, confidence)),
        }
    }

    /// Returns the figures of both.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let usage = match (&self.usage, &other.usage) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            _ if self.runs == 0 => other.usage.clone(),
            _ if other.runs == 0 => self.usage.clone(),
            _ => None,
        };
        let confidence = match (self.confidence, other.confidence) {
            (Some((low, high)), Some((other_low, other_high))) => {
                Some((low.min(other_low), high.max(other_high)))
            }
            (one, other) => one.or(other),
        };
        Self {
            runs: self.runs + other.runs,
            time_ms: self.time_ms + other.time_ms,
            usage,
            confidence,
            conforming: self.conforming + other.conforming,
            unanswered: self.unanswered + other.unanswered,
        }
    }

    /// Formats the time of one run, on average: `320 ms`.
    pub(super) fn time(&self) -> String {
        format!("{} ms", self.time_ms / u64::from(self.runs.max(1)))
    }

    /// Formats the input tokens.
    pub(super) fn input(&self) -> String {
        self.usage.as_ref().map_or_else(|| "unknown".to_owned(), |usage| usage.input_tokens.to_string())
    }

    /// Formats the output tokens.
    pub(super) fn output(&self) -> String {
        self.usage.as_ref().map_or_else(|| "unknown".to_owned(), |usage| usage.output_tokens.to_string())
    }

    /// Formats the share of runs whose first reply met the contract: `3 of 4`.
    pub(super) fn conforming(&self) -> String {
        format!("{} of {}", self.conforming, self.runs - self.unanswered)
    }

    /// Returns the input and output tokens together, if they are known.
    pub(super) fn tokens(&self) -> Option<u64> {
        self.usage.as_ref().map(|usage| usage.input_tokens + usage.output_tokens)
    }

    /// Returns the cost of all runs, if it is known.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.usage.as_ref()?.cost
    }

    /// Formats the cost of all runs.
    pub(super) fn shown_cost(&self) -> String {
        self.cost().map_or_else(|| "unknown".to_owned(), |cost| cost.to_string())
    }

    /// Formats the tokens and the cost of all runs, if they are known: ` · 10 input and 14 output tokens · $0.0002`.
    pub(super) fn spent(&self) -> String {
        let Some(usage) = &self.usage else { return String::new() };
        let cost = usage.cost.map(|cost| format!(" · {cost}")).unwrap_or_default();
        format!(" · {} input and {} output tokens{cost}", usage.input_tokens, usage.output_tokens)
    }

    /// Formats the range of the confidence: `, confidence 0.8 to 0.95`.
    pub(super) fn confidence(&self) -> String {
        match self.confidence {
            Some((low, high)) if low < high => format!(", confidence {low} to {high}"),
            Some((low, _)) => format!(", confidence {low}"),
            None => String::new(),
        }
    }

    /// Writes them as members of a JSON object.
    pub(super) fn write_members(&self, w: &mut Writer<'_>) {
        w.field("time_ms", &(self.time_ms / u64::from(self.runs.max(1))));
        w.optional("usage", &self.usage);
        if let Some((low, high)) = self.confidence {
            w.field("min_confidence", &low);
            w.field("max_confidence", &high);
        }
    }
}

/// Whether an error says that no model answered: the provider, a limit or the runtime failed, or the reply broke off.
fn is_about_provider(error: &ErrorBody) -> bool {
    match &error.code {
        ErrorCode::Standard(Code::StreamInterrupted | Code::StreamTimeout) => true,
        ErrorCode::Standard(code) => code.category() == Category::Runtime,
        ErrorCode::Declared(_) => false,
    }
}

/// Whether an error says that the answer of the model is not what the contract requires, or was cut.
fn is_violation(error: &ErrorBody) -> bool {
    match &error.code {
        ErrorCode::Standard(Code::ParseError | Code::TokenLimit) => true,
        ErrorCode::Standard(code) => code.category() == Category::Output,
        ErrorCode::Declared(_) => false,
    }
}
