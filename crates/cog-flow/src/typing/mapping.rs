//! Checks that the values of a step fit its targets.

use std::collections::HashSet;

use cog_module::Rule;

use super::{
    Known, Sources,
    receiver::{Passed, Receiver, mismatch},
};
use crate::{Finding, Step, Target, finding::FindingLocation};

/// Returns the fields of a step that do not exist, or whose values cannot fit.
pub(super) fn check(sources: &Sources<'_>, pointer: &str, step: &Step) -> Vec<Finding> {
    let document = sources.document(&step.from);
    let mut findings = paths(pointer, step, &document);
    for receiver in receivers(sources, step) {
        match &step.mapping {
            Some(_) => findings.extend(fields(pointer, step, &document, &receiver)),
            None => findings.extend(receiver.check(&passed(sources, pointer, step))),
        }
    }
    findings
}

/// Returns the fields that the answer requires, and that no step to `output` gives.
pub(super) fn check_answer(sources: &Sources<'_>) -> Option<Finding> {
    let plan = sources.plan;
    let first = plan.outputs.first()?;
    let shape = plan.module.contract.shape("data")?;
    let gives = |step: &Step, name: &str| match &step.mapping {
        Some(mapping) => mapping.fields().iter().any(|field| field.name == name),
        None => sources.payload(&step.from).member(name).is_some(),
    };
    let is_missing = |name: &&str| shape.requires(name) && !plan.outputs.iter().any(|step| gives(step, name));
    let missing: Vec<&str> = shape.member_names().into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let message = format!("no step to `output` gives `{}`, which the answer requires", missing.join("`, `"));
    let location = FindingLocation::composition(format!("/dataflow/{}", first.index));
    let help = format!("Add `{}:` with a path to `mapping`.", missing.first().copied().unwrap_or_default());
    Some(Finding::error(Rule::CompositionMapping, location, message).suggest(help))
}

fn receivers<'c>(sources: &Sources<'c>, step: &Step) -> Vec<Receiver<'c>> {
    match &step.to {
        Target::Output => vec![Receiver::answer(sources)],
        Target::Modules(targets) => {
            targets.iter().flat_map(|callee| Receiver::inputs(sources, *callee)).collect()
        }
    }
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

/// Returns the paths that find nothing.
fn paths(pointer: &str, step: &Step, document: &Known<'_>) -> Vec<Finding> {
    let fields = step.mapping.iter().flat_map(|mapping| mapping.fields());
    let finding = |field: &crate::mapping::MappedField| {
        let absent = document.select(&field.path).err()?;
        let finding =
            Finding::error(Rule::CompositionMapping, location(pointer, &field.name), absent.message);
        Some(finding.suggest(absent.suggestion))
    };
    fields.filter_map(finding).collect()
}

/// Returns the fields of a mapping that a target does not have, whose types do not fit, or that are missing.
fn fields(pointer: &str, step: &Step, document: &Known<'_>, receiver: &Receiver<'_>) -> Vec<Finding> {
    let mapped = step.mapping.as_ref().map(|mapping| mapping.fields()).unwrap_or_default();
    let mut findings = Vec::new();
    for field in mapped {
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
        if let Ok(source) = document.select(&field.path)
            && let Some((found, expected)) = mismatch(&source, &target)
        {
            let message =
                format!("`{}` in {} is {expected}, but the path selects {found}", field.name, receiver.name);
            findings.push(
                error(message).suggest("Select another value, or change one of the schemas.".to_owned()),
            );
        }
    }
    let names: HashSet<&str> = mapped.iter().map(|field| field.name.as_str()).collect();
    let missing = receiver.missing(|name| names.contains(name));
    if let Some(first) = missing.first() {
        let message =
            format!("{} requires `{}`, which the step does not give", receiver.name, missing.join("`, `"));
        let location = FindingLocation::composition(format!("{pointer}/mapping"));
        let finding = Finding::error(Rule::CompositionMapping, location, message);
        findings.push(finding.suggest(format!("Add `{first}:` with a path to `mapping`.")));
    }
    findings
}

fn location(pointer: &str, field: &str) -> FindingLocation {
    let token = field.replace('~', "~0").replace('/', "~1");
    FindingLocation::composition(format!("{pointer}/mapping/{token}"))
}
