//! `--cascade`: how often a list of providers is right and what it costs, if each answer below a confidence is asked of the next.

use cog_json::{Array, ToJson, Writer};
use cog_spec::Cost;
use cog_trust::{Rate, interval};

use super::report::{CaseReport, Report, Suite};
use crate::output::Table;

/// The confidence of the intervals.
const INTERVAL: f64 = 0.95;

/// The thresholds that a table shows.
const ROWS: usize = 12;

/// What each threshold gives for a module.
pub(super) struct Cascade {
    module: String,
    rows: Vec<Row>,
}

/// What one threshold gives.
struct Row {
    accepts: Accepts,
    /// The cases that the first provider answers.
    first: u64,
    right: Rate,
    /// What all calls cost; none if a cost is unknown.
    cost: Option<Cost>,
}

/// The answers that are accepted.
#[derive(Clone, Copy, PartialEq)]
enum Accepts {
    /// All answers of the first provider, the only one that is asked.
    First,
    /// Answers with at least this confidence. An answer that fails is never accepted.
    From(f64),
    /// All answers of the last provider, the only one that is asked.
    Last,
}

/// Returns the cascade of each module that ran on several providers.
pub(super) fn of(report: &Report) -> Vec<Cascade> {
    let modules = report.suites.chunk_by(|one, other| one.module == other.module);
    modules.filter_map(Cascade::new).collect()
}

impl Cascade {
    fn new(suites: &[Suite]) -> Option<Self> {
        let [first, .., last] = suites else { return None };
        let cases: Vec<Vec<&CaseReport>> = (0..first.cases.as_ref().ok()?.len())
            .map(|index| suites.iter().filter_map(|suite| suite.cases.as_ref().ok()?.get(index)).collect())
            .collect();
        let asked_first = cases.iter().flat_map(|case| case.iter().take(suites.len() - 1));
        let mut thresholds: Vec<f64> = asked_first.filter_map(|case| confidence(case)).collect();
        thresholds.sort_by(|one, other| other.total_cmp(one));
        thresholds.dedup();
        // The error of a failed answer has the confidence 0.
        thresholds.retain(|threshold| *threshold > 0.0);
        let step = thresholds.len().div_ceil(ROWS).max(1);
        let mut accepts = vec![Accepts::First];
        accepts.extend(thresholds.into_iter().rev().step_by(step).map(Accepts::From));
        accepts.push(Accepts::Last);
        let rows = accepts.into_iter().map(|accepts| Row::new(accepts, &cases)).collect();
        let title = |suite: &Suite| suite.column.as_ref().map(ToString::to_string).unwrap_or_default();
        Some(Self { module: format!("{}: {} to {}", first.module, title(first), title(last)), rows })
    }

    /// Returns the heading and the table.
    pub(super) fn table(&self) -> (String, Table) {
        let mut table = Table::new(["accepted from", "by the first", "right", "95 % interval", "cost"]);
        for row in &self.rows {
            let accepts = match row.accepts {
                Accepts::First => "all".to_owned(),
                Accepts::From(threshold) => format!("{threshold:.3}"),
                Accepts::Last => "only the last".to_owned(),
            };
            let bounds = interval::exact(row.right, INTERVAL);
            let cases = row.right.cases();
            table.row([
                accepts,
                format!("{} of {cases}", row.first),
                format!("{} of {cases}", row.right.right()),
                format!("{:.0} to {:.0} %", bounds.low * 100.0, bounds.high * 100.0),
                row.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string()),
            ]);
        }
        (format!("cascade of {}", self.module), table)
    }
}

impl Row {
    fn new(accepts: Accepts, cases: &[Vec<&CaseReport>]) -> Self {
        let mut first = 0;
        let mut right = 0;
        let mut cost = Some(None);
        for case in cases {
            let asked = match accepts {
                Accepts::First => case.get(..1),
                Accepts::Last => case.get(case.len().saturating_sub(1)..),
                Accepts::From(_) => Some(case.as_slice()),
            };
            let asked = asked.unwrap_or_default();
            for (index, answer) in asked.iter().enumerate() {
                cost = plus(cost, answer);
                let is_last = index + 1 == asked.len();
                let is_accepted = match accepts {
                    Accepts::From(threshold) => confidence(answer).is_some_and(|it| it >= threshold),
                    _ => true,
                };
                if is_accepted || is_last {
                    first += u64::from(index == 0 && accepts != Accepts::Last);
                    right += u64::from(answer.verdict().is_passed());
                    break;
                }
            }
        }
        let right = Rate::new(right, cases.len() as u64).unwrap_or_default();
        Self { accepts, first, right, cost: cost.flatten() }
    }
}

/// Adds the cost of an answer. The outer option is none once a cost is unknown.
fn plus(sum: Option<Option<Cost>>, answer: &CaseReport) -> Option<Option<Cost>> {
    let cost = answer.figures()?.cost()?;
    Some(Some(sum?.map_or(cost, |sum| sum.plus(&cost))))
}

/// Returns the confidence of the answer of a case; none if there is no answer.
fn confidence(case: &CaseReport) -> Option<f64> {
    case.figures().filter(|figures| figures.unanswered == 0)?.lowest_confidence()
}

impl ToJson for Cascade {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            w.field("rows", &Array(&self.rows));
        });
    }
}

impl ToJson for Row {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            let (name, threshold) = match self.accepts {
                Accepts::First => ("first", None),
                Accepts::From(threshold) => ("from", Some(threshold)),
                Accepts::Last => ("last", None),
            };
            w.field("accepts", name);
            w.field("threshold", &threshold);
            w.field("by_first", &self.first);
            w.field("right", &self.right.right());
            w.field("cases", &self.right.cases());
            let bounds = interval::exact(self.right, INTERVAL);
            w.field("interval", &[bounds.low, bounds.high][..]);
            w.field("cost", &self.cost);
        });
    }
}
