//! Checks what steps, rules of the routing and calls of the prompt pass on.

use std::{collections::HashSet, ops::Range};

use cog_json::{Node, Value};
use cog_module::{Prompt, PromptPart, Rule};
use cog_rules::{StaticType, ValuePath, types_of};
use cog_schema::Types;

use super::{PassedValue, Receiver, Select as _, Sources, mismatch};
use crate::{
    Answer, Callee, Finding, PromptCall, Source, Step, Target,
    finding::{FindingLocation, Findings},
    mapping::{MappedField, Mapping, Operand},
};

/// A field of a mapping, and what is known about the values of its paths; a path that finds nothing has none.
type Selected<'s, 'c> = (&'s MappedField, Vec<StaticType<'c>>);

/// Adds the fields of a step that do not exist, or whose values cannot fit.
pub(super) fn step(sources: &Sources<'_>, pointer: &str, step: &Step, findings: &mut Findings) {
    let item = match sources.item(step) {
        Ok(item) => item,
        Err(absent) => {
            let location = FindingLocation::composition(format!("{pointer}/each"));
            let finding = Finding::error(Rule::CompositionMapping, location, absent.message);
            findings.push(finding.with_suggestion(absent.suggestion));
            return;
        }
    };
    let Some(mapping) = &step.mapping else {
        let passed = passed_by_step(sources, pointer, step, item);
        receivers(sources, step).for_each(|receiver| findings.extend(receiver.check(&passed)));
        return;
    };
    let document = sources.document(step);
    let item = item.unwrap_or(StaticType::Any);
    let mut selected: Vec<Selected<'_, '_>> = Vec::new();
    for field in mapping.fields() {
        selected.push((field, select(pointer, field, &document, &item, findings)));
    }
    let names: HashSet<&str> = selected.iter().map(|(field, _)| field.name.as_str()).collect();
    for receiver in receivers(sources, step) {
        fields(pointer, &selected, &receiver, findings);
        if mapping.is_complete {
            findings.extend(missing(pointer, &names, &receiver));
        }
        let required: HashSet<&str> = receiver.missing(|_| false).into_iter().collect();
        for field in mapping.fields().iter().filter(|field| required.contains(field.name.as_str())) {
            let lacking = sources.lacking(step, field);
            findings.extend(lacking.map(|callee| lacks(sources, callee, field, pointer, &receiver)));
        }
    }
}

/// Returns the warning about a required field whose value is missing if an optional part fails.
fn lacks(
    sources: &Sources<'_>,
    callee: Callee,
    field: &MappedField,
    pointer: &str,
    receiver: &Receiver<'_>,
) -> Finding {
    let MappedField { name, text, .. } = field;
    let result = sources.plan.name_of(callee);
    let message = format!(
        "{} requires `{name}`, which is left out when an optional part fails and `{result}` has no result",
        receiver.name
    );
    Finding::warning(Rule::CompositionMapping, location(pointer, name), message)
        .suggest(format!("Add a default: `{text} ?? VALUE`, or let the schema not require it."))
}

/// Returns the fields that the answer requires, and that no step to `output` gives.
pub(super) fn answer(sources: &Sources<'_>) -> Option<Finding> {
    let plan = sources.plan;
    let first = plan.outputs.first().filter(|_| plan.is_complete)?;
    let shape = plan.module.contract.shape("data")?;
    let mapped = plan.outputs.iter().flat_map(|step| &step.mapping).flat_map(Mapping::fields);
    let mapped: HashSet<&str> = mapped.map(|field| field.name.as_str()).collect();
    let complete = plan.outputs.iter().filter(|step| step.mapping.is_none());
    let payloads: Vec<StaticType<'_>> = complete.map(|step| sources.payload(&step.from)).collect();
    let required = shape.required_names().into_iter().filter(|name| !mapped.contains(name));
    let missing: Vec<&str> =
        required.filter(|name| payloads.iter().all(|known| known.member(name).is_none())).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("no step to `output` gives `{}`, which the answer requires", missing.join("`, `"));
    let location = FindingLocation::composition(format!("/dataflow/{}", first.index));
    let help = format!("Add `{}:` with a path to `mapping`.", missing.first().copied().unwrap_or_default());
    Some(Finding::error(Rule::CompositionMapping, location, message).suggest(help))
}

/// Adds the fields that the answer requires, and that no step to `output` gives if an optional part fails.
pub(super) fn optional_answer(sources: &Sources<'_>, findings: &mut Findings) {
    let plan = sources.plan;
    let Some(shape) = plan.module.contract.shape("data").filter(|_| plan.is_complete) else { return };
    let receiver = Receiver::answer(sources);
    for name in shape.required_names() {
        let mut lacking = Vec::new();
        for step in &plan.outputs {
            let field =
                step.mapping.as_ref().map(|mapping| mapping.fields().iter().find(|field| field.name == name));
            let is_given = match field {
                Some(field) => field.is_some(),
                None => sources.payload(&step.from).member(name).is_some(),
            };
            if is_given {
                let field = field.flatten();
                lacking.push(sources.lacking_in_answer(step, field).map(|callee| (step, field, callee)));
            }
        }
        let Some(lacking) = lacking.into_iter().collect::<Option<Vec<_>>>() else { continue };
        let Some((step, field, callee)) = lacking.first() else { continue };
        let pointer = format!("/dataflow/{}", step.index);
        findings.push(match field {
            Some(field) => lacks(sources, *callee, field, &pointer, &receiver),
            None => {
                let result = plan.name_of(*callee);
                let message = format!(
                    "the answer requires `{name}`, which is left out when an optional part fails and `{result}` has no result"
                );
                let location = FindingLocation::composition(format!("{pointer}/from"));
                Finding::warning(Rule::CompositionMapping, location, message)
                    .suggest("Add a source that always has a result, and a `mapping` with a default: `$.a.b ?? VALUE`.")
            }
        });
    }
}

fn receivers<'c>(sources: &Sources<'c>, step: &Step) -> impl Iterator<Item = Receiver<'c>> {
    let answer = (step.to == Target::Output).then(|| Receiver::answer(sources));
    answer.into_iter().chain(step.targets().iter().flat_map(move |callee| Receiver::inputs(sources, *callee)))
}

/// Returns what a step without a mapping passes on.
fn passed_by_step<'c>(
    sources: &Sources<'c>,
    pointer: &str,
    step: &Step,
    item: Option<StaticType<'c>>,
) -> PassedValue<'c> {
    let (by, key) = if item.is_some() { ("each element", "each") } else { ("the step", "from") };
    PassedValue {
        by: by.to_owned(),
        value: item.unwrap_or_else(|| sources.payload(&step.from)),
        location: FindingLocation::composition(format!("{pointer}/{key}")),
        rule: Rule::CompositionMapping,
        help: "Add `mapping:` with a path for each field.".to_owned(),
    }
}

/// Returns what is known about the values of a field's paths. Adds those that find nothing.
fn select<'c>(
    pointer: &str,
    field: &MappedField,
    document: &StaticType<'c>,
    item: &StaticType<'c>,
    findings: &mut Findings,
) -> Vec<StaticType<'c>> {
    let mut known = Vec::new();
    for operand in field.operands.iter().filter(|operand| operand.constant().is_none()) {
        match document.operand(operand, item) {
            Ok(found) => known.push(found),
            Err(absent) => {
                let location = location(pointer, &field.name);
                let finding = Finding::error(Rule::CompositionMapping, location, absent.message);
                findings.push(finding.with_suggestion(absent.suggestion));
            }
        }
    }
    known
}

/// Adds the fields of a mapping that a target does not have, or whose types do not fit.
fn fields(pointer: &str, mapped: &[Selected<'_, '_>], receiver: &Receiver<'_>, findings: &mut Findings) {
    for (field, source) in mapped {
        if findings.is_enough() {
            return;
        }
        let error =
            |message| Finding::error(Rule::CompositionMapping, location(pointer, &field.name), message);
        let Some(target) = receiver.known.member(&field.name) else {
            if receiver.is_fallback && !receiver.known.forbids(&field.name) {
                continue;
            }
            let message = format!("{} has no field `{}`", receiver.name, field.name);
            findings.push(error(message).with_suggestion(receiver.known.similar(&field.name)));
            continue;
        };
        if let Some((found, expected)) = source.iter().find_map(|source| mismatch(source, &target)) {
            let message =
                format!("`{}` in {} is {expected}, but the path selects {found}", field.name, receiver.name);
            findings.push(error(message).suggest("Select another value, or change one of the schemas."));
        }
        let constant = field.operands.iter().find_map(Operand::constant);
        if let Some(violation) = constant.and_then(|value| receiver.violation(&field.name, value)) {
            let message = format!("the constant does not fit {}: {}", receiver.name, violation.message);
            findings.push(error(message).with_suggestion(violation.suggestion));
        }
    }
}

/// Returns the required fields that a mapping does not have.
fn missing(pointer: &str, names: &HashSet<&str>, receiver: &Receiver<'_>) -> Option<Finding> {
    let missing = receiver.missing(|name| names.contains(name));
    let first = missing.first()?;
    let message =
        format!("{} requires `{}`, which the step does not give", receiver.name, missing.join("`, `"));
    let location = FindingLocation::composition(format!("{pointer}/mapping"));
    Some(
        Finding::error(Rule::CompositionMapping, location, message)
            .suggest(format!("Add `{first}:` with a path to `mapping`.")),
    )
}

fn location(pointer: &str, field: &str) -> FindingLocation {
    let token = field.replace('~', "~0").replace('/', "~1");
    FindingLocation::composition(format!("{pointer}/mapping/{token}"))
}

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
        let passed = PassedValue {
            by: "the rule".to_owned(),
            value: sources.payload_of(Source::Input),
            location: FindingLocation::composition(format!("/routing/{}/next", route.index)),
            rule: Rule::CompositionMapping,
            help: format!("Add a step with `to: {name}` and a `mapping` to `dataflow`: the rule starts it."),
        };
        findings.extend(Receiver::inputs(sources, next).flat_map(|receiver| receiver.check(&passed)));
    }
}

/// Adds the results that can be the answer as they are, and that do not fit it.
pub(super) fn results(sources: &Sources<'_>, findings: &mut Findings) {
    let plan = sources.plan;
    if !plan.is_complete {
        return;
    }
    let receiver = Receiver { is_complete: true, ..Receiver::answer(sources) };
    for (callee, location) in answering_results(sources) {
        let help = match plan.answer {
            Answer::Output => {
                "The rule returns this result instead of the steps to `output`: remove the rule, or change a schema."
            }
            _ => "It is the answer as it is: add a step to `output` with a `mapping`, or change a schema.",
        };
        for answering in sources.answering(callee).filter(|answering| *answering != Callee::Own) {
            let passed = PassedValue {
                by: format!("the result of `{}`", plan.name_of(answering)),
                value: if plan.mapped.contains(&callee) {
                    sources.data(callee)
                } else {
                    sources.data_of(answering)
                },
                location: location.clone(),
                rule: Rule::CompositionMapping,
                help: help.to_owned(),
            };
            findings.extend(receiver.check(&passed));
        }
    }
}

/// Returns what can be the answer as it is, each with the rule or the step that makes it the result.
fn answering_results(sources: &Sources<'_>) -> Vec<(Callee, FindingLocation)> {
    let plan = sources.plan;
    let is_result = plan.answer == Answer::Result;
    let latest = sources.latest();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for route in &plan.routes {
        let location = FindingLocation::composition(format!("/routing/{}/next", route.index));
        let results = route.next.as_ref().map_or(latest.as_slice(), std::slice::from_ref);
        if is_result || route.next.is_none() {
            let new = results.iter().filter(|callee| seen.insert(**callee));
            found.extend(new.map(|callee| (*callee, location.clone())));
        }
        if route.condition.is_none() {
            return found; // no later rule decides, and one always does
        }
    }
    for callee in latest.into_iter().filter(|callee| is_result && seen.insert(*callee)) {
        let mut steps = plan.steps.iter().filter(|step| !step.is_routed);
        let step = steps.rfind(|step| step.targets().contains(&callee)).map_or(0, |step| step.index);
        found.push((callee, FindingLocation::composition(format!("/dataflow/{step}/to"))));
    }
    found
}

/// The arguments of a call, as far as they are known.
enum Arguments<'c> {
    /// An object with these members.
    Object(StaticType<'c>),
    /// A complete object.
    Literal(Value),
    /// Text that is not an object.
    Text,
    Unknown,
}

/// Returns the arguments of a call that do not fit the called module or its fallbacks.
pub(super) fn call(sources: &Sources<'_>, range: &Range<usize>, call: &PromptCall) -> Vec<Finding> {
    let callee = Callee::Part(call.part);
    let name = sources.plan.module_of(callee);
    let passed = PassedValue {
        by: "the call".to_owned(),
        value: StaticType::Any,
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
            let passed = PassedValue { value, ..passed };
            Receiver::inputs(sources, callee).flat_map(|receiver| receiver.check(&passed)).collect()
        }
        Arguments::Literal(value) => literal(sources, callee, &passed, &value),
        Arguments::Text => without_text_field(sources, callee, &passed),
        Arguments::Unknown => Vec::new(),
    }
}

/// Returns what is known about arguments: a single placeholder, or text with placeholders.
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
fn inserted(known: StaticType<'_>) -> Arguments<'_> {
    match known.types() {
        Types::OBJECT => Arguments::Object(known),
        types if types.meet(Types::OBJECT.or(Types::STRING)) => Arguments::Unknown,
        _ => Arguments::Text,
    }
}

/// Reads arguments that begin with text, with one value and then another instead of their placeholders: what differs is
/// not known.
fn template<'c>(text: &str, rest: &[PromptPart]) -> Arguments<'c> {
    if !text.trim_start().starts_with('{') {
        return if text.trim().is_empty() { Arguments::Unknown } else { Arguments::Text };
    }
    match (filled(text, rest, "null"), filled(text, rest, "true")) {
        (Some(value), _) if rest.is_empty() => Arguments::Literal(value),
        (Some(one), Some(other)) => Arguments::Object(common(one.node(), other.node())),
        _ => Arguments::Unknown,
    }
}

/// Returns the object that a template gives with one value for all placeholders.
fn filled(text: &str, rest: &[PromptPart], value: &str) -> Option<Value> {
    let rest = rest.iter().map(|part| match part {
        PromptPart::Text(text) => text.as_str(),
        _ => value,
    });
    let complete: String = std::iter::once(text).chain(rest).collect();
    Value::parse(&complete).ok().filter(|value| value.node().is_object())
}

/// Returns what two values of a template have in common. A placeholder in the name of a member makes the members unknown.
fn common<'c>(one: Node<'_>, other: Node<'_>) -> StaticType<'c> {
    if one.kind() != other.kind() {
        return StaticType::Any;
    }
    let has_same_names = one.members().map(|(name, _)| name).eq(other.members().map(|(name, _)| name));
    if one.is_object() && has_same_names {
        let pairs = one.members().zip(other.members());
        return StaticType::object(pairs.map(|((name, one), (_, other))| (name, common(one, other))));
    }
    StaticType::Types(types_of(one.kind()))
}

/// Returns the violations of a complete input.
fn literal(sources: &Sources<'_>, callee: Callee, passed: &PassedValue<'_>, value: &Value) -> Vec<Finding> {
    // What the context may contain is declared in the manifest, not in the input schema.
    if value.get("_context").is_some() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for receiving in sources.answering(callee) {
        let Some(module) = sources.module(receiving) else { continue };
        let name = sources.plan.name_of(receiving);
        for found in module.contract.check_input(value.node()) {
            let message = format!("the input of `{name}`: `{}` {}", found.path, found.message);
            findings.push(passed.error(message).with_suggestion(found.suggestion));
        }
    }
    findings
}

/// Returns the modules that receive text, but have no field for it.
fn without_text_field(sources: &Sources<'_>, callee: Callee, passed: &PassedValue<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for receiving in sources.answering(callee) {
        let target = sources.module(receiving).map(|module| module.contract.args_target());
        let Some(Err(candidates)) = target else { continue };
        let name = sources.plan.name_of(receiving);
        let why = match candidates.as_slice() {
            [] => "no field for a text".to_owned(),
            many => format!("several fields for a text: `{}`", many.join("`, `")),
        };
        findings.push(passed.error(format!("the arguments are a text, but the input of `{name}` has {why}")));
    }
    findings
}

#[cfg(test)]
mod tests;
