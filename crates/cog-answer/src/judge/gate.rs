//! Applies constraints and tiers to an answer that conforms to its contract.

use cog_harmony::{Finding, citation};
use cog_json::{Node, ToJson, Value};
use cog_spec::{Code, ErrorBody, Meta, Risk, Tier, Warning, WarningCode};

use super::{Failure, Success, check::Checked, risk};
use crate::{AnswerRules, error, partial};

/// The confidence below which tier decision has a warning (ruling R4).
const LOW_FOR_DECISION: f64 = 0.5;

/// The maximum number of warnings about citations.
const MAX_REPORTED: usize = 32;

pub(super) fn admit(rules: &AnswerRules, checked: Checked) -> Result<Success, Box<Failure>> {
    let Checked { mut meta, states_risk, data, changed, ledger, mut warnings, handoff } = checked;
    let model_meta = meta.clone();
    warnings.extend(risk::apply(rules.manifest.risk_rule, data.node(), states_risk, &mut meta));
    risk::raise(rules.manifest.risk_rule, rules.parts_risk, &mut meta);
    let citations = citation::check_data(data.node(), rules.input.as_ref().map(Value::node), &rules.sources);
    let refusal = refusal(rules, &meta, data.node());
    if let Some(error) = refusal.or_else(|| rules.manifest.tier.and_then(|tier| uncited(tier, &citations))) {
        let details = error::details(|w| {
            w.field("meta", &model_meta);
            if !citations.is_empty() {
                w.field("citations", citations.get(..MAX_REPORTED).unwrap_or(&citations));
            }
        });
        return Err(Box::new(Failure {
            partial_data: partial::from_data(rules, &data, data.node()),
            repairs: ledger.into_entries(),
            warnings,
            ..Failure::new(error.with_details(details))
        }));
    }
    warnings.extend(low_confidence(rules, &meta));
    warnings.extend(citations.iter().take(MAX_REPORTED).map(citation_warning));
    Ok(Success { meta, data, emitted: None, changed, repairs: ledger.into_entries(), warnings, handoff })
}

fn refusal(rules: &AnswerRules, meta: &Meta, data: Node<'_>) -> Option<ErrorBody> {
    overconfident(rules, meta, data)
        .or_else(|| rules.manifest.tier.and_then(|tier| unsure(tier, meta)))
        .or_else(|| rules.manifest.tier.and_then(|tier| risky(tier, meta)))
}

/// `behavior_equivalence_false_max_confidence` of v2.1.
fn overconfident(rules: &AnswerRules, meta: &Meta, data: Node<'_>) -> Option<ErrorBody> {
    let max = rules.manifest.constraints.behavior_equivalence_false_max_confidence?;
    let differs = data.get("behavior_equivalence").and_then(Node::as_bool) == Some(false);
    let confidence = meta.confidence.filter(|confidence| differs && *confidence > max)?;
    Some(ErrorBody::new(
        Code::ConstraintViolation,
        format!(
            "`data.behavior_equivalence` is false, so confidence may be at most {max}; it is {confidence}"
        ),
    ))
}

/// Ruling R2.
fn unsure(tier: Tier, meta: &Meta) -> Option<ErrorBody> {
    let min = tier.min_confidence()?;
    let confidence = meta.confidence.unwrap_or_default();
    (confidence < min).then(|| {
        let message = format!("Confidence is {confidence}; tier {tier} requires at least {min}");
        ErrorBody::new(Code::LowConfidence, message)
            .suggest("The answer is in partial_data: have a person review it, or give more context.")
    })
}

/// Ruling R3.
fn risky(tier: Tier, meta: &Meta) -> Option<ErrorBody> {
    let is_refused = tier == Tier::Exec && meta.risk.level() > Risk::Low;
    is_refused.then(|| {
        let message = format!("Risk is {}; tier {tier} allows `none` and `low`", meta.risk.to_json());
        ErrorBody::new(Code::ConstraintViolation, message)
            .suggest("The answer is in partial_data: have a person review it.")
    })
}

/// Invalid citations in tier exec; in other tiers they are warnings.
fn uncited(tier: Tier, findings: &[Finding]) -> Option<ErrorBody> {
    let first = findings.first().filter(|_| tier == Tier::Exec)?;
    let more = match findings.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let message = format!("The citations are invalid: {}: {}{more}", first.path, first.message);
    let error = ErrorBody::new(Code::ConstraintViolation, message);
    Some(error.suggest("The answer is in partial_data: have a person check its sources."))
}

fn citation_warning(finding: &Finding) -> Warning {
    Warning::new(WarningCode::CitationInvalid, format!("`{}`: {}.", finding.path, finding.message))
}

/// Ruling R4.
fn low_confidence(rules: &AnswerRules, meta: &Meta) -> Option<Warning> {
    let confidence = meta.confidence.filter(|confidence| *confidence < LOW_FOR_DECISION)?;
    (rules.manifest.tier == Some(Tier::Decision)).then(|| {
        let message = format!("Confidence is {confidence}, which is low for tier decision.");
        Warning::new(WarningCode::LowConfidence, message)
    })
}
