//! What is known about the sources of a step.

use std::collections::HashSet;

use cog_module::Module;
use cog_schema::Types;
use cog_spec::{Aggregate, RUNTIME_KEYS};

use super::Known;
use crate::{Callee, Flow, Plan, Selection, Source, Step};

/// The sources of one plan.
pub(crate) struct Sources<'c> {
    pub(crate) plan: &'c Plan,
    flow: &'c Flow,
    /// The modules that have a result in every run that completes the steps.
    certain: HashSet<Callee>,
    /// The steps that run in each of these runs, by their indices.
    certain_steps: HashSet<usize>,
}

impl<'c> Sources<'c> {
    pub(crate) fn new(flow: &'c Flow, plan: &'c Plan) -> Self {
        let mut sources = Self { plan, flow, certain: HashSet::new(), certain_steps: HashSet::new() };
        let called = plan.calls.iter().map(|call| Callee::Part(call.part));
        sources.certain = called.filter(|callee| sources.is_required(*callee)).collect();
        for step in plan.steps.iter().filter(|step| !step.is_routed && step.condition.is_none()) {
            if step.from.sources.iter().any(|source| sources.has_result(*source)) {
                sources.certain_steps.insert(step.index);
                let targets = step.targets().iter().copied();
                let required: Vec<_> = targets.filter(|target| sources.is_required(*target)).collect();
                sources.certain.extend(required);
            }
        }
        sources
    }

    /// Returns whether a source certainly has a value after the steps.
    fn has_result(&self, source: Source) -> bool {
        match source {
            Source::Input => !self.part_of(Callee::Own, "input").types().meet(Types::NULL),
            Source::Output(callee) => self.certain.contains(&callee),
        }
    }

    /// Returns whether the composition fails without a result of this module.
    fn is_required(&self, callee: Callee) -> bool {
        match callee {
            Callee::Own => true,
            Callee::Part(part) => self.plan.parts.get(part).is_some_and(|part| !part.optional),
        }
    }

    /// Returns what `$` is in the mapping and the condition of a step. In rounds, the result can be missing in the first one.
    pub(crate) fn document(&self, from: &Selection) -> Known<'c> {
        let is_once = self.plan.iteration.is_none();
        self.selected(from, |source| self.source(source, is_once && self.has_result(source)))
    }

    /// Returns what `$` is in the condition of a step, which is evaluated only if one of its sources has a value.
    pub(crate) fn tested(&self, from: &Selection) -> Known<'c> {
        let document = self.document(from);
        if from.sources.len() == 1 { document.existing() } else { document }
    }

    /// Returns what a step without a mapping passes on.
    pub(crate) fn payload(&self, from: &Selection) -> Known<'c> {
        self.selected(from, |source| self.payload_of(source))
    }

    /// Returns the input, or the data of a result.
    pub(crate) fn payload_of(&self, source: Source) -> Known<'c> {
        match source {
            Source::Input => self.part_of(Callee::Own, "input"),
            Source::Output(callee) => self.data(callee),
        }
    }

    /// Returns what is known about the data of the answer.
    pub(crate) fn answer(&self) -> Known<'c> {
        self.part_of(Callee::Own, "data")
    }

    /// Returns what `$` is after the steps: the selected sources, otherwise the result so far.
    pub(crate) fn judged(&self, from: Option<&Selection>) -> Known<'c> {
        let Some(from) = from else {
            let callees = self.latest();
            let is_certain = self.steps().any(|step| self.certain_target(step).is_some());
            let latest: Vec<_> = callees.into_iter().map(|callee| self.envelope(callee)).collect();
            return match latest.is_empty() {
                true => Known::Any,
                false if is_certain => Known::Either(latest),
                false => Known::Maybe(Box::new(Known::Either(latest))),
            };
        };
        self.selected(from, |source| self.source(source, self.has_result(source)))
    }

    /// Returns the envelope of a module that runs, by its name; none if nothing is known about it.
    pub(crate) fn named(&self, name: &str) -> Option<Known<'c>> {
        self.plan.callee_named(name).map(|callee| self.envelope(callee))
    }

    /// Returns the module of a callee; none if it is missing.
    pub(crate) fn module(&self, callee: Callee) -> Option<&'c Module> {
        match callee {
            Callee::Own => Some(&self.plan.module),
            Callee::Part(part) => self.plan.parts.get(part)?.plan.map(|id| &*self.flow.plan(id).module),
        }
    }

    /// Returns what is known about the input of a callee.
    pub(crate) fn input_of(&self, callee: Callee) -> Known<'c> {
        self.part_of(callee, "input")
    }

    fn selected(&self, from: &Selection, known: impl Fn(Source) -> Known<'c>) -> Known<'c> {
        if let ([only], None) = (from.sources.as_slice(), from.aggregate) {
            return known(*only);
        }
        // An aggregation leaves out what has no result.
        let all = || from.sources.iter().map(|source| known(*source).existing()).collect();
        match from.aggregate {
            None => {
                let named = |source: &Source| (self.plan.source_name(*source).to_owned(), known(*source));
                Known::Object(from.sources.iter().map(named).collect())
            }
            Some(Aggregate::Merge | Aggregate::First) => Known::Either(all()),
            Some(Aggregate::Array) => Known::List(Box::new(Known::Either(all()))),
        }
    }

    fn source(&self, source: Source, is_certain: bool) -> Known<'c> {
        match source {
            Source::Input => self.part_of(Callee::Own, "input"),
            Source::Output(callee) if is_certain => self.envelope(callee),
            Source::Output(callee) => Known::Maybe(Box::new(self.envelope(callee))),
        }
    }

    fn envelope(&self, callee: Callee) -> Known<'c> {
        Known::Object(vec![
            // An error is not a result.
            ("ok".to_owned(), Known::True),
            ("meta".to_owned(), either(self.answering(callee).map(|callee| self.meta(callee)))),
            ("data".to_owned(), self.data(callee)),
        ])
    }

    fn meta(&self, callee: Callee) -> Known<'c> {
        let runtime = RUNTIME_KEYS.iter().map(|key| ((*key).to_owned(), Known::Any));
        let fixed = [
            ("confidence", Known::Confidence),
            ("risk", Known::Types(Types::STRING.or(Types::OBJECT))),
            ("explain", Known::Types(Types::STRING)),
        ];
        let fixed = fixed.map(|(name, known)| (name.to_owned(), known));
        let common = Known::Object(fixed.into_iter().chain(runtime).collect());
        match self.part_of(callee, "meta") {
            Known::Any => common,
            own => Known::Layers(vec![own, common]),
        }
    }

    fn data(&self, callee: Callee) -> Known<'c> {
        either(self.answering(callee).map(|callee| self.part_of(callee, "data")))
    }

    /// Returns the modules that can answer a call: the callee, and the fallbacks in their order.
    pub(crate) fn answering(&self, callee: Callee) -> impl Iterator<Item = Callee> {
        let fallback = |callee: &Callee| match callee {
            Callee::Own => None,
            Callee::Part(part) => self.plan.parts.get(*part)?.fallback.map(Callee::Part),
        };
        // Fallbacks that lead to each other are reported elsewhere.
        let mut seen = HashSet::new();
        std::iter::successors(Some(callee), fallback).take_while(move |callee| seen.insert(*callee))
    }

    fn part_of(&self, callee: Callee, part: &str) -> Known<'c> {
        self.module(callee).and_then(|module| module.contract.shape(part)).map_or(Known::Any, Known::Schema)
    }

    /// Returns the modules whose result can be the result so far after the steps: of a list of targets, the last one with a
    /// result.
    pub(crate) fn latest(&self) -> Vec<Callee> {
        let mut latest = Vec::new();
        for step in self.steps() {
            let certain = self.certain_target(step);
            if certain.is_some() {
                latest.clear();
            }
            for target in step.targets().iter().skip(certain.unwrap_or_default()) {
                if !latest.contains(target) {
                    latest.push(*target);
                }
            }
        }
        latest
    }

    /// Returns the steps that run without a rule.
    fn steps(&self) -> impl Iterator<Item = &'c Step> {
        self.plan.steps.iter().filter(|step| !step.is_routed)
    }

    /// Returns the index of the last target that certainly has a result after a step; none if no target has.
    fn certain_target(&self, step: &Step) -> Option<usize> {
        let certain = step.targets().iter().rposition(|target| self.is_required(*target));
        certain.filter(|_| self.certain_steps.contains(&step.index))
    }
}

/// Returns what is known about one of several values.
fn either<'c>(all: impl Iterator<Item = Known<'c>>) -> Known<'c> {
    let mut all: Vec<_> = all.collect();
    if all.len() > 1 { Known::Either(all) } else { all.pop().unwrap_or(Known::Any) }
}
