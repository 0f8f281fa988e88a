//! The names of results: each run of a module has a result of its own, and `as` names it.

use std::collections::{HashMap, HashSet};

use cog_module::Rule;
use cog_spec::{Composition, DataflowStep};

use super::{
    Compiler,
    calls::{CallKey, LocatedCall},
    steps::{INPUT, OUTPUT},
};
use crate::{
    Callee,
    finding::{Finding, FindingLocation},
};

/// The names that `as` gives.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The part of each step that has a name, by the step's index.
    pub(super) of_steps: HashMap<usize, usize>,
    /// The part of each call that has a name, by its position in the prompt.
    pub(super) of_calls: HashMap<usize, usize>,
    /// Where each name is given.
    given: HashMap<String, FindingLocation>,
    /// Where each module is named that runs.
    modules: HashMap<String, FindingLocation>,
}

/// A name that `as` gives.
struct ResultName<'a> {
    name: &'a str,
    module: &'a str,
    location: FindingLocation,
    /// Where the module is named.
    runs_at: FindingLocation,
}

/// What runs a module: a step, a call, or a rule of the routing.
struct Run {
    callee: Callee,
    location: FindingLocation,
    is_call: bool,
    /// Whether the step has other targets too.
    is_listed: bool,
}

/// Returns the modules whose runs all have names: they need no part with the module's own name.
pub(super) fn only_named(composition: &Composition, calls: &[LocatedCall<'_>]) -> HashSet<String> {
    let mut named: HashSet<&String> = HashSet::new();
    let mut unnamed: HashSet<&String> = HashSet::new();
    for step in &composition.dataflow {
        let modules = if step.result_name.is_some() { &mut named } else { &mut unnamed };
        modules.extend(&step.to);
    }
    for written in calls {
        let modules = if written.has_name() { &mut named } else { &mut unnamed };
        modules.insert(&written.call.name);
    }
    unnamed.extend(composition.requires.iter().filter_map(|item| item.fallback.as_ref()));
    unnamed.extend(composition.routing.iter().filter_map(|rule| rule.next.as_ref()));
    named.difference(&unnamed).map(|name| (*name).clone()).collect()
}

impl Compiler<'_> {
    /// Adds a part for each name, so that everything that follows can read its result. The parts are in the order in which they are
    /// written.
    pub(super) fn names(&mut self, composition: &Composition, calls: &[LocatedCall<'_>]) {
        // Without names, the parts are added later, in the order of `requires`, the prompt and the steps.
        if !calls.iter().any(LocatedCall::has_name)
            && composition.dataflow.iter().all(|step| step.result_name.is_none())
        {
            return;
        }
        self.names.modules = Self::named_modules(composition, calls);
        let mut known: HashMap<CallKey, usize> = HashMap::new();
        for written in calls {
            let call = written.call;
            let location = FindingLocation::Prompt(written.range.clone());
            let Some(name) = call.options.result_name.as_deref() else {
                self.unnamed(&call.name, location);
                continue;
            };
            let said = CallKey::new(call);
            // The same call again means the same result.
            let part = known.get(&said).copied().or_else(|| {
                let runs_at = location.clone();
                self.name(&ResultName { name, module: &call.name, location, runs_at }, Rule::PromptCall)
            });
            if let Some(part) = part {
                known.insert(said, part);
                self.names.of_calls.insert(written.position, part);
            }
        }
        for (index, step) in composition.dataflow.iter().enumerate() {
            match step.result_name.as_deref() {
                Some(name) => {
                    let part = self.step_name(index, step, name);
                    self.names.of_steps.extend(part.map(|part| (index, part)));
                }
                None => step.to.iter().for_each(|name| {
                    self.unnamed(name, target_location(index, step, name));
                }),
            }
        }
    }

    /// Adds the part of a module whose result has its name.
    fn unnamed(&mut self, module: &str, location: FindingLocation) {
        let is_other = module != OUTPUT && module != self.module.manifest.name;
        if is_other && cog_module::is_module_name(module) {
            self.parts.index(module, location);
        }
    }

    /// Returns where each module is named that runs: in `requires`, in the steps, and in the prompt.
    fn named_modules(
        composition: &Composition,
        calls: &[LocatedCall<'_>],
    ) -> HashMap<String, FindingLocation> {
        let mut named = Vec::new();
        for (index, item) in composition.requires.iter().enumerate() {
            named.push((&item.name, FindingLocation::composition(format!("/requires/{index}/name"))));
            if let Some(fallback) = &item.fallback {
                named.push((fallback, FindingLocation::composition(format!("/requires/{index}/fallback"))));
            }
        }
        for (index, step) in composition.dataflow.iter().enumerate() {
            named.extend(step.to.iter().map(|name| (name, target_location(index, step, name))));
        }
        for written in calls {
            named.push((&written.call.name, FindingLocation::Prompt(written.range.clone())));
        }
        let mut modules = HashMap::new();
        for (name, location) in named {
            modules.entry(name.clone()).or_insert(location);
        }
        modules
    }

    /// Returns the part of a step that has a name; none if the step is invalid.
    fn step_name(&mut self, index: usize, step: &DataflowStep, name: &str) -> Option<usize> {
        let location = FindingLocation::composition(format!("/dataflow/{index}/as"));
        let (message, help) = match step.to.as_slice() {
            [only] if only == OUTPUT => {
                ("the answer has no name: `as` is for the result of a module".to_owned(), "Remove `as`.")
            }
            [only] if *only == self.module.manifest.name => (
                "`as` cannot name the result of the module's own prompt".to_owned(),
                "Remove `as`, or move the prompt into a module of its own.",
            ),
            [module] => {
                let runs_at = target_location(index, step, module);
                return self.name(&ResultName { name, module, location, runs_at }, Rule::CompositionStep);
            }
            targets => (
                format!("`as` names one result, but the step runs {} modules", targets.len()),
                "Write a step for each module.",
            ),
        };
        self.report(Finding::error(Rule::CompositionStep, location.clone(), message).suggest(help));
        // What reads the name is not reported again.
        if let [module, _, ..] = step.to.as_slice()
            && cog_module::is_module_name(module)
            && !self.names.modules.contains_key(name)
        {
            let part = self.parts.named_index(name, module, location);
            self.dropped.push(Callee::Part(part));
        }
        None
    }

    /// Returns the part for a name; none if the name cannot be given.
    fn name(&mut self, given: &ResultName<'_>, rule: Rule) -> Option<usize> {
        let ResultName { name, module, location, runs_at } = given;
        if let Some(finding) = self.invalid_name(given, rule) {
            self.report(finding);
            return None;
        }
        self.names.given.insert((*name).to_owned(), location.clone());
        if !cog_module::is_module_name(module) {
            return None; // the step or the call reports it
        }
        Some(self.parts.named_index(name, module, runs_at.clone()))
    }

    fn invalid_name(&self, given: &ResultName<'_>, rule: Rule) -> Option<Finding> {
        let ResultName { name, module, location, .. } = given;
        let mut help = "Choose another name.";
        let mut also_at = None;
        let message = if [INPUT, OUTPUT].contains(name) {
            format!("`{name}` cannot name a result: it means the {name} of the composition")
        } else if !cog_module::is_module_name(name) {
            let shown: String = name.chars().take(80).collect();
            help = "Use lower case letters, digits and hyphens, such as `first-page`.";
            format!("`{}` is not a name for a result", shown.escape_debug())
        } else if *name == self.module.manifest.name {
            format!("`{name}` cannot name a result: it is the name of this module")
        } else if let Some(other) = self.names.modules.get(*name).filter(|_| name != module) {
            also_at = Some(other.clone());
            format!("`{name}` cannot name a result of `{module}`: a module has this name")
        } else {
            also_at = Some(self.names.given.get(*name)?.clone());
            help = "Give each result a name of its own.";
            format!("two results have the name `{name}`")
        };
        Some(Finding { also_at, ..Finding::error(rule, location.clone(), message).suggest(help) })
    }

    /// Reports modules that run twice, although they have one result. In rounds, each step replaces the result of the one before.
    pub(super) fn repeated_runs(&mut self, composition: &Composition) {
        if Self::is_iterative(composition) {
            return;
        }
        let mut first: HashMap<Callee, Run> = HashMap::new();
        for run in self.runs(composition) {
            match first.get(&run.callee) {
                Some(before) => {
                    let finding = self.repeated_run(&run, before);
                    self.report(finding);
                }
                None => {
                    first.insert(run.callee, run);
                }
            }
        }
    }

    /// Returns everything that runs a module, in the order in which it is written.
    fn runs(&self, composition: &Composition) -> Vec<Run> {
        let calls = self.calls.iter().map(|call| Run {
            callee: Callee::Part(call.part),
            location: FindingLocation::Prompt(call.range.clone()),
            is_call: true,
            is_listed: false,
        });
        let steps = self.steps.iter().flat_map(|step| {
            let written = composition.dataflow.get(step.index);
            step.targets().iter().map(move |target| {
                let location = match written {
                    Some(written) => target_location(step.index, written, self.module_of(*target)),
                    None => FindingLocation::composition(format!("/dataflow/{}", step.index)),
                };
                Run { callee: *target, location, is_call: false, is_listed: step.targets().len() > 1 }
            })
        });
        let mut runs: Vec<Run> = calls.chain(steps).collect();
        // A rule starts the step to its module. Without one, the rule itself runs it, once however many rules name it.
        let mut by_rules: HashSet<Callee> =
            self.steps.iter().flat_map(|step| step.targets()).copied().collect();
        for route in &self.routes {
            if let Some(callee) = route.next.filter(|next| by_rules.insert(*next)) {
                let location = FindingLocation::composition(format!("/routing/{}/next", route.index));
                runs.push(Run { callee, location, is_call: false, is_listed: false });
            }
        }
        runs
    }

    fn repeated_run(&self, run: &Run, before: &Run) -> Finding {
        let name = self.name_of(run.callee);
        let module = self.module_of(run.callee);
        let message = format!("`{name}` runs twice, but has one result");
        let help = if run.callee == Callee::Own {
            "Move the prompt into a module of its own, whose results `as` can name.".to_owned()
        } else if before.is_call && !run.is_call {
            format!(
                "Read the result of the call with `{{{{{name}.data}}}}`, or name another one: `as: NAME` in a step \
                 to `{module}`."
            )
        } else if run.is_listed || before.is_listed {
            format!("Write a step of its own to `{module}` with `as: NAME`, and read `NAME.output`.")
        } else {
            "Name the result of one of them: `as: NAME` in the step, and read `NAME.output`.".to_owned()
        };
        Finding::error(Rule::CompositionStep, run.location.clone(), message)
            .suggest(help)
            .also_at(before.location.clone())
    }
}

/// Returns where a step names one of its targets.
fn target_location(index: usize, step: &DataflowStep, name: &str) -> FindingLocation {
    match step.to.iter().position(|target| target == name) {
        Some(item) if step.to.len() > 1 => {
            FindingLocation::composition(format!("/dataflow/{index}/to/{item}"))
        }
        _ => FindingLocation::composition(format!("/dataflow/{index}/to")),
    }
}

#[cfg(test)]
mod tests;
