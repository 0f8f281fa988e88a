//! The steps, routes and rounds of a composition.

use std::collections::HashSet;

use cog_module::Rule;
use cog_rules::ValuePath;
use cog_schema::nearest;
use cog_spec::{Aggregate, Composition, DataflowStep, IterationRule, RoutingRule};

use super::Compiler;
use crate::{
    Callee, Condition, Each, Iteration, Mapping, Route, Selection, Source, Step, Target,
    finding::{Finding, FindingLocation},
    json_path::JsonPath,
    mapping::{MappedField, Operand},
};

/// The target of the answer.
pub(super) const OUTPUT: &str = "output";
/// The source of the module's input.
pub(super) const INPUT: &str = "input";
/// The maximum number of sources, and of targets, of a step.
const MAX_LISTED: usize = 256;

/// The sources of a rule were reported.
struct InvalidSources;

/// The list of a step was reported.
struct InvalidEach;

impl Compiler<'_> {
    pub(super) fn dataflow(&mut self, composition: &Composition) {
        let routed: HashSet<&str> =
            composition.routing.iter().filter_map(|rule| rule.next.as_deref()).collect();
        for (index, written) in composition.dataflow.iter().enumerate() {
            let pointer = format!("/dataflow/{index}");
            let from = self.selection(&pointer, &written.from, written.aggregate);
            let to = match &written.result_name {
                Some(_) => self.named_target(index),
                None => self.target(&pointer, written),
            };
            let condition = self.condition(&format!("{pointer}/condition"), written.condition.as_deref());
            let mapping = self.mapping(&pointer, written);
            let each = self.each(&pointer, written);
            let (from, to, each) = match (from, to, each) {
                (Some(from), Ok(to), Ok(each)) => (from, to, each),
                (_, to, _) => {
                    self.dropped.extend(to.map_or_else(|targets| targets, |to| to.modules().to_vec()));
                    continue;
                }
            };
            let is_routed = self.is_routed(&to, &routed);
            let is_output = to == Target::Output;
            let step = Step { index, from, to, mapping, condition, is_routed, each };
            if is_output { self.outputs.push(step) } else { self.steps.push(step) }
        }
    }

    /// Reads the list of a step that runs for each of its elements.
    fn each(&mut self, pointer: &str, written: &DataflowStep) -> Result<Option<Each>, InvalidEach> {
        let Some(text) = &written.each else {
            if written.max_parallel.is_some() {
                let location = FindingLocation::composition(format!("{pointer}/max_parallel"));
                let message = "`max_parallel` has no effect: the step runs once";
                let help = "Add `each:` with the path of a list, or remove it.";
                self.report(Finding::warning(Rule::CompositionStep, location, message).suggest(help));
            }
            return Ok(None);
        };
        let own = &self.module.manifest.name;
        let what = written.to.iter().find_map(|name| match name {
            name if name == own => Some("the module's own prompt runs once"),
            name if name == OUTPUT => Some("there is one answer"),
            _ => None,
        });
        if let Some(what) = what {
            let message = format!("`each` is for a module that is called: {what}");
            let location = FindingLocation::composition(format!("{pointer}/each"));
            let help = "Read the results of all elements in a step after it: `$.NAME.data[*].field`.";
            self.report(Finding::error(Rule::CompositionStep, location, message).suggest(help));
            return Err(InvalidEach);
        }
        match JsonPath::parse(text) {
            Ok(path) => {
                let max_parallel = written.max_parallel.and_then(|max| usize::try_from(max).ok());
                Ok(Some(Each { path, text: text.clone(), max_parallel }))
            }
            Err(error) => {
                let pointer = format!("/composition{pointer}/each");
                let finding =
                    Finding::invalid_text(Rule::CompositionMapping, pointer, "invalid path", text, error);
                self.report(finding);
                Err(InvalidEach)
            }
        }
    }

    /// Reports a module whose result is a list in one step and a single answer in another, which rounds could run.
    pub(super) fn mixed_results(&mut self, composition: &Composition) {
        let is_mapped = |step: &Step| step.each.is_some();
        let mapped: HashSet<Callee> =
            self.steps.iter().filter(|step| is_mapped(step)).flat_map(Step::targets).copied().collect();
        let once = self.steps.iter().filter(|step| !is_mapped(step));
        let mut findings = Vec::new();
        for step in once {
            for target in step.targets().iter().filter(|target| mapped.contains(target)) {
                let name = self.name_of(*target);
                let message =
                    format!("`{name}` runs once here, but for each element of a list in another step");
                let location = FindingLocation::composition(format!("/dataflow/{}/to", step.index));
                let help = "Name the result of one of them: `as: NAME`.";
                findings.push(Finding::error(Rule::CompositionStep, location, message).suggest(help));
            }
        }
        // Elsewhere a call and a step to one module are an error.
        let calls = self.calls.iter().filter(|_| Self::is_iterative(composition));
        for call in calls.filter(|call| mapped.contains(&Callee::Part(call.part))) {
            let name = self.name_of(Callee::Part(call.part));
            let message = format!("`{name}` runs once here, but for each element of a list in a step");
            let help = "Name the result of the call: `[as=NAME]`.";
            let location = FindingLocation::Prompt(call.range.clone());
            findings.push(Finding::error(Rule::PromptCall, location, message).suggest(help));
        }
        findings.into_iter().for_each(|finding| self.report(finding));
        self.mapped = mapped;
    }

    /// Returns whether a rule of the routing names a target.
    fn is_routed(&self, to: &Target, routed: &HashSet<&str>) -> bool {
        let Target::Modules(targets) = to else { return false };
        targets.iter().any(|target| routed.contains(self.name_of(*target)))
    }

    pub(super) fn routing(&mut self, rules: &[RoutingRule]) {
        for (index, rule) in rules.iter().enumerate() {
            let route = self.route(index, rule);
            self.routes.extend(route);
        }
    }

    /// Compiles a rule of the routing; none if it is invalid.
    fn route(&mut self, index: usize, rule: &RoutingRule) -> Option<Route> {
        let pointer = format!("/routing/{index}");
        let from = self.judged(&pointer, &rule.from);
        let condition = self.condition(&format!("{pointer}/condition"), rule.condition.as_deref());
        let location = FindingLocation::composition(format!("{pointer}/next"));
        let next = match rule.next.as_deref() {
            None => None,
            Some(name @ (OUTPUT | "null" | "~")) => {
                self.report(
                    Finding::error(Rule::CompositionStep, location, format!("`{name}` is not a module"))
                        .suggest("Write `next: null` to return the result so far."),
                );
                return None;
            }
            Some(name) => Some(self.callee(name, location)?),
        };
        if from.is_err() || (condition.is_none() && rule.condition.is_some()) {
            self.dropped.extend(next);
            return None;
        }
        Some(Route { index, from: from.ok()?, condition, next })
    }

    /// Reads the sources of a condition after the steps; none for the result so far.
    fn judged(&mut self, pointer: &str, from: &[String]) -> Result<Option<Selection>, InvalidSources> {
        match from {
            [] => Ok(None),
            from => self.selection(pointer, from, None).map(Some).ok_or(InvalidSources),
        }
    }

    pub(super) fn iteration(&mut self, composition: &Composition) {
        match (&composition.iteration, Self::is_iterative(composition)) {
            (None, false) => {}
            (None, true) => {
                let message = "the pattern `iterative` has no `iteration`";
                self.report(
                    Finding::error(Rule::CompositionStep, FindingLocation::composition("/pattern"), message)
                        .suggest("Add `iteration:` with `until` and `max_rounds`."),
                );
            }
            (Some(_), false) => {
                let message = format!("`iteration` has no effect in the pattern `{}`", composition.pattern);
                let location = FindingLocation::composition("/iteration");
                self.report(
                    Finding::warning(Rule::CompositionStep, location, message)
                        .suggest("Write `pattern: iterative`."),
                );
            }
            (Some(rule), true) => {
                let from = self.judged("/iteration", &rule.from);
                let until = self.condition("/iteration/until", rule.until.as_deref());
                let (from, until) = from.map_or((None, None), |from| (from, until));
                let best = self.best(rule);
                if rule.until.is_none() && rule.best.is_none() {
                    let message = format!(
                        "without `until`, all {} rounds run and the last one counts",
                        rule.max_rounds
                    );
                    let help = "Add `until:` with the condition that ends the rounds, or `best:` with the path of a number.";
                    let location = FindingLocation::composition("/iteration");
                    self.report(Finding::warning(Rule::CompositionStep, location, message).suggest(help));
                }
                self.iteration = Some(Iteration { from, until, max_rounds: rule.max_rounds, best });
            }
        }
    }

    /// Reads the path of the number that says how good a round is.
    fn best(&mut self, rule: &IterationRule) -> Option<(ValuePath, String)> {
        let text = rule.best.as_ref()?;
        let path = ValuePath::parse(text);
        if path.is_none() {
            let location = FindingLocation::composition("/iteration/best");
            let message = "`best` is not a path to one value";
            let help = "Write names and indices, such as `$.data.score`.";
            self.report(Finding::error(Rule::CompositionCondition, location, message).suggest(help));
        }
        Some((path?, text.clone()))
    }

    /// Reads the sources of a step.
    fn selection(
        &mut self,
        pointer: &str,
        from: &[String],
        aggregate: Option<Aggregate>,
    ) -> Option<Selection> {
        self.check_length(&format!("{pointer}/from"), from)?;
        let mut sources = Vec::new();
        for (index, text) in from.iter().enumerate() {
            let item = if from.len() > 1 { format!("/{index}") } else { String::new() };
            let location = FindingLocation::composition(format!("{pointer}/from{item}"));
            let source = self.source(text, location.clone())?;
            if sources.contains(&source) {
                let message = format!("`{text}` is listed twice in `from`");
                self.report(
                    Finding::warning(Rule::CompositionStep, location, message).suggest("Remove one of them."),
                );
            } else {
                sources.push(source);
            }
        }
        self.check_aggregate(pointer, &sources, aggregate);
        (!sources.is_empty()).then_some(Selection { sources, aggregate })
    }

    /// Reports an aggregation of one source.
    fn check_aggregate(&mut self, pointer: &str, sources: &[Source], aggregate: Option<Aggregate>) {
        if sources.len() == 1 && matches!(aggregate, Some(Aggregate::Merge | Aggregate::First)) {
            let location = FindingLocation::composition(format!("{pointer}/aggregate"));
            let message = "`aggregate` has no effect: the step has one source";
            self.report(
                Finding::warning(Rule::CompositionStep, location, message)
                    .suggest("Remove it, or add sources to `from`."),
            );
        }
    }

    fn check_length(&mut self, pointer: &str, list: &[String]) -> Option<()> {
        if list.len() <= MAX_LISTED {
            return Some(());
        }
        let message = format!("the list has {} items; the maximum is {MAX_LISTED}", list.len());
        self.report(
            Finding::error(Rule::CompositionStep, FindingLocation::composition(pointer), message)
                .suggest("Split the step into several steps."),
        );
        None
    }

    fn source(&mut self, text: &str, location: FindingLocation) -> Option<Source> {
        if text == INPUT {
            return Some(Source::Input);
        }
        if let Some(name) = text.strip_suffix(".output") {
            return self.callee(name, location).map(Source::Output);
        }
        let shown: String = text.chars().take(80).collect();
        let finding = Finding::error(
            Rule::CompositionStep,
            location,
            format!("`{}` is not a source", shown.escape_debug()),
        );
        let is_known = text == self.module.manifest.name || self.parts.find(text).is_some();
        let name = text.split_once('.').map_or(text, |(name, _)| name);
        let help = if is_known || (name != text && self.parts.find(name).is_some()) {
            format!("Write `{name}.output`.")
        } else if nearest(text, [INPUT]).is_some() {
            "Did you mean `input`?".to_owned()
        } else {
            "Write `input`, or `NAME.output` for the result of a module.".to_owned()
        };
        self.report(finding.suggest(help));
        None
    }

    /// Returns the target of a step whose result has a name; none of its targets if the name was reported.
    fn named_target(&self, index: usize) -> Result<Target, Vec<Callee>> {
        let part = self.names.of_steps.get(&index);
        part.map(|part| Target::Modules(vec![Callee::Part(*part)])).ok_or_else(Vec::new)
    }

    /// Reads the targets of a step. If one of them is invalid, the others are returned as an error.
    fn target(&mut self, pointer: &str, written: &DataflowStep) -> Result<Target, Vec<Callee>> {
        if let [only] = written.to.as_slice()
            && only == OUTPUT
        {
            return Ok(Target::Output);
        }
        self.check_length(&format!("{pointer}/to"), &written.to).ok_or_else(Vec::new)?;
        let mut targets = Vec::new();
        let mut is_valid = !written.to.is_empty();
        for (index, name) in written.to.iter().enumerate() {
            let item = if written.to.len() > 1 { format!("/{index}") } else { String::new() };
            let location = FindingLocation::composition(format!("{pointer}/to{item}"));
            let Some(target) = self.target_module(name, location.clone()) else {
                is_valid = false;
                continue;
            };
            if targets.contains(&target) {
                let message = format!("`{name}` is listed twice in `to`");
                self.report(
                    Finding::error(Rule::CompositionStep, location, message).suggest("Remove one of them."),
                );
            } else {
                targets.push(target);
            }
        }
        if is_valid { Ok(Target::Modules(targets)) } else { Err(targets) }
    }

    fn target_module(&mut self, name: &str, location: FindingLocation) -> Option<Callee> {
        let (message, help) = match (name, name.strip_suffix(".output")) {
            (OUTPUT, _) => (
                "`output` cannot be in a list with modules".to_owned(),
                "Add a step of its own for `output`.".to_owned(),
            ),
            (INPUT, _) => {
                ("`input` is not a target".to_owned(), "Write the name of a module, or `output`.".to_owned())
            }
            (_, Some(module)) => {
                (format!("`{name}` is a source, not a target"), format!("Write `{module}`."))
            }
            (_, None) => return self.callee(name, location),
        };
        self.report(Finding::error(Rule::CompositionStep, location, message).suggest(help));
        None
    }

    /// Returns the module that a step or a route names: the own prompt, or a part.
    fn callee(&mut self, name: &str, location: FindingLocation) -> Option<Callee> {
        if name == self.module.manifest.name {
            if !self.has_prompt() {
                let message = format!("`{name}` is this module, whose prompt is empty");
                self.report(
                    Finding::error(Rule::CompositionStep, location, message)
                        .suggest("Write a `prompt.md`, or name another module."),
                );
                return None;
            }
            return Some(Callee::Own);
        }
        self.is_callable(name, &location).then(|| Callee::Part(self.parts.index(name, location)))
    }

    fn condition(&mut self, pointer: &str, text: Option<&str>) -> Option<Condition> {
        let text = text?;
        let pointer = format!("/composition{pointer}");
        match Condition::parse(text) {
            Ok(condition) => Some(condition),
            Err(error) => {
                let finding = Finding::invalid_text(
                    Rule::CompositionCondition,
                    pointer,
                    "invalid condition",
                    text,
                    error,
                );
                self.report(finding);
                None
            }
        }
    }

    fn mapping(&mut self, pointer: &str, written: &DataflowStep) -> Option<Mapping> {
        let mapping = written.mapping.as_ref()?;
        let mut fields = Vec::new();
        for (name, text) in mapping {
            let token = name.replace('~', "~0").replace('/', "~1");
            match Operand::parse_all(text, written.each.is_some()) {
                Ok(operands) => fields.push(MappedField { name: name.clone(), text: text.clone(), operands }),
                Err(error) => {
                    let pointer = format!("/composition{pointer}/mapping/{token}");
                    self.report(Finding::invalid_text(
                        Rule::CompositionMapping,
                        pointer,
                        "invalid value",
                        text,
                        error,
                    ));
                }
            }
        }
        let is_complete = fields.len() == mapping.len();
        Some(Mapping::new(fields, is_complete))
    }
}
