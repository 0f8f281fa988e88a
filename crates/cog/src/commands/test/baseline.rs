//! `--baseline`: the report of another run, and how the cases differ from it.

use std::{collections::BTreeMap, path::Path};

use cog_json::{Array, Node, ToJson, Value, Writer};
use cog_spec::{Code, ErrorBody};
use cog_trust::paired;

use super::report::{CaseReport, Report, Suite, Verdict};
use crate::commands::input;

/// The level below which a p-value counts as a difference.
const LEVEL: f64 = 0.05;

/// The outcomes of a report that was written with `--format json`.
pub(super) struct Baseline {
    /// Its file, as given.
    file: String,
    suites: Vec<BaselineSuite>,
}

/// The outcomes of a module, on one model if several were compared.
struct BaselineSuite {
    /// The name of the module, without its directory.
    module: String,
    provider: Option<String>,
    model: Option<String>,
    /// Whether each case passed; a case without an answer is left out.
    cases: BTreeMap<String, bool>,
}

/// How the cases of a report differ from another one.
pub(super) struct Comparison {
    file: String,
    /// The cases that have an answer in both.
    compared: usize,
    newly_failing: Vec<CaseName>,
    newly_passing: Vec<CaseName>,
}

/// A case, with the title of its suite.
struct CaseName {
    suite: String,
    case: String,
}

impl Baseline {
    /// Reads a report.
    ///
    /// # Errors
    /// As [`input::json_of`], and E1001 for JSON that is not a report.
    pub(super) fn read(path: &Path) -> Result<Self, ErrorBody> {
        let report = input::json_of(path)?;
        let suites = suites(&report).ok_or_else(|| {
            let message = format!("{} is not a report of `cog test`", path.display());
            ErrorBody::new(Code::InvalidInput, message)
                .suggest("Write one with `cog test MODULE --format json -o FILE`.")
        })?;
        Ok(Self { file: path.display().to_string(), suites })
    }

    /// Compares a report with it.
    pub(super) fn compare(self, report: &Report) -> Comparison {
        let mut comparison = Comparison {
            file: self.file.clone(),
            compared: 0,
            newly_failing: Vec::new(),
            newly_passing: Vec::new(),
        };
        for suite in &report.suites {
            let Some(before) = self.suite(suite) else { continue };
            for case in suite.cases.iter().flatten() {
                if let (Some(before), Some(now)) = (before.cases.get(&case.name), passed(case)) {
                    comparison.add(suite, case, *before, now);
                }
            }
        }
        comparison
    }

    /// Returns the suite that belongs to one of the report: of the same module, and of the same model if it has several.
    fn suite(&self, suite: &Suite) -> Option<&BaselineSuite> {
        let name = base_name(&suite.module);
        let of_module: Vec<_> = self.suites.iter().filter(|before| before.module == name).collect();
        let same_model = of_module.iter().find(|before| {
            let column = suite.column.as_ref();
            before.provider.as_deref() == column.map(|column| column.provider.as_str())
                && before.model.as_deref() == column.map(|column| column.model.as_str())
        });
        match of_module.as_slice() {
            [only] => Some(only),
            _ => same_model.copied(),
        }
    }
}

/// Returns whether a case passed; none if it has no answer.
fn passed(case: &CaseReport) -> Option<bool> {
    match case.verdict() {
        Verdict::Passed | Verdict::Updated => Some(true),
        Verdict::Failed(_) => Some(false),
        Verdict::Error(_) | Verdict::ContractOnly | Verdict::NotJudged => None,
    }
}

fn suites(report: &Value) -> Option<Vec<BaselineSuite>> {
    report.get("modules").filter(|modules| modules.is_array())?.elements().map(suite).collect()
}

fn suite(suite: Node<'_>) -> Option<BaselineSuite> {
    let text = |key: &str| suite.get_str(key).map(str::to_owned);
    let mut cases = BTreeMap::new();
    // A module that did not load has an error instead.
    for case in suite.get("cases").into_iter().flat_map(Node::elements) {
        let name = case.get_str("name")?.to_owned();
        match case.get_str("verdict")? {
            "passed" | "updated" => _ = cases.insert(name, true),
            "failed" => _ = cases.insert(name, false),
            _ => {}
        }
    }
    let module = base_name(suite.get_str("module")?).to_owned();
    Some(BaselineSuite { module, provider: text("provider"), model: text("model"), cases })
}

/// Returns the name of a module that was given by name or path.
fn base_name(module: &str) -> &str {
    module.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(module)
}

impl Comparison {
    fn add(&mut self, suite: &Suite, case: &CaseReport, before: bool, now: bool) {
        self.compared += 1;
        let name = || CaseName { suite: suite.title(), case: case.name.clone() };
        match (before, now) {
            (true, false) => self.newly_failing.push(name()),
            (false, true) => self.newly_passing.push(name()),
            _ => {}
        }
    }

    /// Returns the p-value of the exact test of McNemar.
    fn p(&self) -> f64 {
        paired::mcnemar(self.newly_failing.len() as u64, self.newly_passing.len() as u64)
    }

    /// Whether more cases fail than before, and chance does not explain it.
    fn is_worse(&self) -> bool {
        self.newly_failing.len() > self.newly_passing.len() && self.p() < LEVEL
    }

    /// Whether the exit code is 1: the answers are worse, or nothing was compared.
    pub(super) fn fails(&self) -> bool {
        self.compared == 0 || self.is_worse()
    }

    /// Formats the comparison: the counts, and a line for each case that differs.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.compared == 0 {
            return vec![format!("compared with {}: no case has an answer in both", self.file)];
        }
        let failing = self.newly_failing.len();
        let passing = self.newly_passing.len();
        let verdict = match self.is_worse() {
            true => "worse",
            false if self.p() < LEVEL => "better",
            false => "no clear difference",
        };
        let first = format!(
            "compared with {}: {} cases, {failing} newly failing, {passing} newly passing, p {:.3}: {verdict}",
            self.file,
            self.compared,
            self.p()
        );
        let failing = self.newly_failing.iter().map(|name| ("newly failing", name));
        let passing = self.newly_passing.iter().map(|name| ("newly passing", name));
        let cases =
            failing.chain(passing).map(|(what, name)| format!("{what}: {} {}", name.suite, name.case));
        std::iter::once(first).chain(cases).collect()
    }
}

/// Written by hand: the p-value is computed.
impl ToJson for Comparison {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("file", &self.file);
            w.field("compared", &(self.compared as u64));
            w.field("newly_failing", &Array(&self.newly_failing));
            w.field("newly_passing", &Array(&self.newly_passing));
            w.field("p_value", &self.p());
            w.field("worse", &self.is_worse());
        });
    }
}

/// Written by hand, as its neighbours are.
impl ToJson for CaseName {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.suite);
            w.field("case", &self.case);
        });
    }
}
