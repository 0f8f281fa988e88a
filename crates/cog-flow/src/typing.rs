//! Compares mappings and conditions with the schemas of the modules.

mod passed;
mod reach;
mod select;
mod sources;

use std::ops::Range;

use cog_json::{Limits, Path, Value, Writer};
use cog_module::{Module, PromptPart, Rule};
use cog_rules::{StaticType, ValuePath};
use cog_schema::{Types, Violation};

pub(crate) use self::{select::Select, sources::Sources};
use crate::{
    Callee, Condition, Finding, Flow, Plan, Step,
    finding::{FindingLocation, Findings},
};

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
    findings.extend(passed::answer(&sources));
    passed::optional_answer(&sources, &mut findings);
    reach::rules(&sources, &mut findings);
    if let Some(iteration) = &plan.iteration
        && let Some(until) = &iteration.until
    {
        let document = sources.judged(iteration.from.as_ref());
        let effect = "the rounds never end early";
        findings.extend(check_condition(&sources, "/iteration/until", until, &document, effect));
    }
    findings.extend(best(&sources));
    passed::routes(&sources, &mut findings);
    passed::results(&sources, &mut findings);
    prompt(&sources, &mut findings);
    findings
}

/// Returns why `best` of the rounds is no number.
fn best(sources: &Sources<'_>) -> Option<Finding> {
    let iteration = sources.plan.iteration.as_ref()?;
    let (path, text) = iteration.best.as_ref()?;
    let error = |message: String| {
        Finding::error(Rule::CompositionCondition, FindingLocation::composition("/iteration/best"), message)
    };
    match sources.judged(iteration.from.as_ref()).find(path) {
        Err(absent) => Some(error(absent.message).with_suggestion(absent.suggestion)),
        Ok(known) if !known.types().meet(Types::NUMBER) => {
            let message = format!("`{text}` is {}, but `best` compares numbers", known.describe());
            Some(error(message).suggest("Write the path of a number, such as `$.meta.confidence`."))
        }
        Ok(_) => None,
    }
}

fn check_step(sources: &Sources<'_>, step: &Step, findings: &mut Findings) {
    if findings.is_enough() {
        return;
    }
    let pointer = format!("/dataflow/{}", step.index);
    if let Some(condition) = &step.condition {
        let pointer = format!("{pointer}/condition");
        let tested = sources.tested(step);
        findings.extend(check_condition(sources, &pointer, condition, &tested, "this step never runs"));
    }
    passed::step(sources, &pointer, step, findings);
}

/// Returns the parts of a condition that do not fit; otherwise whether it is never true, which has this effect.
fn check_condition(
    sources: &Sources<'_>,
    pointer: &str,
    condition: &Condition,
    document: &StaticType<'_>,
    effect: &str,
) -> Vec<Finding> {
    let findings = misfits(pointer, condition, document);
    if findings.is_empty() && sources.plan.is_complete {
        return Vec::from_iter(reach::check(pointer, condition, document, effect));
    }
    findings
}

/// Returns the parts of a condition that do not fit the schemas.
fn misfits(pointer: &str, condition: &Condition, document: &StaticType<'_>) -> Vec<Finding> {
    let pointer = format!("/composition{pointer}");
    let finding = |error| {
        let text = condition.text();
        Finding::invalid_text(Rule::CompositionCondition, pointer.clone(), "condition", text, error)
    };
    cog_rules::check(condition, document).into_iter().map(finding).collect()
}

/// Checks what the calls of the prompt pass on, and that references read members that the results have.
fn prompt(sources: &Sources<'_>, findings: &mut Findings) {
    let plan = sources.plan;
    for (position, (range, part)) in plan.module.prompt.located().enumerate() {
        if findings.is_enough() {
            return;
        }
        // A second mention of a call is no entry of `calls`, so that its arguments are checked once.
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
    Some(error(format!("`{raw}`: {}", absent.message)).with_suggestion(absent.suggestion))
}

// What receives values: a module, its fallbacks, or the answer.

/// A receiver of values.
struct Receiver<'c> {
    /// Its module; none if it is missing.
    module: Option<&'c Module>,
    /// Its name for a message: "the input of `reviewer`".
    name: String,
    known: StaticType<'c>,
    /// Whether it is an input. The runtime adds fields to an answer.
    is_input: bool,
    /// Whether what is passed gives all its fields. The answer can be the result of several steps.
    is_complete: bool,
    /// Whether it takes the place of another module, and ignores the fields that only that one has.
    is_fallback: bool,
}

/// A complete value that is passed on.
struct PassedValue<'c> {
    /// What passes it: "the step".
    by: String,
    value: StaticType<'c>,
    location: FindingLocation,
    rule: Rule,
    /// What to do about a value that does not fit.
    help: String,
}

impl<'c> Receiver<'c> {
    fn answer(sources: &Sources<'c>) -> Self {
        Self {
            module: sources.module(Callee::Own),
            name: "the answer".to_owned(),
            known: sources.answer(),
            is_input: false,
            is_complete: false,
            is_fallback: false,
        }
    }

    /// Returns the inputs of a callee and of its fallbacks, which receive the same values.
    fn inputs(sources: &Sources<'c>, callee: Callee) -> impl Iterator<Item = Self> {
        let plan = sources.plan;
        sources.answering(callee).map(move |receiving| {
            let mut name = format!("the input of `{}`", plan.name_of(receiving));
            let is_fallback = receiving != callee;
            if is_fallback {
                name += &format!(" (a fallback of `{}`)", plan.name_of(callee));
            }
            Self {
                module: sources.module(receiving),
                name,
                known: sources.input_of(receiving),
                is_input: true,
                is_complete: true,
                is_fallback,
            }
        })
    }

    /// Returns the required fields that are not given.
    fn missing(&self, gives: impl Fn(&str) -> bool) -> Vec<&str> {
        match &self.known {
            StaticType::Schema(shape) if self.is_complete => {
                shape.required_names().into_iter().filter(|name| !gives(name)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns why a constant is not a value of a field.
    fn violation(&self, field: &str, value: &Value) -> Option<Violation> {
        // What the context may contain is declared in the manifest, not in the input schema.
        let module = self.module.filter(|_| field != "_context")?;
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.field(field, value);
        });
        let object = Value::parse_within(text.as_bytes(), Limits::unbounded()).ok()?;
        let (part, violations) = match self.is_input {
            true => ("input", module.contract.check_input(object.node())),
            false => ("data", module.contract.check_data(object.node()).violations),
        };
        let mut path = Path::root();
        [part, field].iter().for_each(|key| path.push_key(key));
        let path = path.to_string();
        // Other fields are missing in this object.
        violations.into_iter().find(|found| {
            found.path.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Returns why a complete value does not fit.
    fn check(&self, passed: &PassedValue<'c>) -> Vec<Finding> {
        let PassedValue { by, value, .. } = passed;
        let name = &self.name;
        let mut messages = Vec::new();
        if let Some((found, expected)) = mismatch(value, &self.known) {
            return vec![passed.error(format!("{name} is {expected}, but {by} passes {found}"))];
        }
        for field in self.known.member_names() {
            let (Some(source), Some(target)) = (value.member(field), self.known.member(field)) else {
                continue;
            };
            if let Some((found, expected)) = mismatch(&source, &target) {
                messages.push(format!("`{field}` in {name} is {expected}, but {by} passes {found}"));
            }
        }
        for field in value.certain_members() {
            if self.is_input && self.known.forbids(field) {
                messages.push(format!("{name} has no field `{field}`, which {by} passes"));
            }
        }
        let missing = self.missing(|field| value.member(field).is_some());
        if !missing.is_empty() {
            messages.push(format!("{name} requires `{}`, which {by} does not give", missing.join("`, `")));
        }
        messages.into_iter().map(|message| passed.error(message)).collect()
    }
}

impl PassedValue<'_> {
    fn error(&self, message: String) -> Finding {
        Finding::error(self.rule, self.location.clone(), message).suggest(self.help.clone())
    }
}

/// Returns the types of a value and of a field, if no value can have both.
fn mismatch(source: &StaticType<'_>, target: &StaticType<'_>) -> Option<(String, String)> {
    let fits = match (source.elements(), target.elements()) {
        (Some(one), Some(other)) if source.types() == Types::ARRAY => {
            target.types().meet(Types::ARRAY) && one.types().meet(other.types())
        }
        _ => source.types().meet(target.types()),
    };
    (!fits).then(|| (source.describe(), target.describe()))
}

#[cfg(test)]
mod tests;
