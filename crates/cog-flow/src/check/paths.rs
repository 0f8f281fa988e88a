//! Checks the paths of calls: none leads back, and none is too long.

use cog_module::Rule;
use cog_spec::Code;

use super::LoadedPlan;
use crate::{Finding, Plan, graph::Graph};

/// The maximum number of modules of a path that a message lists.
const MAX_SHOWN: usize = 40;

/// Returns the cycles, and the paths that are longer than a `max_depth`.
pub(super) fn check(plans: &[LoadedPlan]) -> Vec<Finding> {
    let calls = |loaded: &LoadedPlan| {
        loaded.plan.parts.iter().filter_map(|part| part.plan).map(|id| id.index()).collect()
    };
    let successors: Vec<Vec<usize>> = plans.iter().map(calls).collect();
    let graph = Graph::new(&successors);
    let search = graph.search();
    let mut findings: Vec<Finding> =
        search.cycles.iter().filter_map(|cycle| cycle_finding(plans, cycle)).collect();
    for (index, loaded) in plans.iter().enumerate() {
        let max = usize::try_from(loaded.plan.max_depth).unwrap_or(usize::MAX);
        if search.heights.get(index).is_some_and(|height| *height > max) {
            let path = graph.deepest_path(index, &search.heights);
            findings.extend(depth_finding(plans, &path, max));
            // The callers of this module are at least as deep; one finding is enough.
            break;
        }
    }
    findings
}

fn cycle_finding(plans: &[LoadedPlan], cycle: &[usize]) -> Option<Finding> {
    let (last, first) = (plans.get(*cycle.last()?)?, *cycle.first()?);
    let location = location_of(last, first)?;
    let path: Vec<usize> = cycle.iter().chain([&first]).copied().collect();
    let message = format!("modules call each other in a cycle: {}", names(plans, &path));
    let finding = Finding::error(Rule::CompositionCycle, location, message).code(Code::CircularDependency);
    let help = "Remove one of these calls, or move the common part into a module that calls no other.";
    Some(finding.suggest(help.to_owned()).about(&last.plan.module))
}

fn depth_finding(plans: &[LoadedPlan], path: &[usize], max: usize) -> Option<Finding> {
    let (from, next) = (plans.get(*path.first()?)?, *path.get(1)?);
    let location = location_of(from, next)?;
    let names = names(plans, path);
    let message =
        format!("{} modules call each other in a row, but `max_depth` is {max}: {names}", path.len());
    let finding = Finding::error(Rule::CompositionDepth, location, message).code(Code::MaxDepthExceeded);
    let help = "Flatten the composition, or raise `composition.max_depth` (at most 32).";
    Some(finding.suggest(help.to_owned()).about(&from.plan.module))
}

/// Returns where a module names another one.
fn location_of(caller: &LoadedPlan, called: usize) -> Option<crate::finding::FindingLocation> {
    let is_called =
        |plan: &Plan| plan.parts.iter().position(|part| part.plan.is_some_and(|id| id.index() == called));
    caller.locations.get(is_called(&caller.plan)?).cloned()
}

fn names(plans: &[LoadedPlan], path: &[usize]) -> String {
    let name =
        |index: &usize| plans.get(*index).map_or("", |loaded| loaded.plan.module.manifest.name.as_str());
    let shown: Vec<&str> = path.iter().take(MAX_SHOWN).map(name).collect();
    let more = path.len().saturating_sub(MAX_SHOWN);
    let rest = if more > 0 { format!(" → … ({more} more)") } else { String::new() };
    shown.join(" → ") + &rest
}
