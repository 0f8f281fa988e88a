//! The manifests of two versions of a module, with their defaults resolved.

use std::collections::BTreeSet;

use cog_json::Value;
use cog_module::Module;
use cog_schema::{Contract, Rules};
use cog_spec::{EnumStrategy, Manifest, ResponseMode, Strictness};
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
            old: shown(&before.value),
            new: shown(&after.value),
        });
    }
    changes
}

/// The maximum length of a value that is shown, as JSON.
const MAX_SHOWN: usize = 200;

fn shown(value: &Json) -> Option<Value> {
    let is_short = !value.is_null() && value.to_string().len() <= MAX_SHOWN;
    is_short.then(|| Value::from(value.clone()))
}

/// A value of the manifest.
struct Fact {
    path: &'static str,
    value: Json,
}

/// Returns the values of a manifest, always the same ones in the same order.
fn facts(manifest: &Manifest) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |path, value| facts.push(Fact { path, value });
    let text = |value: &dyn std::fmt::Debug| Json::from(format!("{value:?}"));
    add("name", json!(manifest.name));
    add("version", json!(manifest.version));
    add("responsibility", json!(manifest.responsibility));
    add("format", json!(manifest.format.as_str()));
    add("tier", json!(manifest.tier.map(|tier| tier.as_str())));
    add("schema_strictness", json!(manifest.strictness.as_str()));
    add("excludes", json!(manifest.excludes));
    add("policies", text(&manifest.policies));
    add("tools.allowed", json!(manifest.tools.allowed));
    add("tools.denied", json!(manifest.tools.denied));
    add("tools.policy", json!(manifest.tools.allow_by_default));
    add("overflow.enabled", json!(manifest.overflow.enabled));
    add("overflow.recoverable", json!(manifest.overflow.recoverable));
    add("overflow.max_items", json!(manifest.overflow.max_items));
    add("overflow.require_suggested_mapping", json!(manifest.overflow.require_suggested_mapping));
    add("enums.strategy", json!(manifest.enums.strategy.as_str()));
    add("enums.unknown_tag", json!(manifest.enums.unknown_tag));
    add("failure.partial_allowed", json!(manifest.failure.partial_allowed));
    add("failure.must_return_error_schema", json!(manifest.failure.must_return_error_schema));
    add("failure.model_errors", json!(manifest.failure.model_errors));
    add("rationale", json!(manifest.needs_rationale));
    add("runtime_requirements.structured_output", json!(manifest.requirements.structured_output));
    add("runtime_requirements.max_input_tokens", json!(manifest.requirements.max_input_tokens));
    add("runtime_requirements.preferred_capabilities", json!(manifest.requirements.preferred_capabilities));
    add("generation", text(&manifest.generation));
    add(
        "compat",
        text(&(
            manifest.compat.accepts_v21_payload,
            manifest.compat.accepts_v22_payload,
            manifest.compat.runtime_auto_wrap,
        )),
    );
    add("meta.risk_rule", json!(manifest.risk_rule.as_str()));
    add("constraints", text(&manifest.constraints));
    add("invocation.user_invocable", json!(manifest.invocation.user_invocable));
    add("invocation.agent_invocable", json!(manifest.invocation.agent_invocable));
    add("context", text(&manifest.context));
    add("composition", text(&manifest.composition));
    add("cache", json!(manifest.cache));
    add("response.mode", json!(manifest.response.mode.as_str()));
    add("response.chunk_type", json!(manifest.response.chunk_type.as_str()));
    add("response.buffer_size", json!(manifest.response.buffer_size));
    add("response.on_violation", json!(manifest.response.on_violation.map(|on| on.as_str())));
    add("response.max_attempts", json!(manifest.response.max_attempts));
    add("modalities.input", json!(names(manifest.modalities.input.iter().map(|one| one.as_str()))));
    add("modalities.output", json!(names(manifest.modalities.output.iter().map(|one| one.as_str()))));
    add("modalities.constraints", text(&manifest.modalities.constraints));
    add("error_codes", json!(manifest.error_codes));
    facts
}

/// Returns names whose order does not matter.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    all.collect()
}

/// Judges a value that differs.
fn judge(path: &str, old: &Module, new: &Module) -> (Effect, Option<Value>) {
    let (before, after) = (&*old.manifest, &*new.manifest);
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
        | "composition"
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
    let (old, new) = (&old.modalities.constraints, &new.modalities.constraints);
    is_less(new.max_size_mb, old.max_size_mb)
        || is_less(new.max_dimension, old.max_dimension)
        || is_less(new.max_pixels, old.max_pixels)
        || is_less(new.max_duration_s, old.max_duration_s)
        || is_less(new.max_items, old.max_items)
        || new.min_dimension.unwrap_or(0) > old.min_dimension.unwrap_or(0)
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
    let (before, after) = (old.contract.rules(), new.contract.rules());
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
