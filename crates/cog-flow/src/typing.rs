//! Compares mappings and conditions with the schemas of the modules.

mod condition;
mod known;
mod mapping;
mod passed;
mod reach;
mod receiver;
mod sources;
mod values;

use std::ops::Range;

use cog_module::{PromptPart, Rule};

use crate::{
    Condition, Finding, Flow, Plan, Step,
    finding::{FindingLocation, Findings},
    value_path::ValuePath,
};

pub(crate) use self::{known::Known, sources::Sources};

/// Returns the mappings, conditions and references that do not fit the schemas.
pub(crate) fn check(flow: &Flow) -> Vec<Finding> {
    flow.plans()
        .map(|(_, plan)| plan)
        .filter(|plan| plan.is_composed())
        .flat_map(|plan| check_plan(flow, plan).about(&plan.module))
        .collect()
}

fn check_plan(flow: &Flow, plan: &Plan) -> Findings {
    let sources = Sources::new(flow, plan);
    let mut findings = Findings::default();
    for step in plan.steps.iter().chain(&plan.outputs) {
        check_step(&sources, step, &mut findings);
    }
    findings.extend(mapping::check_answer(&sources));
    reach::rules(&sources, &mut findings);
    if let Some(iteration) = &plan.iteration
        && let Some(until) = &iteration.until
    {
        let document = sources.judged(iteration.from.as_ref());
        let effect = "the rounds never end early";
        findings.extend(check_condition(&sources, "/iteration/until", until, &document, effect));
    }
    passed::routes(&sources, &mut findings);
    prompt(&sources, &mut findings);
    findings
}

fn check_step(sources: &Sources<'_>, step: &Step, findings: &mut Findings) {
    if findings.is_enough() {
        return;
    }
    let pointer = format!("/dataflow/{}", step.index);
    if let Some(condition) = &step.condition {
        let pointer = format!("{pointer}/condition");
        let (tested, effect) = (sources.tested(step), "this step never runs");
        findings.extend(check_condition(sources, &pointer, condition, &tested, effect));
    }
    mapping::check(sources, &pointer, step, findings);
}

/// Returns the parts of a condition that do not fit; otherwise whether it is never true, which has this effect.
fn check_condition(
    sources: &Sources<'_>,
    pointer: &str,
    condition: &Condition,
    document: &Known<'_>,
    effect: &str,
) -> Vec<Finding> {
    let findings = condition::check(pointer, condition, document);
    if findings.is_empty() && sources.plan.is_complete {
        return Vec::from_iter(reach::check(pointer, condition, document, effect));
    }
    findings
}

/// Checks what the calls of the prompt pass on, and that references read members that the results have.
fn prompt(sources: &Sources<'_>, findings: &mut Findings) {
    let plan = sources.plan;
    for (position, (range, part)) in plan.module.prompt.located().enumerate() {
        if findings.is_enough() {
            return;
        }
        findings.extend(reference(sources, &range, part));
        let call = plan.calls.binary_search_by_key(&position, |call| call.position).ok();
        let Some(call) = call.and_then(|index| plan.calls.get(index)) else { continue };
        findings.extend(passed::call(sources, &range, call));
        let inside = call.arguments.iter().flat_map(|arguments| arguments.parts());
        findings.extend(inside.filter_map(|part| reference(sources, &range, part)));
    }
}

fn reference(sources: &Sources<'_>, range: &Range<usize>, part: &PromptPart) -> Option<Finding> {
    let PromptPart::Reference { module, path, raw } = part else { return None };
    let error =
        |message: String| Finding::error(Rule::PromptCall, FindingLocation::Prompt(range.clone()), message);
    let Some(path) = ValuePath::parse(&format!("$.{path}")) else {
        let help = "Write names and indices, such as `data.issues[0].id`.".to_owned();
        return Some(error(format!("`{raw}` is not a path to one value")).suggest(help));
    };
    let absent = sources.named(module)?.find(&path).err()?;
    Some(error(format!("`{raw}`: {}", absent.message)).suggest(absent.suggestion))
}

#[cfg(test)]
mod tests;
