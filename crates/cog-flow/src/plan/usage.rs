//! Checks that everything in a composition has an effect: sources have results, and targets run.

use std::collections::HashSet;

use cog_module::{PromptPart, Rule};
use cog_spec::{Aggregate, Composition, Pattern};

use super::Compiler;
use crate::{
    Answer, Callee, Selection, Source, Step,
    finding::{Finding, FindingLocation},
};

impl Compiler<'_> {
    /// Reports sources without a result, and parts that nothing runs.
    pub(super) fn usage(&mut self, composition: &Composition) {
        let mut findings = self.sources(composition);
        findings.extend(self.unused_parts());
        findings.extend(self.routed_steps(composition));
        let has_all_steps = composition.dataflow.len() == self.steps.len() + self.outputs.len();
        // What an invalid step or rule would do is not known, so nothing is said about the answer.
        if has_all_steps && composition.routing.len() == self.routes.len() {
            findings.extend(self.answers(composition));
        }
        findings.into_iter().for_each(|finding| self.report(finding));
    }

    /// Marks the parts that steps and routes run.
    pub(super) fn mark_targets(&mut self) {
        let of_steps = self.steps.iter().flat_map(Step::targets);
        let targets = of_steps.copied().chain(self.routes.iter().filter_map(|route| route.next));
        for target in targets.chain(self.dropped.iter().copied()).collect::<Vec<_>>() {
            if let Callee::Part(part) = target {
                self.parts.mark_used(part);
            }
        }
    }

    /// Returns whether a step or a route runs the own prompt.
    pub(super) fn runs_own_prompt(&self) -> bool {
        self.steps.iter().any(|step| step.targets().contains(&Callee::Own))
            || self.routes.iter().any(|route| route.next == Some(Callee::Own))
    }

    /// Reports sources that have no result when they are read. In rounds, a step can read the results of the round before.
    fn sources(&self, composition: &Composition) -> Vec<Finding> {
        let is_iterative = Self::is_iterative(composition);
        let called = self.calls.iter().map(|call| Callee::Part(call.part));
        let mut done: HashSet<Callee> = called.chain(self.dropped.iter().copied()).collect();
        let of_steps = self.steps.iter().filter(|step| !step.is_routed).flat_map(Step::targets);
        let before_routing: HashSet<Callee> = done.iter().chain(of_steps).copied().collect();
        let all = self.with_results();
        let mut findings = Vec::new();
        for step in &self.steps {
            let readable = if is_iterative || step.is_routed { &before_routing } else { &done };
            findings.extend(self.unread(&format!("/dataflow/{}", step.index), &step.from, readable, &all));
            if !step.is_routed {
                done.extend(step.targets());
            }
        }
        for step in &self.outputs {
            findings.extend(self.unread(&format!("/dataflow/{}", step.index), &step.from, &all, &all));
        }
        let routes = self.routes.iter().map(|route| (format!("/routing/{}", route.index), &route.from));
        let iteration = self.iteration.iter().map(|iteration| ("/iteration".to_owned(), &iteration.from));
        for (pointer, from) in routes.chain(iteration) {
            findings.extend(from.iter().flat_map(|from| self.unread(&pointer, from, &before_routing, &all)));
        }
        findings
    }

    /// Returns what has a result of its own when the composition ends. A fallback has none: its result is the result of the part.
    pub(super) fn with_results(&self) -> HashSet<Callee> {
        let called = self.calls.iter().map(|call| Callee::Part(call.part));
        let of_steps = self.steps.iter().flat_map(Step::targets).copied();
        let routed = self.routes.iter().filter_map(|route| route.next);
        called.chain(of_steps).chain(routed).chain(self.dropped.iter().copied()).collect()
    }

    /// Returns the name of a part whose fallback this is.
    pub(super) fn replaced_by(&self, callee: Callee) -> Option<&str> {
        let mut parts = self.parts.list.iter();
        let replaced = parts.find(|part| part.rule.fallback.map(Callee::Part) == Some(callee));
        replaced.map(|part| part.name.as_str())
    }

    fn unread(
        &self,
        pointer: &str,
        from: &Selection,
        readable: &HashSet<Callee>,
        all: &HashSet<Callee>,
    ) -> Vec<Finding> {
        let missing = from.sources.iter().filter_map(|source| match source {
            Source::Output(callee) if !readable.contains(callee) => Some(*callee),
            _ => None,
        });
        missing.map(|callee| self.unread_source(pointer, callee, all)).collect()
    }

    fn unread_source(&self, pointer: &str, callee: Callee, all: &HashSet<Callee>) -> Finding {
        let name = self.name_of(callee);
        let location = FindingLocation::composition(format!("{pointer}/from"));
        let (message, help) = if self.is_next(callee) {
            let message =
                format!("the result of `{name}` is read before a rule of the routing starts `{name}`");
            (message, "Read another result, or remove the rule.".to_owned())
        } else if all.contains(&callee) {
            let message = format!("the step reads the result of `{name}`, which runs in a later step");
            (message, "Write the steps in the order in which they run.".to_owned())
        } else if let Some(part) = self.replaced_by(callee) {
            let message = format!("`{name}` is a fallback: its result is the result of `{part}`");
            (message, format!("Read `{part}.output`."))
        } else {
            let message = format!("the step reads the result of `{name}`, which nothing runs");
            let names: Vec<String> =
                self.parts.names_of(name).map(|name| format!("`{name}.output`")).collect();
            let help = match names.as_slice() {
                [] => format!("Add a step with `to: {name}` before it."),
                names => format!("The results of `{name}` have names: read {}.", names.join(" or ")),
            };
            (message, help)
        };
        Finding::error(Rule::CompositionStep, location, message).suggest(help)
    }

    pub(super) fn name_of(&self, callee: Callee) -> &str {
        match callee {
            Callee::Own => &self.module.manifest.name,
            Callee::Part(part) => self.parts.list.get(part).map_or("", |part| &part.name),
        }
    }

    /// Returns the name of the module that runs for a callee.
    pub(super) fn module_of(&self, callee: Callee) -> &str {
        match callee {
            Callee::Own => &self.module.manifest.name,
            Callee::Part(part) => self.parts.list.get(part).map_or("", |part| &part.module),
        }
    }

    fn unused_parts(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for part in self.parts.list.iter().filter(|part| part.is_required && !part.is_used) {
            let message = format!("`{}` is required, but nothing runs it", part.name);
            let help = format!("Add a step with `to: {0}`, or `@call:{0}` in the prompt.", part.name);
            let location = part.location.clone();
            findings.push(Finding::warning(Rule::CompositionModule, location, message).suggest(help));
        }
        findings
    }

    /// Reports what has no effect in steps that wait for a rule of the routing.
    fn routed_steps(&self, composition: &Composition) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut seen = HashSet::new();
        for step in self.steps.iter().filter(|step| step.is_routed) {
            if step.condition.is_some() {
                let message = "the condition has no effect: a rule of the routing starts this step";
                findings.push(routed(step, "condition", message.to_owned(), "Move it to the rule."));
            }
            findings.extend(self.unnamed_targets(step));
            // Elsewhere two steps to one module are an error.
            if Self::is_iterative(composition) {
                findings.extend(self.repeated_targets(step, &mut seen));
            }
        }
        findings
    }

    /// Returns whether a rule of the routing starts a target.
    fn is_next(&self, target: Callee) -> bool {
        self.routes.iter().any(|route| route.next == Some(target))
    }

    /// Reports the targets of a step that waits for a rule, and that no rule names.
    fn unnamed_targets(&self, step: &Step) -> Vec<Finding> {
        let mut findings = Vec::new();
        for target in step.targets().iter().filter(|target| !self.is_next(**target)) {
            let name = self.name_of(*target);
            let message = format!("`{name}` never runs: the step waits for a rule, and none names `{name}`");
            findings.push(routed(step, "to", message, "Write a step of its own, or a rule for it."));
        }
        findings
    }

    /// Reports the targets of a step for which a rule starts an earlier step.
    fn repeated_targets(&self, step: &Step, seen: &mut HashSet<Callee>) -> Vec<Finding> {
        let named = step.targets().iter().filter(|target| self.is_next(**target));
        let named: Vec<Callee> = named.copied().collect();
        let repeated: Vec<Callee> = named.iter().copied().filter(|target| !seen.insert(*target)).collect();
        let mut findings = Vec::new();
        for target in &repeated {
            let name = self.name_of(*target);
            let what = if repeated.len() == named.len() {
                "this step never runs".to_owned()
            } else {
                format!("this step never runs `{name}`")
            };
            let message = format!("{what}: the rule starts the first step to `{name}`");
            findings.push(routed(step, "to", message, "Join the two steps."));
        }
        findings
    }

    /// Reports a composition without an answer, and prompts and results that the answer does not use.
    fn answers(&self, composition: &Composition) -> Vec<Finding> {
        let answer = self.answer();
        let mut findings = self.lists();
        findings.extend(self.no_answer(answer));
        findings.extend(self.unused_prompt(answer));
        findings.extend(self.unread_results(answer, composition));
        findings.extend(self.pattern(composition));
        findings
    }

    /// Reports steps to `output` that pass a list.
    fn lists(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for step in &self.outputs {
            if step.mapping.is_none() && step.from.aggregate == Some(Aggregate::Array) {
                let location = FindingLocation::composition(format!("/dataflow/{}/aggregate", step.index));
                let error =
                    Finding::error(Rule::CompositionStep, location, "an answer is an object, not a list");
                findings.push(error.suggest("Add `mapping:` with a field for the list: `items: $`."));
            }
        }
        findings
    }

    fn no_answer(&self, answer: Answer) -> Option<Finding> {
        let runs_next = self.routes.iter().any(|route| route.next.is_some());
        let is_empty = self.steps.is_empty() && self.outputs.is_empty() && !runs_next;
        if !is_empty || answer == Answer::OwnPrompt || self.module.manifest.composition.is_none() {
            return None;
        }
        let message = match self.has_prompt() {
            true => "the composition has no answer: without steps, `next: null` returns nothing",
            false => "the composition has no answer: the prompt is empty, and there are no steps",
        };
        Some(
            Finding::error(Rule::CompositionStep, FindingLocation::composition(""), message)
                .suggest("Write a `prompt.md`, or add a step with `to: output`."),
        )
    }

    fn unused_prompt(&self, answer: Answer) -> Option<Finding> {
        if answer == Answer::OwnPrompt || !self.has_prompt() || self.runs_own_prompt() {
            return None;
        }
        let message = "the prompt is not used: no step runs it";
        let help = format!("Add a step with `to: {}`, or empty the prompt.", self.module.manifest.name);
        Some(Finding::warning(Rule::CompositionStep, FindingLocation::Prompt(0..0), message).suggest(help))
    }

    /// Reports an own prompt that reads no result of the steps before it.
    fn unread_results(&self, answer: Answer, composition: &Composition) -> Option<Finding> {
        let mut parts = self.module.prompt.parts().iter();
        if answer != Answer::OwnPrompt
            || composition.dataflow.is_empty()
            || parts.any(|part| matches!(part, PromptPart::Reference { .. }))
        {
            return None;
        }
        let name = &self.module.manifest.name;
        let message = "the prompt reads no result of the steps";
        let help = format!(
            "Write `{{{{NAME.data}}}}` in the prompt, or add a step with `to: {name}` and a mapping."
        );
        Some(
            Finding::warning(Rule::CompositionStep, FindingLocation::composition("/dataflow"), message)
                .suggest(help),
        )
    }

    fn pattern(&self, composition: &Composition) -> Option<Finding> {
        let has_condition = composition.dataflow.iter().any(|step| step.condition.is_some());
        if composition.pattern != Pattern::Conditional || has_condition || !composition.routing.is_empty() {
            return None;
        }
        let message = "the pattern `conditional` has no conditions";
        Some(
            Finding::warning(Rule::CompositionStep, FindingLocation::composition("/pattern"), message)
                .suggest("Add `routing:` or a `condition:` to a step."),
        )
    }
}

/// Returns the warning about a key of a step that waits for a rule.
fn routed(step: &Step, key: &str, message: String, help: &str) -> Finding {
    let location = FindingLocation::composition(format!("/dataflow/{}/{key}", step.index));
    Finding::warning(Rule::CompositionStep, location, message).suggest(help)
}
