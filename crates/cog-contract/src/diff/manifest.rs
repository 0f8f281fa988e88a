//! The manifests of two versions of a module, with their defaults resolved.

use std::{collections::BTreeSet, fmt::Debug};

use cog_json::Value;
use cog_module::Module;
use cog_schema::{Contract, Rules};
use cog_spec::{CheckRule, CheckSeverity, EnumStrategy, Manifest, ResponseMode, Strictness};
use serde_json::{Value as Json, json};

use super::{Change, Effect, Part};

/// Returns the changes of the manifest.
pub(super) fn changes(old: &Module, new: &Module) -> Vec<Change> {
    let before = facts(&old.manifest);
    let after = facts(&new.manifest);
    let mut changes = Vec::new();
    for (before, after) in before.into_iter().zip(after).filter(|(before, after)| before.value != after.value)
    {
        let verb = match (before.value.is_null(), after.value.is_null()) {
            (true, _) => "added",
            (_, true) => "removed",
            _ => "changed",
        };
        let (effect, example) = judge(before.path, old, new);
        changes.push(Change {
            part: Part::Manifest,
            path: before.path.to_owned(),
            kind: format!("value_{verb}"),
            effect,
            example,
            old: shown(&before),
            new: shown(&after),
        });
    }
    changes
}

/// The maximum length of a value that is shown, as JSON.
const MAX_SHOWN: usize = 200;

fn shown(fact: &Fact) -> Option<Value> {
    let Fact { value, is_readable, .. } = fact;
    let is_short = *is_readable && !value.is_null() && value.to_string().len() <= MAX_SHOWN;
    is_short.then(|| Value::from(value))
}

/// A value of the manifest.
struct Fact {
    path: &'static str,
    value: Json,
    is_readable: bool,
}

/// Returns the values of a manifest, always the same ones in the same order.
fn facts(manifest: &Manifest) -> Vec<Fact> {
    // Without `..`: a new key does not compile until its changes are judged. Parts and tests are compared by themselves.
    let Manifest {
        name,
        version,
        responsibility,
        format,
        tier,
        strictness,
        excludes,
        policies,
        tools,
        overflow,
        enums,
        failure,
        needs_rationale,
        requirements,
        generation,
        io: _,
        compat,
        risk_rule,
        constraints,
        invocation,
        context,
        composition,
        confidence,
        cache,
        response,
        modalities,
        error_codes,
        tests: _,
        checks,
        evidence,
    } = manifest;
    vec![
        fact("name", json!(name)),
        fact("version", json!(version)),
        fact("responsibility", json!(responsibility)),
        fact("format", json!(format.as_str())),
        fact("tier", json!(tier.map(|tier| tier.as_str()))),
        fact("schema_strictness", json!(strictness.as_str())),
        fact("excludes", json!(excludes)),
        opaque("policies", policies),
        fact("tools.allowed", json!(tools.allowed)),
        fact("tools.denied", json!(tools.denied)),
        fact("tools.policy", json!(tools.allow_by_default)),
        fact("overflow.enabled", json!(overflow.enabled)),
        fact("overflow.recoverable", json!(overflow.recoverable)),
        fact("overflow.max_items", json!(overflow.max_items)),
        fact("overflow.require_suggested_mapping", json!(overflow.require_suggested_mapping)),
        fact("enums.strategy", json!(enums.strategy.as_str())),
        fact("enums.unknown_tag", json!(enums.unknown_tag)),
        fact("failure.partial_allowed", json!(failure.partial_allowed)),
        fact("failure.must_return_error_schema", json!(failure.must_return_error_schema)),
        fact("failure.model_errors", json!(failure.model_errors)),
        fact("rationale", json!(needs_rationale)),
        fact("runtime_requirements.structured_output", json!(requirements.structured_output)),
        fact("runtime_requirements.max_input_tokens", json!(requirements.max_input_tokens)),
        fact("runtime_requirements.preferred_capabilities", json!(requirements.preferred_capabilities)),
        opaque("generation", generation),
        opaque("compat", &(compat.accepts_v21_payload, compat.accepts_v22_payload, compat.runtime_auto_wrap)),
        fact("meta.risk_rule", json!(risk_rule.as_str())),
        opaque("constraints", constraints),
        fact("invocation.user_invocable", json!(invocation.user_invocable)),
        fact("invocation.agent_invocable", json!(invocation.agent_invocable)),
        opaque("context", context),
        opaque("composition", composition),
        opaque("confidence", confidence),
        fact("failure.escalate", json!(failure.escalate)),
        fact("cache", json!(cache)),
        fact("response.mode", json!(response.mode.as_str())),
        fact("response.chunk_type", json!(response.chunk_type.as_str())),
        fact("response.buffer_size", json!(response.buffer_size)),
        fact("response.on_violation", json!(response.on_violation.map(|on| on.as_str()))),
        fact("response.max_attempts", json!(response.max_attempts)),
        fact("modalities.input", json!(names(modalities.input.iter().map(|one| one.as_str())))),
        fact("modalities.output", json!(names(modalities.output.iter().map(|one| one.as_str())))),
        opaque("modalities.constraints", &modalities.constraints),
        fact("error_codes", json!(error_codes)),
        fact("checks", checks.iter().map(check).collect()),
        fact("confidence.evidence", json!(evidence.request.to_string())),
        fact("confidence.fields", json!(evidence.fields)),
        fact("confidence.grounded", json!(evidence.grounded)),
    ]
}

fn fact(path: &'static str, value: Json) -> Fact {
    Fact { path, value, is_readable: true }
}

/// Returns a value of several keys, which is compared and not shown.
fn opaque(path: &'static str, value: &dyn Debug) -> Fact {
    Fact { path, value: Json::from(format!("{value:?}")), is_readable: false }
}

fn check(rule: &CheckRule) -> Json {
    let CheckRule { name, that, grounded, when, message, severity } = rule;
    json!({ "name": name, "that": that, "grounded": grounded, "when": when, "message": message, "severity": severity.as_str() })
}

/// Returns names whose order does not matter.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    all.collect()
}

/// Judges a value that differs.
fn judge(path: &str, old: &Module, new: &Module) -> (Effect, Option<Value>) {
    let before = &*old.manifest;
    let after = &*new.manifest;
    let lost = |is_lost: bool| if is_lost { Effect::BreaksCallers } else { Effect::Compatible };
    let effect = match path {
        "version" | "responsibility" | "overflow.recoverable" | "response.buffer_size" => Effect::None,
        "runtime_requirements.preferred_capabilities" => Effect::None,
        "name" => Effect::BreaksCallers,
        "excludes"
        | "policies"
        | "tools.allowed"
        | "tools.denied"
        | "tools.policy"
        | "generation"
        | "compat"
        | "cache"
        | "confidence"
        | "failure.escalate"
        | "composition"
        | "confidence.evidence"
        | "confidence.fields"
        | "confidence.grounded"
        | "response.on_violation"
        | "response.max_attempts" => Effect::Compatible,
        "runtime_requirements.structured_output" => lost(after.requirements.structured_output),
        "runtime_requirements.max_input_tokens" => {
            lost(is_less(after.requirements.max_input_tokens, before.requirements.max_input_tokens))
        }
        "invocation.user_invocable" => lost(before.invocation.user_invocable),
        "invocation.agent_invocable" => lost(before.invocation.agent_invocable),
        "response.mode" => lost(after.response.mode != ResponseMode::Both),
        "modalities.input" => {
            lost(!before.modalities.input.iter().all(|kind| after.modalities.input.contains(kind)))
        }
        "modalities.constraints" => lost(tightens_media(before, after)),
        "error_codes" => return error_codes(old, new),
        "checks" if checks_at_least(before, after) => Effect::Compatible,
        "checks" => Effect::Unknown,
        _ => return judge_rule(path, old, new),
    };
    (effect, None)
}

/// Returns whether a limit is lower than another one; none is unlimited.
fn is_less<T: PartialOrd>(limit: Option<T>, than: Option<T>) -> bool {
    match (limit, than) {
        (Some(limit), Some(than)) => limit < than,
        (limit, None) => limit.is_some(),
        (None, Some(_)) => false,
    }
}

fn tightens_media(old: &Manifest, new: &Manifest) -> bool {
    let old = &old.modalities.constraints;
    let new = &new.modalities.constraints;
    is_less(new.max_size_mb, old.max_size_mb)
        || is_less(new.max_dimension, old.max_dimension)
        || is_less(new.max_pixels, old.max_pixels)
        || is_less(new.max_duration_s, old.max_duration_s)
        || is_less(new.max_items, old.max_items)
        || new.min_dimension.unwrap_or(0) > old.min_dimension.unwrap_or(0)
}

/// Returns whether the new version rejects every answer that a check of the old one rejects.
fn checks_at_least(old: &Manifest, new: &Manifest) -> bool {
    let decides = |check: &&CheckRule| check.severity == CheckSeverity::Error;
    let is_same = |one: &CheckRule, other: &CheckRule| {
        (&one.that, &one.grounded, &one.when) == (&other.that, &other.grounded, &other.when)
    };
    let mut rejected = old.checks.iter().filter(decides);
    rejected.all(|check| new.checks.iter().filter(decides).any(|other| is_same(check, other)))
}

/// Judges error codes: an error with a new code is one that the old version refused.
fn error_codes(old: &Module, new: &Module) -> (Effect, Option<Value>) {
    let declares =
        |module: &Module, code: &str| module.manifest.error_codes.iter().any(|(other, _)| other == code);
    let added = new.manifest.error_codes.iter().map(|(code, _)| code).filter(|code| !declares(old, code));
    let mut effect = Effect::Compatible;
    for code in added {
        effect = Effect::Unknown;
        for error in [
            json!({ "code": code, "message": "x" }),
            json!({ "code": code, "message": "x", "recoverable": false }),
        ] {
            let error = Value::from(error);
            let is_valid = |module: &Module| module.contract.check_error(error.node()).is_empty();
            if is_valid(new) && !is_valid(old) {
                return (Effect::BreaksReaders, Some(error));
            }
        }
    }
    (effect, None)
}

// The rules that decide, with the schema, which answers are valid.

/// Judges a rule: by an answer that only the new rule accepts, otherwise by whether it accepts more.
fn judge_rule(path: &str, old: &Module, new: &Module) -> (Effect, Option<Value>) {
    let before = old.contract.rules();
    let after = new.contract.rules();
    let Some((rules, accepts_more)) = with_rule(path, before, after) else { return (Effect::Unknown, None) };
    if accepts_more == Some(false) {
        return (Effect::Compatible, None);
    }
    let example = Contract::compile(&old.schema, &rules).ok().and_then(|edited| answer(old, &edited, new));
    match example {
        Some(example) => (Effect::BreaksReaders, Some(example)),
        None => (Effect::Unknown, None),
    }
}

/// Returns the old rules with one new rule, and whether it can accept an answer that the old one refuses; none if that is open.
/// Returns none for what is not a rule about answers.
fn with_rule(path: &str, old: &Rules, new: &Rules) -> Option<(Rules, Option<bool>)> {
    let mut rules = old.clone();
    let accepts_more = match path {
        "schema_strictness" => {
            rules.strictness = new.strictness;
            Some(old.strictness == Strictness::High)
        }
        "overflow.enabled" => {
            rules.overflow.enabled = new.overflow.enabled;
            Some(new.overflow.enabled)
        }
        "overflow.max_items" => {
            rules.overflow.max_items = new.overflow.max_items;
            Some(new.overflow.max_items > old.overflow.max_items)
        }
        "overflow.require_suggested_mapping" => {
            rules.overflow.require_suggested_mapping = new.overflow.require_suggested_mapping;
            Some(!new.overflow.require_suggested_mapping)
        }
        "enums.strategy" => {
            rules.enums.strategy = new.enums.strategy;
            Some(new.enums.strategy != EnumStrategy::Strict)
        }
        "rationale" => {
            rules.needs_rationale = new.needs_rationale;
            Some(!new.needs_rationale)
        }
        "failure.must_return_error_schema" => {
            rules.enforce_error_schema = new.enforce_error_schema;
            Some(!new.enforce_error_schema)
        }
        "failure.model_errors" => {
            rules.model_errors = new.model_errors;
            Some(new.model_errors)
        }
        "constraints" => {
            rules.require_confidence = new.require_confidence;
            rules.require_rationale = new.require_rationale;
            None
        }
        _ => return None,
    };
    Some((rules, accepts_more))
}

/// The number of sampled answers.
const SAMPLES: u64 = 16;

/// Returns an answer's data that the old contract refuses, and that it accepts with the new rule, as the new contract does.
fn answer(old: &Module, edited: &Contract, new: &Module) -> Option<Value> {
    let accepts = |contract: &Contract, data: &Value| contract.check_data(data.node()).violations.is_empty();
    let shows = |data: &Json| {
        let data = Value::from(data.clone());
        let is_new =
            accepts(edited, &data) && accepts(&new.contract, &data) && !accepts(&old.contract, &data);
        is_new.then_some(data)
    };
    let tag = new.contract.rules().enums.unknown_tag.as_str();
    let samples = (0..SAMPLES).filter_map(|seed| new.contract.sample(seed));
    samples
        .map(|sample| sample.to_serde())
        .flat_map(|sample| variants(&sample, tag))
        .find_map(|data| shows(&data))
}

/// Returns what rules are about: a field that no schema has, insights, no rationale, values beyond an enum.
fn variants(sample: &Json, tag: &str) -> Vec<Json> {
    let mut all = Vec::new();
    let Some(members) = sample.as_object() else { return all };
    let with = |key: &str, value: Json| {
        let mut members = members.clone();
        members.insert(key.to_owned(), value);
        Json::Object(members)
    };
    all.push(with("undeclared", json!("x")));
    for count in [1, 6, 11, 21, 51] {
        let mapped = json!({ "text": "x", "suggested_mapping": "data.x" });
        all.push(with("extensions", json!({ "insights": vec![mapped; count] })));
    }
    all.push(with("extensions", json!({ "insights": [{ "text": "x" }] })));
    for key in ["rationale", "confidence"] {
        let mut members = members.clone();
        if members.shift_remove(key).is_some() {
            all.push(Json::Object(members));
        }
    }
    for (key, _) in members.iter().filter(|(_, value)| value.is_string()) {
        all.push(with(key, json!({ tag: "x", "reason": "y" })));
    }
    all
}
