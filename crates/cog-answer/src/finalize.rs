//! Checks a complete reply: a valid answer, or why it is not one.

mod confidence;
mod handoff;
mod model_error;
mod open;

use cog_harmony::{Finding, citation};
use cog_json::{Node, Path, Segment, ToJson, Value};
use cog_rules::{CheckFailure, CheckedAnswer};
use cog_schema::{DataCheck, ExcessInsights, Violation};
use cog_spec::{
    CheckSeverity, Code, ErrorBody, Evidence, Meta, RationalePlace, RepairRule, Risk, RiskRule, RiskValue,
    Tier, Warning, WarningCode,
};

pub use self::confidence::DeferredJudgement;
pub(crate) use self::{
    confidence::MeasuredConfidence,
    open::{Failure, ParsedReply, Success},
};
use self::{handoff::next_packet, open::ReplyParts};
use crate::{
    AnswerRules, error, patch,
    repair::{self, Ledger},
    shape::Shape,
};

/// Repairs and checks a reply, and applies constraints and tier.
pub(crate) fn finalize(rules: &AnswerRules, mut parsed: ParsedReply) -> Result<Success, Box<Failure>> {
    note_dropped(&mut parsed);
    if parsed.shape == (Shape::Envelope { ok: false }) {
        return Err(Box::new(model_error::finalize(rules, parsed)));
    }
    let emitted = open::read(rules, &parsed.value);
    let mut opened = open::open(rules, parsed);
    opened.violations.extend(emitted.violations);
    let checked = check(rules, opened)?;
    let cut = rules.contract.cut_at(rules.dialect, checked.data.node());
    if let Some(path) = cut.filter(|_| !rules.is_from_parts) {
        let partial_data = repair::partial_data(rules, &checked.data, checked.data.node());
        let repairs = checked.ledger.into_entries();
        return Err(Box::new(Failure { partial_data, repairs, ..Failure::new(error::length_limit(&path)) }));
    }
    let success = admit(rules, checked)?;
    Ok(Success { emitted: emitted.context, ..success })
}

/// Records the members of an envelope that are not part of the answer (ruling R74). A null arm counts as absent, and
/// keys that begin with `_` are the runtime's own.
fn note_dropped(parsed: &mut ParsedReply) {
    let (arms, other) = match parsed.shape {
        Shape::Envelope { ok: true } => (["data", "error"], "partial_data"),
        Shape::Envelope { ok: false } => (["error", "partial_data"], "data"),
        // The missing `ok` is a violation; other members would only add noise.
        Shape::WithoutOk | Shape::Bare => return,
    };
    let dropped = parsed.value.members().filter(|(key, member)| {
        let is_part = ["ok", "meta"].contains(key) || arms.contains(key) || key.starts_with('_');
        // Some dialects require every member, so a model writes null for the other arm.
        let is_absent = *key == other && member.is_null();
        !is_part && !is_absent
    });
    parsed.ledger.note_dropped(dropped);
}

/// Returns the failure of an answer with rejected media.
pub(crate) fn refused(rules: &AnswerRules, parsed: ParsedReply, violations: &[Violation]) -> Box<Failure> {
    let partial_data = partial(rules, &parsed);
    let error = error::from_media(violations);
    Box::new(Failure { partial_data, repairs: parsed.ledger.into_entries(), ..Failure::new(error) })
}

/// Returns the failure of a valid answer that the checks of the program reject.
pub(crate) fn rejected(rules: &AnswerRules, success: Success, violations: &[Violation]) -> Box<Failure> {
    let partial_data = partial_of_valid(rules, &success.data);
    let Success { repairs, warnings, .. } = success;
    Box::new(Failure { partial_data, repairs, warnings, ..Failure::new(error::from_checks(violations)) })
}

/// Returns the partial data of a valid answer whose run fails.
pub(crate) fn partial_of_valid(rules: &AnswerRules, data: &Value) -> Option<Value> {
    repair::partial_data(rules, data, data.node())
}

/// Returns the partial data of a reply that was parsed to its end.
pub(crate) fn partial(rules: &AnswerRules, parsed: &ParsedReply) -> Option<Value> {
    let value = &parsed.value;
    let data = match parsed.shape {
        Shape::Envelope { ok } => value.get("data").filter(|_| ok)?,
        Shape::WithoutOk => value.get("data")?,
        Shape::Bare => value.node(),
    };
    repair::partial_data(rules, value, data)
}

// Aggregates `meta.risk` (overview, risk; rulings R20, R21).

/// Returns the greatest risk in the list of the data that the rule names; none if no entry states one.
pub fn aggregated_risk(rule: RiskRule, data: Node<'_>) -> Option<Risk> {
    let list = data.get(rule.list()?)?;
    let risks = list.elements().filter_map(|entry| RiskValue::read(entry.get("risk")?));
    risks.map(|risk| risk.level()).max()
}

/// The risk that the rules of the run give an answer.
struct RuledRisk {
    level: Risk,
    /// What decides: the risk rule, or the parts of a composition.
    by: String,
    /// The rule lowers what the model states.
    warning: Option<Warning>,
}

/// Returns the greatest risk in the list of the risk rule, or otherwise the model's own, raised to the greatest one of the
/// parts of a composition (docs/spec/composition.md).
fn ruled_risk(
    rules: &AnswerRules,
    own: Option<Risk>,
    states_risk: bool,
    data: Node<'_>,
) -> Option<RuledRisk> {
    let rule = rules.manifest.risk_rule;
    let aggregated = aggregated_risk(rule, data);
    let parts = rules.parts_risk.filter(|_| rule != RiskRule::Explicit);
    let (level, by) = match parts.filter(|parts| Some(*parts) > aggregated.or(own)) {
        Some(parts) => (parts, "the parts of the composition".to_owned()),
        None => (aggregated?, format!("`{rule}`")),
    };
    let lowered = own.filter(|own| states_risk && level < *own);
    let warning = lowered.map(|own| {
        let list = rule.list().unwrap_or_default();
        let greatest = aggregated.unwrap_or(level);
        let message =
            format!("The model states risk `{own}`; the greatest in `data.{list}` is `{greatest}`.");
        Warning::new(WarningCode::RiskLowered, message)
    });
    Some(RuledRisk { level, by, warning })
}

/// Returns a meta with the risk that the rules give it.
fn with_risk(meta: &Value, risk: Risk) -> Value {
    let level = risk.as_str();
    patch::insert(meta, &[(vec![Segment::Key("risk")], &level)])
}

/// Checks the meta of an answer. What the model states must follow the specification; the module's schema is held against the
/// risk that leaves the run, after the rules have decided it (ruling R21).
fn check_meta(
    rules: &AnswerRules,
    stated: &Value,
    meta: &Value,
    ruled: Option<&RuledRisk>,
) -> Vec<Violation> {
    let mut violations = rules.contract.check_meta(meta.node());
    let Some(RuledRisk { level, by, .. }) = ruled else { return violations };
    for violation in violations.iter_mut().filter(|one| one.path == "meta.risk") {
        // The model did not choose this value, so it is no enum value that it invented.
        violation.code = Code::OutputSchemaViolation;
        violation.message = format!("by {by} the risk is `{level}`, which the schema of meta excludes");
        violation.suggestion = Some("Allow it in the schema of meta, or set `meta.risk_rule`.".to_owned());
    }
    if stated.node().is_object() {
        violations.extend(rules.contract.check_risk(stated.node()));
    }
    violations
}

// Checks meta and data against the contract.

/// The maximum number of warnings about unknown fields.
const MAX_REPORTED: usize = 32;

/// An answer that conforms to its contract.
struct ConformingAnswer {
    meta: Meta,
    /// The meta as the model stated it.
    model_meta: Value,
    evidence: Option<Evidence>,
    data: Value,
    changed: Vec<Path>,
    ledger: Ledger,
    warnings: Vec<Warning>,
    /// The packet for the next agent.
    handoff: Option<Value>,
}

fn check(rules: &AnswerRules, opened: ReplyParts) -> Result<ConformingAnswer, Box<Failure>> {
    let ReplyParts { meta: model_meta, states_risk, shape, data, mut ledger, probabilities, mut violations } =
        opened;
    // Data that are missing or of another type were reported; their members would be reported once more.
    let (data, check) = match data {
        Some(data) => check_data(rules, data, &mut ledger),
        None => (Value::default(), DataCheck::default()),
    };
    let own_risk = model_meta.get("risk").and_then(RiskValue::read).map(|risk| risk.level());
    let ruled = ruled_risk(rules, own_risk, states_risk, data.node());
    let ruled_meta = match &ruled {
        Some(risk) if model_meta.node().is_object() => with_risk(&model_meta, risk.level),
        _ => model_meta.clone(),
    };
    violations.extend(check_meta(rules, &model_meta, &ruled_meta, ruled.as_ref()));
    violations.extend(check.violations);
    // An answer that is wrong is not explained (ruling R91): its model was not asked for a rationale, and is told nothing of one.
    let is_unexplained = rules.is_without_meta() && rules.form.rationale == RationalePlace::Afterwards;
    if is_unexplained && violations.iter().any(|violation| violation.code != Code::MissingRationale) {
        violations.retain(|violation| violation.code != Code::MissingRationale);
    }
    // Sealing hashes the packet, which makes sense only for an answer that is otherwise valid.
    let handoff = match violations.is_empty() {
        true => next_packet(rules, data.node()).unwrap_or_else(|found| {
            violations = found;
            None
        }),
        false => None,
    };
    let is_copied = shape == Shape::Bare && !rules.is_without_meta();
    let unknown = check.unknown.iter().filter(|path| !(is_copied && is_of_meta(path)));
    let mut warnings = warnings(unknown, check.excess_insights);
    let read = Meta::read(ruled_meta.node());
    if violations.is_empty() && read.is_none() {
        violations.push(error::violation("meta.risk", "type", "expected a string or `{custom, reason}`"));
    }
    let meta = match read.filter(|_| violations.is_empty()) {
        Some(_) if rules.strict && ledger.has_repairs(rules) => Err(error::repaired(ledger.entries())),
        Some(meta) => Ok(meta),
        // The model's own meta is all that tells how sure it was of an answer that cannot be read as one.
        None if shape == Shape::WithoutOk => Err(error::from_violations_with(&violations, |w| {
            w.field("meta", &model_meta);
        })),
        None => Err(error::from_violations(&violations)),
    };
    // A rule about values says nothing of an answer that has others than its schema allows.
    let meta = meta.and_then(|meta| {
        let (failed, noted) = run_checks(rules, ruled_meta.node(), data.node());
        warnings.extend(noted);
        if failed.is_empty() { Ok(meta) } else { Err(error::from_named_checks(&failed)) }
    });
    match meta {
        Ok(meta) => {
            warnings.extend(ruled.and_then(|risk| risk.warning));
            let changed = check.excess_insights.map(|_| insights_path()).into_iter().collect();
            let evidence =
                probabilities.map(|found| Evidence { logprob: Some(found), ..Evidence::default() });
            Ok(ConformingAnswer { meta, model_meta, evidence, data, changed, ledger, warnings, handoff })
        }
        Err(error) => Err(Box::new(Failure {
            partial_data: repair::partial_data(rules, &data, data.node()),
            repairs: ledger.into_entries(),
            warnings,
            ..Failure::new(error)
        })),
    }
}

/// Runs the named checks. Returns the failures that are errors, and the warnings.
fn run_checks(rules: &AnswerRules, meta: Node<'_>, data: Node<'_>) -> (Vec<CheckFailure>, Vec<Warning>) {
    if rules.checks.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let answer = CheckedAnswer::new(rules.input.as_ref().map(Value::node), data).with_meta(meta);
    let (failed, noted): (Vec<_>, Vec<_>) = answer
        .failures(&rules.checks)
        .into_iter()
        .partition(|failure| failure.severity == CheckSeverity::Error);
    (failed, noted.iter().map(check_warning).collect())
}

fn check_warning(failure: &CheckFailure) -> Warning {
    let at = match failure.paths.first() {
        Some(path) => format!(" at `{path}`"),
        None => String::new(),
    };
    let message = format!("The answer fails the check `{}`{at}: {}.", failure.name, failure.message);
    Warning::new(WarningCode::CheckFailed, message)
}

/// Checks the data. Insights over the limit are removed first (ruling R30).
fn check_data(rules: &AnswerRules, data: Value, ledger: &mut Ledger) -> (Value, DataCheck) {
    let check = rules.contract.check_data(data.node());
    let Some(excess) = check.excess_insights else { return (data, check) };
    let path = insights_path();
    let Some(insights) = patch::resolve(data.node(), &path) else { return (data, check) };
    let omitted = insights.elements().skip(excess.max as usize).map(Node::id).collect();
    let cut = repair::without(&data, data.node(), &omitted);
    let before = size_at(&data, &path);
    ledger.note_sizes(RepairRule::CutInsights, &path.to_string(), before, size_at(&cut, &path));
    let mut check = rules.contract.check_data(cut.node());
    check.excess_insights = Some(excess);
    (cut, check)
}

fn size_at(data: &Value, path: &Path) -> usize {
    patch::resolve(data.node(), path).map_or(0, |node| node.to_string().len())
}

fn insights_path() -> Path {
    let mut path = patch::data();
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

// Applies constraints and tiers to an answer that conforms to its contract.

fn admit(rules: &AnswerRules, checked: ConformingAnswer) -> Result<Success, Box<Failure>> {
    let ConformingAnswer { mut meta, model_meta, mut evidence, data, changed, ledger, mut warnings, handoff } =
        checked;
    let mut judged = confidence::Judged::default();
    if !rules.defers_confidence {
        judged = confidence::judge(rules, &mut meta, &mut evidence, ledger.entries(), data.node());
    }
    let measured = judged.measured;
    warnings.extend(judged.warnings);
    let citations = citation::check_data(data.node(), rules.input.as_ref().map(Value::node), &rules.sources);
    let tier = rules.manifest.tier;
    let refusal = judged.refusal.or_else(|| tier.and_then(|tier| risky(tier, &meta)));
    if let Some(error) = refusal.or_else(|| tier.and_then(|tier| uncited(tier, &citations))) {
        // A refusal reports what the model itself stated, before the rules changed it (rulings R2, R3).
        let details = error::details(|w| {
            w.field("meta", &model_meta);
            w.optional("gate", &measured.and_then(|measured| measured.gate));
            if !citations.is_empty() {
                w.field("citations", citations.get(..MAX_REPORTED).unwrap_or(&citations));
            }
        });
        return Err(Box::new(Failure {
            partial_data: repair::partial_data(rules, &data, data.node()),
            repairs: ledger.into_entries(),
            warnings,
            ..Failure::new(error.with_details(details))
        }));
    }
    warnings.extend(citations.iter().take(MAX_REPORTED).map(citation_warning));
    let repairs = ledger.into_entries();
    let emitted = None;
    Ok(Success { meta, model_meta, evidence, measured, data, emitted, changed, repairs, warnings, handoff })
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

#[cfg(test)]
mod tests;
