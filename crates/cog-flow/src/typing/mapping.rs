//! Checks that the values of a step fit its targets.

use std::collections::HashSet;

use cog_module::Rule;

use super::{Known, Passed, Receiver, Sources, mismatch};
use crate::{
    Finding, Step, Target,
    finding::{FindingLocation, Findings},
    mapping::MappedField,
};

/// A field of a mapping, and what is known about its value; none if its path finds nothing.
type Selected<'s, 'c> = (&'s MappedField, Option<Known<'c>>);

/// Adds the fields of a step that do not exist, or whose values cannot fit.
pub(super) fn check(sources: &Sources<'_>, pointer: &str, step: &Step, findings: &mut Findings) {
    let Some(mapping) = &step.mapping else {
        let passed = passed(sources, pointer, step);
        receivers(sources, step).for_each(|receiver| findings.extend(receiver.check(&passed)));
        return;
    };
    let document = sources.document(step);
    let selected: Vec<Selected<'_, '_>> =
        mapping.fields().iter().map(|field| (field, select(pointer, field, &document, findings))).collect();
    let names: HashSet<&str> = selected.iter().map(|(field, _)| field.name.as_str()).collect();
    for receiver in receivers(sources, step) {
        fields(pointer, &selected, &receiver, findings);
        if mapping.is_complete {
            findings.extend(missing(pointer, &names, &receiver));
        }
    }
}

/// Returns the fields that the answer requires, and that no step to `output` gives.
pub(super) fn check_answer(sources: &Sources<'_>) -> Option<Finding> {
    let plan = sources.plan;
    let first = plan.outputs.first().filter(|_| plan.is_complete)?;
    let shape = plan.module.contract.shape("data")?;
    let mapped = plan.outputs.iter().flat_map(|step| &step.mapping).flat_map(|mapping| mapping.fields());
    let mapped: HashSet<&str> = mapped.map(|field| field.name.as_str()).collect();
    let complete = plan.outputs.iter().filter(|step| step.mapping.is_none());
    let payloads: Vec<Known<'_>> = complete.map(|step| sources.payload(&step.from)).collect();
    let gives =
        |name: &str| mapped.contains(name) || payloads.iter().any(|known| known.member(name).is_some());
    let missing: Vec<&str> = shape.required_names().into_iter().filter(|name| !gives(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("no step to `output` gives `{}`, which the answer requires", missing.join("`, `"));
    let location = FindingLocation::composition(format!("/dataflow/{}", first.index));
    let help = format!("Add `{}:` with a path to `mapping`.", missing.first().copied().unwrap_or_default());
    Some(Finding::error(Rule::CompositionMapping, location, message).suggest(help))
}

fn receivers<'c>(sources: &Sources<'c>, step: &Step) -> impl Iterator<Item = Receiver<'c>> {
    let answer = (step.to == Target::Output).then(|| Receiver::answer(sources));
    answer.into_iter().chain(step.targets().iter().flat_map(move |callee| Receiver::inputs(sources, *callee)))
}

/// Returns what a step without a mapping passes on.
fn passed<'c>(sources: &Sources<'c>, pointer: &str, step: &Step) -> Passed<'c> {
    Passed {
        by: "the step",
        value: sources.payload(&step.from),
        location: FindingLocation::composition(format!("{pointer}/from")),
        rule: Rule::CompositionMapping,
        help: "Add `mapping:` with a path for each field.".to_owned(),
    }
}

/// Returns what is known about the value of a field. Adds the path if it finds nothing.
fn select<'c>(
    pointer: &str,
    field: &MappedField,
    document: &Known<'c>,
    findings: &mut Findings,
) -> Option<Known<'c>> {
    let absent = match document.select(&field.path) {
        Ok(known) => return Some(known),
        Err(absent) => absent,
    };
    let finding = Finding::error(Rule::CompositionMapping, location(pointer, &field.name), absent.message);
    findings.push(finding.suggest(absent.suggestion));
    None
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
            findings.push(error(message).suggest(receiver.known.similar(&field.name)));
            continue;
        };
        if let Some((found, expected)) = source.as_ref().and_then(|source| mismatch(source, &target)) {
            let message =
                format!("`{}` in {} is {expected}, but the path selects {found}", field.name, receiver.name);
            findings.push(
                error(message).suggest("Select another value, or change one of the schemas.".to_owned()),
            );
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
    let finding = Finding::error(Rule::CompositionMapping, location, message);
    Some(finding.suggest(format!("Add `{first}:` with a path to `mapping`.")))
}

fn location(pointer: &str, field: &str) -> FindingLocation {
    let token = field.replace('~', "~0").replace('/', "~1");
    FindingLocation::composition(format!("{pointer}/mapping/{token}"))
}
