//! What is known about the sources of a step.

use cog_module::Module;
use cog_schema::Types;
use cog_spec::{Aggregate, RUNTIME_KEYS};

use super::Known;
use crate::{Callee, Flow, Plan, Selection, Source, Step, Target};

/// The sources of one plan.
pub(crate) struct Sources<'c> {
    pub(crate) plan: &'c Plan,
    flow: &'c Flow,
}

impl<'c> Sources<'c> {
    pub(crate) const fn new(flow: &'c Flow, plan: &'c Plan) -> Self {
        Self { plan, flow }
    }

    /// Returns what `$` is in the mapping and the condition of a step.
    pub(crate) fn document(&self, from: &Selection) -> Known<'c> {
        self.selected(from, |source| self.source(source))
    }

    /// Returns what a step without a mapping passes on.
    pub(crate) fn payload(&self, from: &Selection) -> Known<'c> {
        self.selected(from, |source| self.payload_of(source))
    }

    /// Returns the input, or the data of a result.
    pub(crate) fn payload_of(&self, source: Source) -> Known<'c> {
        match source {
            Source::Input => self.source(source),
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
            let latest: Vec<_> = self.latest().into_iter().map(|callee| self.envelope(callee)).collect();
            return if latest.is_empty() { Known::Any } else { Known::Either(latest) };
        };
        self.document(from)
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
        let all = || from.sources.iter().map(|source| known(*source)).collect();
        match from.aggregate {
            None => {
                let named = |source: &Source| (self.plan.source_name(*source).to_owned(), known(*source));
                Known::Object(from.sources.iter().map(named).collect())
            }
            Some(Aggregate::Merge | Aggregate::First) => Known::Either(all()),
            Some(Aggregate::Array) => Known::List(Box::new(Known::Either(all()))),
        }
    }

    fn source(&self, source: Source) -> Known<'c> {
        match source {
            Source::Input => self.part_of(Callee::Own, "input"),
            Source::Output(callee) => self.envelope(callee),
        }
    }

    fn envelope(&self, callee: Callee) -> Known<'c> {
        let runtime = RUNTIME_KEYS.iter().map(|key| ((*key).to_owned(), Known::Any));
        let fixed = [
            ("confidence", Types::NUMBER.or(Types::NULL)),
            ("risk", Types::STRING.or(Types::OBJECT)),
            ("explain", Types::STRING),
        ];
        let fixed = fixed.map(|(name, types)| (name.to_owned(), Known::Types(types)));
        let common = Known::Object(fixed.into_iter().chain(runtime).collect());
        let meta = match self.part_of(callee, "meta") {
            Known::Any => common,
            own => Known::Layers(vec![own, common]),
        };
        Known::Object(vec![
            ("ok".to_owned(), Known::Types(Types::BOOLEAN)),
            ("meta".to_owned(), meta),
            ("data".to_owned(), self.data(callee)),
        ])
    }

    /// Returns what is known about the data; a fallback may answer in place of a part.
    fn data(&self, callee: Callee) -> Known<'c> {
        let Callee::Part(part) = callee else { return self.part_of(callee, "data") };
        let fallback = |part: &usize| self.plan.parts.get(*part)?.fallback;
        let all = std::iter::successors(Some(part), fallback).take(self.plan.parts.len());
        let mut all: Vec<_> = all.map(|part| self.part_of(Callee::Part(part), "data")).collect();
        if all.len() > 1 { Known::Either(all) } else { all.pop().unwrap_or(Known::Any) }
    }

    fn part_of(&self, callee: Callee, part: &str) -> Known<'c> {
        self.module(callee).and_then(|module| module.contract.shape(part)).map_or(Known::Any, Known::Schema)
    }

    /// Returns the modules whose result can be the result so far after the steps.
    pub(crate) fn latest(&self) -> Vec<Callee> {
        let mut latest = Vec::new();
        for step in self.plan.steps.iter().filter(|step| !step.is_routed) {
            let Step { to: Target::Modules(targets), condition, .. } = step else { continue };
            if condition.is_none() {
                latest.clear();
            }
            latest.extend(targets);
        }
        latest
    }
}
