//! The answer of a composition, from the results of its parts.

use cog_json::{Node, Value, Writer};
use cog_run::composition::PartsAnswer;
use cog_spec::{ErrorBody, Meta, Risk, RiskRule, RiskValue};

use super::{error, reports::Reports, texts::texts};
use crate::{Answer, Callee, Plan, Results};

/// Returns the answer. `ends_early` is whether a rule of the routing made the result so far the answer.
///
/// # Errors
/// No part has a result (E2004), or a mapping selects too much (E1005).
pub(super) fn answer(
    plan: &Plan,
    results: &Results,
    reports: &Reports,
    ends_early: bool,
) -> Result<PartsAnswer, ErrorBody> {
    let (meta, data) = match plan.answer {
        Answer::OwnPrompt if !ends_early => return Ok(PartsAnswer::Texts(texts(plan, results))),
        Answer::Output if !ends_early => output(plan, results, reports)?,
        _ => result_so_far(plan, results)?,
    };
    let emitted = emitted(plan, reports);
    let mut envelope = String::new();
    Writer::compact(&mut envelope).object(|w| {
        w.field("ok", &true);
        w.field("meta", &meta);
        w.field("data", &data);
        w.optional("_emitted_context", &emitted);
    });
    Ok(PartsAnswer::Envelope(envelope))
}

/// Returns what the parts have emitted of the types that the module declares. Of several values of a type, that of the part
/// counts that started last.
fn emitted(plan: &Plan, reports: &Reports) -> Option<Value> {
    let rule = &plan.module.manifest.context;
    let mut emitted = serde_json::Map::new();
    for (name, value) in reports.emitted().flat_map(Value::members) {
        if rule.emitted(name).is_some() && !value.is_null() {
            emitted.insert(name.to_owned(), value.to_serde());
        }
    }
    (!emitted.is_empty()).then(|| Value::from(serde_json::Value::Object(emitted)))
}

/// Returns the answer of the steps to `output`.
fn output(plan: &Plan, results: &Results, reports: &Reports) -> Result<(Meta, Value), ErrorBody> {
    let data = plan.output(results).map_err(|error| error::mapping(&plan.module, &error))?;
    let Some(data) = data else { return Err(error::no_result(&plan.module)) };
    let meta_of = |envelope: &Value| envelope.get("meta").and_then(Meta::read);
    let own = meta_of(&results.get(Callee::Own));
    let confidence = own.as_ref().map_or_else(|| reports.min_confidence(), |meta| meta.confidence);
    let risk = match plan.module.manifest.risk_rule {
        // The module states the risk itself: with its own prompt, otherwise with its last part.
        RiskRule::Explicit => {
            let stating = own.clone().or_else(|| meta_of(&results.latest()?.1));
            stating.map(|meta| meta.risk)
        }
        RiskRule::MaxChangesRisk | RiskRule::MaxIssuesRisk => reports.max_risk().map(RiskValue::from),
    };
    let explain = own.map_or_else(|| explain(reports), |meta| meta.explain);
    let meta = Meta::new(confidence.or(Some(0.0)), risk.unwrap_or(Risk::Medium.into()), explain);
    Ok((meta, data))
}

/// Returns the result so far as the answer.
fn result_so_far(plan: &Plan, results: &Results) -> Result<(Meta, Value), ErrorBody> {
    let latest = results.latest().ok_or_else(|| error::no_result(&plan.module))?.1;
    let meta = latest.get("meta").and_then(Meta::read);
    let (Some(meta), Some(data)) = (meta, latest.get("data")) else {
        return Err(error::no_result(&plan.module));
    };
    let mut own = Meta::new(meta.confidence, meta.risk, meta.explain);
    own.extra = meta.extra;
    Ok((own, latest.child(data)))
}

fn explain(reports: &Reports) -> String {
    let parts: Vec<&str> = reports.done().map(|report| report.path.as_str()).collect();
    let text = format!("The confidence is the minimum of these parts: {}.", parts.join(", "));
    text.chars().take(Meta::MAX_EXPLAIN).collect()
}

/// Returns the data of the parts that have a result, for a composition that fails.
pub(super) fn partial(plan: &Plan, results: &Results) -> Option<Value> {
    let parts = (0..plan.parts.len()).map(Callee::Part);
    let done = parts.chain([Callee::Own]).filter_map(|callee| {
        let envelope = results.get(callee);
        let data = envelope.get("data").map(Node::to_serde)?;
        Some((plan.name_of(callee).to_owned(), data))
    });
    let done: serde_json::Map<_, _> = done.collect();
    (!done.is_empty()).then(|| Value::from(serde_json::Value::Object(done)))
}
