use std::collections::HashSet;

use cog_json::{Node, Path, ToJson, Value};
use cog_schema::Violation;
use cog_spec::Tier;

use super::{
    Expected, GoldenCase, Mismatch,
    compare::{compare, violations, why_unusable},
    expected::{is_envelope, operator},
};
use crate::{Module, Rule};

/// Checks a case against the contract and the tier without a run (`contract only` in docs/spec/golden-tests.md).
/// Returns each mismatch with its rule.
pub fn check_case(module: &Module, case: &GoldenCase) -> Vec<(Rule, Mismatch)> {
    let is_example = case.name == "example";
    let (input_rule, answer_rule) = if is_example {
        (Rule::ExampleInput, Rule::ExampleOutput)
    } else {
        (Rule::GoldenInput, Rule::GoldenExpected)
    };
    let input = check_input(module, case.input.node()).into_iter().map(mismatch);
    let answer = answer(module, &case.expected).into_iter();
    input.map(|found| (input_rule, found)).chain(answer.map(|found| (answer_rule, found))).collect()
}

/// Checks the input, and its `_context`, which is not part of the input schema.
fn check_input(module: &Module, input: Node<'_>) -> Vec<Violation> {
    let mut violations = module.contract.check_input(input);
    violations.retain(|violation| !violation.path.starts_with("input._context"));
    let context = input.get("_context").into_iter().flat_map(Node::members);
    violations.extend(context.flat_map(|(name, value)| module.contract.check_context(name, value)));
    violations
}

fn answer(module: &Module, expected: &Expected) -> Vec<Mismatch> {
    match expected.answer().map(Value::node) {
        Some(answer) if is_envelope(answer) => {
            let mut found = check_envelope(module, answer);
            if !matches!(expected, Expected::Exact(_)) {
                found.extend(compare(expected, answer));
            }
            found
        }
        answer => {
            let mut found = unusable(module, expected);
            found.extend(answer.map(|data| check_data(module, data)).unwrap_or_default());
            found
        }
    }
}

/// Returns invalid schemas in `$validate` and invalid operands in `_validate`, if there is no envelope to compare.
fn unusable(module: &Module, expected: &Expected) -> Vec<Mismatch> {
    match expected {
        Expected::Schemas { fields, .. } => fields.iter().filter_map(broken_schema).collect(),
        Expected::Assertions { assertions, .. } => {
            let names = property_names(&module.schema);
            // A key that is the name of a field has no operator, whatever its suffix.
            let operators = assertions.members();
            let operators =
                operators.filter(|(key, _)| !names.contains(key.rsplit('.').next().unwrap_or(key)));
            operators.filter_map(|(key, value)| broken_operator(key, value)).collect()
        }
        Expected::Exact(_) => Vec::new(),
    }
}

fn broken_schema((path, schema): &(Path, serde_json::Value)) -> Option<Mismatch> {
    let problem = violations(schema, Value::null().node()).err()?;
    Some(Mismatch::new(format!("$validate.{path}"), "schema", problem))
}

fn broken_operator(key: &str, value: Node<'_>) -> Option<Mismatch> {
    let (_, rule) = operator(key)?;
    Some(Mismatch::new(format!("_validate.{key}"), rule, why_unusable(rule, value)?))
}

/// Returns the names of all fields in a schema.
pub(crate) fn property_names(schema: &serde_json::Value) -> HashSet<&str> {
    let mut names = HashSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(members) => {
                let properties = members.get("properties").and_then(serde_json::Value::as_object);
                names.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
                open.extend(members.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names
}

fn check_envelope(module: &Module, envelope: Node<'_>) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match envelope.get("meta") {
        Some(meta) => {
            found.extend(module.contract.check_meta(meta).into_iter().map(mismatch));
        }
        None => found.push(Mismatch::new("meta", "required", "the envelope has no `meta`")),
    }
    let succeeds = envelope.get("ok").and_then(Node::as_bool) == Some(true);
    if succeeds {
        found.extend(envelope.get("meta").map(|meta| tier_gate(module, meta)).unwrap_or_default());
        match envelope.get("data") {
            Some(data) => found.extend(check_data(module, data)),
            None => found.push(Mismatch::new("data", "required", "a successful envelope needs `data`")),
        }
    } else {
        match envelope.get("error") {
            Some(error) => found.extend(module.contract.check_error(error).into_iter().map(mismatch)),
            None => found.push(Mismatch::new("error", "required", "a failed envelope needs `error`")),
        }
    }
    found
}

/// Checks what the tier requires of a successful answer (rulings R2, R3).
fn tier_gate(module: &Module, meta: Node<'_>) -> Vec<Mismatch> {
    let Some(tier) = module.manifest.tier else { return Vec::new() };
    let mut found = Vec::new();
    let confidence = meta.get("confidence").and_then(Node::as_f64);
    if let Some((min, confidence)) = tier.min_confidence().zip(confidence)
        && confidence < min
    {
        let message = format!("tier {tier} requires at least {min}, found {confidence}");
        found.push(Mismatch::new("meta.confidence", "tier", message));
    }
    let risk = meta.get("risk");
    let is_low = risk.and_then(Node::as_str).is_some_and(|risk| matches!(risk, "none" | "low"));
    if tier == Tier::Exec && !is_low {
        let message = format!("tier exec requires `none` or `low`, found {}", risk.to_json());
        found.push(Mismatch::new("meta.risk", "tier", message));
    }
    found
}

fn check_data(module: &Module, data: Node<'_>) -> Vec<Mismatch> {
    module.contract.check_data(data).violations.into_iter().map(mismatch).collect()
}

fn mismatch(violation: Violation) -> Mismatch {
    Mismatch::new(violation.path, violation.rule, violation.message)
}
