//! Aggregates `meta.risk` (overview, risk; rulings R20, R21).

use cog_json::Node;
use cog_spec::{Meta, Risk, RiskRule, RiskValue, Warning, WarningCode};

/// Returns the greatest risk in the list that the rule names; none if no entry states one.
pub(crate) fn aggregate(rule: RiskRule, data: Node<'_>) -> Option<Risk> {
    let list = data.get(rule.list()?)?;
    let risks = list.elements().filter_map(|entry| RiskValue::read(entry.get("risk")?));
    risks.map(|risk| risk.level()).max()
}

/// Replaces the model's own risk with the aggregate. Returns a warning if that lowers it.
pub(super) fn apply(rule: RiskRule, data: Node<'_>, states_risk: bool, meta: &mut Meta) -> Option<Warning> {
    let level = aggregate(rule, data)?;
    let own = std::mem::replace(&mut meta.risk, level.into()).level();
    (states_risk && level < own).then(|| {
        let list = rule.list().unwrap_or_default();
        let message = format!("The model states risk `{own}`; the greatest in `data.{list}` is `{level}`.");
        Warning::new(WarningCode::RiskLowered, message)
    })
}

/// Raises the risk to the greatest one of the parts of a composition, unless the module states it explicitly
/// (docs/spec/composition.md).
pub(super) fn raise(rule: RiskRule, parts: Option<Risk>, meta: &mut Meta) {
    let greater = parts.filter(|risk| rule != RiskRule::Explicit && *risk > meta.risk.level());
    if let Some(risk) = greater {
        meta.risk = risk.into();
    }
}
