//! Checks that the values of a step fit its targets.

use std::collections::HashSet;

use cog_module::Rule;

use super::{Known, Sources};
use crate::{Callee, Finding, Step, Target, finding::FindingLocation};

/// A target of a step: what receives its values.
struct Receiver<'c> {
    /// Its name for a message: "the input of `reviewer`".
    name: String,
    known: Known<'c>,
}

/// Returns the fields of a step that do not exist, or whose values cannot fit.
pub(super) fn check(sources: &Sources<'_>, pointer: &str, step: &Step, document: &Known<'_>) -> Vec<Finding> {
    let mut findings = paths(pointer, step, document);
    for receiver in receivers(sources, step) {
        match &step.mapping {
            Some(_) => findings.extend(fields(pointer, step, document, &receiver)),
            None => findings.extend(payload(sources, pointer, step, &receiver)),
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
        Target::Output => {
            vec![Receiver { name: "the answer".to_owned(), known: sources.answer() }]
        }
        Target::Modules(targets) => {
            let receiver = |callee: &Callee| {
                let name = format!("the input of `{}`", sources.plan.name_of(*callee));
                Receiver { name, known: sources.input_of(*callee) }
            };
            targets.iter().map(receiver).collect()
        }
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
    if matches!(step.to, Target::Modules(_)) {
        let names: HashSet<&str> = mapped.iter().map(|field| field.name.as_str()).collect();
        findings.extend(missing(pointer, "mapping", receiver, |name| names.contains(name)));
    }
    findings
}

/// Returns the fields of a payload that a target requires or types otherwise.
fn payload(sources: &Sources<'_>, pointer: &str, step: &Step, receiver: &Receiver<'_>) -> Vec<Finding> {
    let payload = sources.payload(&step.from);
    let error = |message| {
        let location = FindingLocation::composition(format!("{pointer}/from"));
        Finding::error(Rule::CompositionMapping, location, message)
            .suggest("Add `mapping:` with a path for each field.".to_owned())
    };
    if let Some((found, expected)) = mismatch(&payload, &receiver.known) {
        return vec![error(format!("{} is {expected}, but the step passes {found}", receiver.name))];
    }
    let mut findings = Vec::new();
    for name in receiver.known.member_names() {
        let (Some(source), Some(target)) = (payload.member(name), receiver.known.member(name)) else {
            continue;
        };
        if let Some((found, expected)) = mismatch(&source, &target) {
            findings.push(error(format!(
                "`{name}` in {} is {expected}, but the step passes {found}",
                receiver.name
            )));
        }
    }
    if matches!(step.to, Target::Modules(_)) {
        findings.extend(missing(pointer, "from", receiver, |name| payload.member(name).is_some()));
    }
    findings
}

/// Returns a finding if a target requires fields that a step does not give.
fn missing(
    pointer: &str,
    key: &str,
    receiver: &Receiver<'_>,
    gives: impl Fn(&str) -> bool,
) -> Option<Finding> {
    let Known::Schema(shape) = &receiver.known else { return None };
    let missing: Vec<&str> =
        shape.member_names().into_iter().filter(|name| shape.requires(name) && !gives(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let message =
        format!("{} requires `{}`, which the step does not give", receiver.name, missing.join("`, `"));
    let location = FindingLocation::composition(format!("{pointer}/{key}"));
    let help = format!("Add `{}:` with a path to `mapping`.", missing.first().copied().unwrap_or_default());
    Some(Finding::error(Rule::CompositionMapping, location, message).suggest(help))
}

/// Returns the types of a value and of a field, if no value can have both.
fn mismatch(source: &Known<'_>, target: &Known<'_>) -> Option<(String, String)> {
    let elements = || {
        let (source, target) = (source.elements()?, target.elements()?);
        (!source.types().meet(target.types())).then_some(())
    };
    let is_list = source.types() == cog_schema::Types::ARRAY;
    let fits = source.types().meet(target.types()) && !(is_list && elements().is_some());
    (!fits).then(|| (source.describe(), target.describe()))
}

fn location(pointer: &str, field: &str) -> FindingLocation {
    let token = field.replace('~', "~0").replace('/', "~1");
    FindingLocation::composition(format!("{pointer}/mapping/{token}"))
}
