//! Compares mappings and conditions with the schemas of the modules.

mod condition;
mod known;
mod mapping;
mod sources;

use cog_module::{PromptPart, Rule};

use crate::{Finding, Flow, Plan, Step, finding::FindingLocation, value_path::ValuePath};

pub(crate) use self::{known::Known, sources::Sources};

/// Returns the mappings, conditions and references that do not fit the schemas.
pub(crate) fn check(flow: &Flow) -> Vec<Finding> {
    flow.plans()
        .map(|(_, plan)| plan)
        .filter(|plan| plan.is_composed())
        .flat_map(|plan| check_plan(flow, plan))
        .collect()
}

fn check_plan(flow: &Flow, plan: &Plan) -> Vec<Finding> {
    let sources = Sources::new(flow, plan);
    let steps = plan.steps.iter().chain(&plan.outputs);
    let mut findings: Vec<Finding> = steps.flat_map(|step| check_step(&sources, step)).collect();
    findings.extend(mapping::check_answer(&sources));
    for (index, route) in plan.routes.iter().enumerate() {
        let (pointer, document) =
            (format!("/routing/{index}/condition"), sources.judged(route.from.as_ref()));
        findings.extend(condition::check(&pointer, route.condition.as_ref(), &document));
    }
    if let Some(iteration) = &plan.iteration {
        let document = sources.judged(iteration.from.as_ref());
        findings.extend(condition::check("/iteration/until", iteration.until.as_ref(), &document));
    }
    findings.extend(references(&sources));
    findings.into_iter().map(|finding| finding.about(&plan.module)).collect()
}

fn check_step(sources: &Sources<'_>, step: &Step) -> Vec<Finding> {
    let document = sources.document(&step.from);
    let pointer = format!("/dataflow/{}", step.index);
    let mut findings = condition::check(&format!("{pointer}/condition"), step.condition.as_ref(), &document);
    findings.extend(mapping::check(sources, &pointer, step, &document));
    findings
}

/// Checks that the references of the prompt read members that the results have.
fn references(sources: &Sources<'_>) -> Vec<Finding> {
    let prompt = &sources.plan.module.prompt;
    let finding = |(range, part): (std::ops::Range<usize>, &PromptPart)| {
        let PromptPart::Reference { module, path, raw } = part else { return None };
        let error = |message: String| {
            Finding::error(Rule::PromptCall, FindingLocation::Prompt(range.clone()), message)
        };
        let Some(path) = ValuePath::parse(&format!("$.{path}")) else {
            let help = "Write names and indices, such as `data.issues[0].id`.".to_owned();
            return Some(error(format!("`{raw}` is not a path to one value")).suggest(help));
        };
        let absent = sources.named(module)?.find(&path).err()?;
        Some(error(format!("`{raw}`: {}", absent.message)).suggest(absent.suggestion))
    };
    prompt.located().filter_map(finding).collect()
}

#[cfg(test)]
mod tests;
