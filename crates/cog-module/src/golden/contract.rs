use cog_json::{Node, ToJson, Value};
use cog_schema::Violation;
use cog_spec::Tier;

use super::{Expected, GoldenCase, Mismatch, compare::compare, expected::is_envelope};
use crate::{Module, Rule, checker};

/// What a case says that contract and tier do not allow, without a run: the `contract only` of
/// supplement section 4. Each finding comes with the rule it breaks.
pub fn check_case(module: &Module, case: &GoldenCase) -> Vec<(Rule, Mismatch)> {
    let is_example = case.name == "example";
    let (input_rule, answer_rule) = if is_example {
        (Rule::ExampleInput, Rule::ExampleOutput)
    } else {
        (Rule::GoldenInput, Rule::GoldenExpected)
    };
    let input = module.contract.check_input(case.input.node()).into_iter().map(mismatch);
    let answer = answer(module, &case.expected).into_iter();
    input.map(|found| (input_rule, found)).chain(answer.map(|found| (answer_rule, found))).collect()
}

fn answer(module: &Module, expected: &Expected) -> Vec<Mismatch> {
    let mut found = broken_schemas(expected);
    let Some(answer) = expected.answer().map(Value::node) else { return found };
    if is_envelope(answer) {
        found.extend(check_envelope(module, answer));
        if !matches!(expected, Expected::Exact(_)) {
            found.extend(compare(expected, answer));
        }
    } else {
        found.extend(check_data(module, answer));
    }
    found
}

/// The schemas of `$validate` that are none.
fn broken_schemas(expected: &Expected) -> Vec<Mismatch> {
    let Expected::Schemas { fields, .. } = expected else { return Vec::new() };
    let nothing = Value::null();
    let broken = fields.iter().filter_map(|(path, schema)| {
        let problem = checker::faults(schema, nothing.node()).err()?;
        Some(Mismatch::new(format!("$validate.{path}"), "schema", problem))
    });
    broken.collect()
}

fn check_envelope(module: &Module, envelope: Node<'_>) -> Vec<Mismatch> {
    let mut found = Vec::new();
    match envelope.get("meta") {
        Some(meta) => {
            found.extend(module.contract.check_meta(meta).into_iter().map(mismatch));
        }
        None => found.push(Mismatch::new("meta", "required", "an envelope has meta")),
    }
    let succeeds = envelope.get("ok").and_then(Node::as_bool) == Some(true);
    if succeeds {
        found.extend(envelope.get("meta").map(|meta| tier_gate(module, meta)).unwrap_or_default());
        match envelope.get("data") {
            Some(data) => found.extend(check_data(module, data)),
            None => found.push(Mismatch::new("data", "required", "an envelope that is ok has data")),
        }
    } else {
        match envelope.get("error") {
            Some(error) => found.extend(module.contract.check_error(error).into_iter().map(mismatch)),
            None => found.push(Mismatch::new("error", "required", "an envelope that is not ok has error")),
        }
    }
    found
}

/// What an answer of the tier must say to succeed (supplement R2, R3).
fn tier_gate(module: &Module, meta: Node<'_>) -> Vec<Mismatch> {
    let Some(tier) = module.manifest.tier else { return Vec::new() };
    let mut found = Vec::new();
    let confidence = meta.get("confidence").and_then(Node::as_f64);
    if let (Some(least), Some(confidence)) = (tier.least_confidence(), confidence)
        && confidence < least
    {
        let message = format!("tier {tier} asks for {least} at least, found {confidence}");
        found.push(Mismatch::new("meta.confidence", "tier", message));
    }
    let risk = meta.get("risk");
    let is_low = risk.and_then(Node::as_str).is_some_and(|risk| matches!(risk, "none" | "low"));
    if tier == Tier::Exec && !is_low {
        let message = format!("tier exec asks for none or low, found {}", risk.to_json());
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
