//! Checks what rules of the routing and calls of the prompt pass on.

use std::{collections::HashSet, ops::Range};

use cog_json::{Node, Value};
use cog_module::{Prompt, PromptPart, Rule};
use cog_schema::{Types, Violation};

use super::{Known, Passed, Receiver, Sources, values};
use crate::{
    Callee, Finding, PromptCall, Source,
    finding::{FindingLocation, Findings},
    value_path::ValuePath,
};

/// Adds the inputs that a rule of the routing gives to a module without a step, and that do not fit.
pub(super) fn routes(sources: &Sources<'_>, findings: &mut Findings) {
    let plan = sources.plan;
    let mut checked = HashSet::new();
    for route in &plan.routes {
        let Some(next) = route.next.filter(|next| checked.insert(*next)) else { continue };
        if plan.routed_step(next).is_some() {
            continue;
        }
        let name = plan.module_of(next);
        let passed = Passed {
            by: "the rule",
            value: sources.payload_of(Source::Input),
            location: FindingLocation::composition(format!("/routing/{}/next", route.index)),
            rule: Rule::CompositionMapping,
            help: format!("Add a step with `to: {name}` and a `mapping` to `dataflow`: the rule starts it."),
        };
        findings.extend(Receiver::inputs(sources, next).flat_map(|receiver| receiver.check(&passed)));
    }
}

/// The arguments of a call, as far as they are known.
enum Arguments<'c> {
    /// An object with these members.
    Object(Known<'c>),
    /// A complete object.
    Literal(Value),
    /// A text that is not an object.
    Text,
    Unknown,
}

/// Returns the arguments of a call that do not fit the called module or its fallbacks.
pub(super) fn call(sources: &Sources<'_>, range: &Range<usize>, call: &PromptCall) -> Vec<Finding> {
    let callee = Callee::Part(call.part);
    let name = sources.plan.module_of(callee);
    let passed = |value| Passed {
        by: "the call",
        value,
        location: FindingLocation::Prompt(range.clone()),
        rule: Rule::PromptCall,
        help: format!("Write the input as a JSON object in the parentheses: `@call:{name}({{…}})`."),
    };
    let arguments = match &call.arguments {
        None => Arguments::Object(sources.payload_of(Source::Input)),
        Some(prompt) => arguments(sources, prompt),
    };
    match arguments {
        Arguments::Object(value) => {
            let passed = passed(value);
            Receiver::inputs(sources, callee).flat_map(|receiver| receiver.check(&passed)).collect()
        }
        Arguments::Literal(value) => literal(sources, callee, &passed(Known::Any), &value),
        Arguments::Text => without_text_field(sources, callee, &passed(Known::Any)),
        Arguments::Unknown => Vec::new(),
    }
}

/// Returns what is known about arguments: a single placeholder, or a text with placeholders.
fn arguments<'c>(sources: &Sources<'c>, prompt: &Prompt) -> Arguments<'c> {
    match prompt.parts() {
        [PromptPart::Input] => Arguments::Object(sources.payload_of(Source::Input)),
        [PromptPart::Reference { module, path, .. }] => {
            let path = ValuePath::parse(&format!("$.{path}"));
            let known = path.and_then(|path| sources.named(module)?.find(&path).ok());
            known.map_or(Arguments::Unknown, inserted)
        }
        [PromptPart::Text(text), rest @ ..] => template(text, rest),
        _ => Arguments::Unknown,
    }
}

/// Returns what the value of a reference is as arguments. A string can be the text of an object.
fn inserted(known: Known<'_>) -> Arguments<'_> {
    match known.types() {
        Types::OBJECT => Arguments::Object(known),
        types if types.meet(Types::OBJECT.or(Types::STRING)) => Arguments::Unknown,
        _ => Arguments::Text,
    }
}

/// Reads arguments that begin with a text, with one value and then another in place of their placeholders: what differs is
/// not known.
fn template<'c>(text: &str, rest: &[PromptPart]) -> Arguments<'c> {
    if !text.trim_start().starts_with('{') {
        return if text.trim().is_empty() { Arguments::Unknown } else { Arguments::Text };
    }
    let filled = |value: &str| {
        let rest_text = rest.iter().map(|part| match part {
            PromptPart::Text(text) => text.as_str(),
            _ => value,
        });
        let complete: String = std::iter::once(text).chain(rest_text).collect();
        Value::parse(&complete).ok().filter(|value| value.node().is_object())
    };
    match (filled("null"), filled("true")) {
        (Some(value), _) if rest.is_empty() => Arguments::Literal(value),
        (Some(one), Some(other)) => Arguments::Object(common(one.node(), other.node())),
        _ => Arguments::Unknown,
    }
}

/// Returns what two values of a template have in common. A placeholder in the name of a member makes the members unknown.
fn common<'c>(one: Node<'_>, other: Node<'_>) -> Known<'c> {
    if one.kind() != other.kind() {
        return Known::Any;
    }
    let names = |node: Node<'_>| node.members().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    if one.is_object() && names(one) == names(other) {
        let pairs = one.members().zip(other.members());
        return Known::object(pairs.map(|((name, one), (_, other))| (name, common(one, other))));
    }
    Known::Types(values::types_of(one.kind()))
}

/// Returns the violations of a complete input.
fn literal(sources: &Sources<'_>, callee: Callee, passed: &Passed<'_>, value: &Value) -> Vec<Finding> {
    if value.get("_context").is_some() {
        return Vec::new();
    }
    let check = |receiving: Callee| {
        let contract = sources.module(receiving).map(|module| &module.contract);
        let name = sources.plan.name_of(receiving);
        let finding = move |found: Violation| {
            let message = format!("the input of `{name}`: `{}` {}", found.path, found.message);
            passed.error(message).suggest(found.suggestion)
        };
        contract
            .map(|contract| contract.check_input(value.node()))
            .unwrap_or_default()
            .into_iter()
            .map(finding)
    };
    sources.answering(callee).flat_map(check).collect()
}

/// Returns the modules that receive a text, but have no field for it.
fn without_text_field(sources: &Sources<'_>, callee: Callee, passed: &Passed<'_>) -> Vec<Finding> {
    let finding = |receiving: Callee| {
        let candidates = sources.module(receiving)?.contract.args_target().err()?;
        let name = sources.plan.name_of(receiving);
        let why = match candidates.as_slice() {
            [] => "no field for a text".to_owned(),
            many => format!("several fields for a text: `{}`", many.join("`, `")),
        };
        Some(passed.error(format!("the arguments are a text, but the input of `{name}` has {why}")))
    };
    sources.answering(callee).filter_map(finding).collect()
}

#[cfg(test)]
mod tests;
