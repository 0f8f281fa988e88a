//! Checks meta and data against the contract.

use cog_json::{Node, Path, Value};
use cog_schema::{DataCheck, ExcessInsights};
use cog_spec::{Meta, RepairRule, Warning, WarningCode};

use super::{Failure, handoff::next_packet, open::Opened};
use crate::{AnswerRules, error, partial, place, repair::Ledger, repair::trim};

/// The maximum number of warnings about unknown fields.
const MAX_REPORTED: usize = 32;

/// An answer that conforms to its contract.
pub(super) struct Checked {
    pub(super) meta: Meta,
    pub(super) states_risk: bool,
    pub(super) data: Value,
    pub(super) changed: Vec<Path>,
    pub(super) ledger: Ledger,
    pub(super) warnings: Vec<Warning>,
    /// The packet for the next agent.
    pub(super) handoff: Option<Value>,
}

pub(super) fn check(rules: &AnswerRules, opened: Opened) -> Result<Checked, Box<Failure>> {
    let Opened { meta, states_risk, is_bare, data, mut ledger, mut violations } = opened;
    violations.extend(rules.contract.check_meta(meta.node()));
    let data = data.unwrap_or_default();
    let (data, check) =
        match violations.iter().any(|violation| violation.path == "data" || violation.path == "ok") {
            true => (data, DataCheck::default()),
            false => check_data(rules, data, &mut ledger),
        };
    violations.extend(check.violations);
    let handoff = match violations.is_empty() {
        true => next_packet(rules, data.node()).unwrap_or_else(|found| {
            violations = found;
            None
        }),
        false => None,
    };
    let unknown = check.unknown.iter().filter(|path| !(is_bare && is_of_meta(path)));
    let warnings = warnings(unknown, check.excess_insights);
    let read = Meta::read(meta.node());
    if violations.is_empty() && read.is_none() {
        violations.push(error::violation("meta.risk", "type", "expected a string or `{custom, reason}`"));
    }
    let failure = |error| Failure {
        partial_data: partial::from_data(rules, &data, data.node()),
        repairs: ledger.entries().to_vec(),
        warnings: warnings.clone(),
        ..Failure::new(error)
    };
    let meta = match read {
        Some(meta) if violations.is_empty() => meta,
        _ => return Err(Box::new(failure(error::from_violations(&violations)))),
    };
    if rules.strict && !ledger.entries().is_empty() {
        return Err(Box::new(failure(error::repaired(ledger.entries()))));
    }
    let changed = check.excess_insights.map(|_| insights_path()).into_iter().collect();
    Ok(Checked { meta, states_risk, data, changed, ledger, warnings, handoff })
}

/// Checks the data. Insights over the limit are removed first (ruling R30).
fn check_data(rules: &AnswerRules, data: Value, ledger: &mut Ledger) -> (Value, DataCheck) {
    let check = rules.contract.check_data(data.node());
    let Some(excess) = check.excess_insights else { return (data, check) };
    let path = insights_path();
    let Some(insights) = place::resolve(data.node(), &path) else { return (data, check) };
    let omitted = insights.elements().skip(excess.max as usize).map(Node::id).collect();
    let cut = trim::without(&data, data.node(), &omitted);
    let size = |data: &Value| place::resolve(data.node(), &path).map_or(0, |node| node.to_string().len());
    ledger.note_sizes(RepairRule::CutInsights, &path.to_string(), size(&data), size(&cut));
    let mut check = rules.contract.check_data(cut.node());
    check.excess_insights = Some(excess);
    (cut, check)
}

fn insights_path() -> Path {
    let mut path = place::data();
    path.push_key("extensions");
    path.push_key("insights");
    path
}

/// Bare data contain the fields that were copied to meta (ruling R28).
fn is_of_meta(path: &str) -> bool {
    ["data.confidence", "data.risk", "data.explain"].contains(&path)
}

fn warnings<'a>(unknown: impl Iterator<Item = &'a String>, excess: Option<ExcessInsights>) -> Vec<Warning> {
    let unknown = unknown.take(MAX_REPORTED).map(|path| {
        Warning::new(WarningCode::UnknownField, format!("`{path}` is not in the schema; it was kept."))
    });
    let cut = excess.map(|excess| {
        let message = format!("{} insights were cut to the {} allowed.", excess.found, excess.max);
        Warning::new(WarningCode::InsightsTruncated, message)
    });
    unknown.chain(cut).collect()
}
