//! What is known about the sources of a step.

use std::{
    cell::{OnceCell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
};

use cog_module::Module;
use cog_rules::{AbsentMember, MAX_ALTERNATIVES, StaticType};
use cog_schema::Types;
use cog_spec::{Aggregate, RUNTIME_KEYS};

use super::Select as _;
use crate::{
    Callee, Flow, Plan, Selection, Source, Step, Target,
    json_path::JsonPath,
    mapping::{MappedField, Operand},
};

/// The sources of one plan.
pub(crate) struct Sources<'c> {
    pub(crate) plan: &'c Plan,
    flow: &'c Flow,
    certain: Certainty,
    /// What is certain if no optional part fails.
    if_all_succeed: Certainty,
    /// What is known about the envelope of each callee that was read.
    envelopes: RefCell<HashMap<Callee, StaticType<'c>>>,
    /// What is known about the `meta` of every envelope.
    common_meta: OnceCell<StaticType<'c>>,
    /// What is known about the result so far after the steps.
    latest: OnceCell<StaticType<'c>>,
}

/// What is certain in every run that completes the steps.
#[derive(Default)]
struct Certainty {
    /// The modules that have a result, and the number of steps after which they have one.
    results: HashMap<Callee, usize>,
    /// The steps that run, by their indices.
    steps: HashSet<usize>,
}

impl<'c> Sources<'c> {
    pub(crate) fn new(flow: &'c Flow, plan: &'c Plan) -> Self {
        let mut sources = Self {
            plan,
            flow,
            certain: Certainty::default(),
            if_all_succeed: Certainty::default(),
            envelopes: RefCell::default(),
            common_meta: OnceCell::new(),
            latest: OnceCell::new(),
        };
        // A list has an entry for each element, null for one that failed.
        sources.certain =
            sources.certainty(|callee| sources.is_required(callee) || plan.mapped.contains(&callee));
        sources.if_all_succeed = sources.certainty(|_| true);
        sources
    }

    /// Returns what is certain if these parts give a result whenever they run.
    fn certainty(&self, succeeds: impl Fn(Callee) -> bool) -> Certainty {
        let mut known = Certainty::default();
        let called = self.plan.calls.iter().map(|call| Callee::Part(call.part));
        known.results = called.filter(|callee| succeeds(*callee)).map(|callee| (callee, 0)).collect();
        // In the order of the manifest: whether a step certainly runs depends on the results of the steps before it.
        for step in self.plan.steps.iter().filter(|step| !step.is_routed && step.condition.is_none()) {
            if step.from.sources.iter().any(|source| self.is_given(*source, step.index, &known)) {
                known.steps.insert(step.index);
                for target in step.targets().iter().filter(|target| succeeds(**target)) {
                    known.results.entry(*target).or_insert(step.index + 1);
                }
            }
        }
        known
    }

    /// Returns whether a source has a value after so many steps.
    fn is_given(&self, source: Source, steps: usize, known: &Certainty) -> bool {
        match source {
            Source::Input => !self.part_of(Callee::Own, "input").types().meet(Types::NULL),
            Source::Output(callee) => known.results.get(&callee).is_some_and(|after| *after <= steps),
        }
    }

    /// Returns whether a source certainly has a value after so many steps.
    fn has_result(&self, source: Source, steps: usize) -> bool {
        self.is_given(source, steps, &self.certain)
    }

    /// Returns the callee of a source that has no value for a step if, and only if, an optional part fails.
    fn optional(&self, source: Source, step: &Step) -> Option<Callee> {
        let steps = last_step_before(step);
        let is_optional =
            !self.has_result(source, steps) && self.is_given(source, steps, &self.if_all_succeed);
        match source {
            Source::Output(callee) if is_optional => Some(callee),
            _ => None,
        }
    }

    /// Returns the result without which a field of a step is left out, if an optional part fails.
    pub(crate) fn lacking(&self, step: &Step, field: &MappedField) -> Option<Callee> {
        let mut paths = field.operands.iter().map(|operand| self.lacking_path(step, operand));
        let first = paths.next()??;
        paths.all(|path| path.is_some()).then_some(first)
    }

    /// Returns the result without which an operand finds nothing.
    fn lacking_path(&self, step: &Step, operand: &Operand) -> Option<Callee> {
        let Operand::Path(path @ JsonPath::One(_)) = operand else { return None };
        let sources = step.from.sources.as_slice();
        // Without the only source, the step does not run.
        match step.from.aggregate {
            _ if sources.len() == 1 => None,
            Some(Aggregate::Array) => None,
            Some(Aggregate::Merge | Aggregate::First) => {
                let mut giving =
                    sources.iter().filter(|source| self.source(**source, true).select(path).is_ok());
                let first = self.optional(*giving.next()?, step)?;
                giving.all(|source| self.optional(*source, step).is_some()).then_some(first)
            }
            None => {
                let name = path.first_key()?;
                let source = sources.iter().find(|source| self.plan.source_name(**source) == name)?;
                self.optional(*source, step)
            }
        }
    }

    /// Returns the result without which a step to `output` does not give a field, if an optional part fails.
    pub(crate) fn lacking_in_answer(&self, step: &Step, field: Option<&MappedField>) -> Option<Callee> {
        if step.condition.is_some() {
            return None;
        }
        let mut sources = step.from.sources.iter().map(|source| self.optional(*source, step));
        let first = sources.next().flatten().filter(|_| sources.all(|source| source.is_some()));
        first.or_else(|| self.lacking(step, field?))
    }

    /// Returns whether the composition fails without a result of this module.
    fn is_required(&self, callee: Callee) -> bool {
        match callee {
            Callee::Own => true,
            Callee::Part(part) => self.plan.parts.get(part).is_some_and(|part| !part.optional),
        }
    }

    /// Returns what `$` is in the mapping and the condition of a step. In rounds, the result can be missing in the first one.
    pub(crate) fn document(&self, step: &Step) -> StaticType<'c> {
        let is_once = self.plan.iteration.is_none();
        let before = last_step_before(step);
        self.selected(&step.from, |source| self.source(source, is_once && self.has_result(source, before)))
    }

    /// Returns what `$` is in the condition of a step, which is evaluated only if one of its sources has a value.
    pub(crate) fn tested(&self, step: &Step) -> StaticType<'c> {
        let document = self.document(step);
        if step.from.sources.len() == 1 { document.existing() } else { document }
    }

    /// Returns what an element of a step's list is; none if the step runs once.
    pub(crate) fn item(&self, step: &Step) -> Result<Option<StaticType<'c>>, AbsentMember> {
        let Some(each) = &step.each else { return Ok(None) };
        let list = self.document(step).existing().select(&each.path)?;
        match list.elements().filter(|_| list.types().meet(Types::ARRAY)) {
            Some(element) => Ok(Some(element)),
            None => {
                let message = format!("the path selects {}, but `each` needs a list", list.describe());
                Err(AbsentMember { message, suggestion: None })
            }
        }
    }

    /// Returns what a step without a mapping passes on.
    pub(crate) fn payload(&self, from: &Selection) -> StaticType<'c> {
        self.selected(from, |source| self.payload_of(source))
    }

    /// Returns the input, or the data of a result.
    pub(crate) fn payload_of(&self, source: Source) -> StaticType<'c> {
        match source {
            Source::Input => self.part_of(Callee::Own, "input"),
            Source::Output(callee) => self.data(callee),
        }
    }

    /// Returns what is known about the data of the answer.
    pub(crate) fn answer(&self) -> StaticType<'c> {
        self.part_of(Callee::Own, "data")
    }

    /// Returns what `$` is after the steps: the selected sources, otherwise the result so far.
    pub(crate) fn judged(&self, from: Option<&Selection>) -> StaticType<'c> {
        match from {
            Some(from) => {
                self.selected(from, |source| self.source(source, self.has_result(source, usize::MAX)))
            }
            None => self.latest.get_or_init(|| self.result_so_far()).clone(),
        }
    }

    fn result_so_far(&self) -> StaticType<'c> {
        let callees = self.latest();
        let envelope = match callees.len() {
            0 => return StaticType::Any,
            1..=MAX_ALTERNATIVES => {
                StaticType::either(callees.into_iter().map(|callee| self.envelope(callee)))
            }
            _ => envelope(self.common_meta(), StaticType::Any),
        };
        let is_certain = self.steps().any(|step| self.certain_target(step).is_some());
        if is_certain { envelope } else { envelope.or_null() }
    }

    /// Returns the envelope of a module that runs, by its name; none if nothing is known about it.
    pub(crate) fn named(&self, name: &str) -> Option<StaticType<'c>> {
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
    pub(crate) fn input_of(&self, callee: Callee) -> StaticType<'c> {
        self.part_of(callee, "input")
    }

    fn selected(&self, from: &Selection, known: impl Fn(Source) -> StaticType<'c>) -> StaticType<'c> {
        if let ([only], None) = (from.sources.as_slice(), from.aggregate) {
            return known(*only);
        }
        let Some(aggregate) = from.aggregate else {
            let sources = from.sources.iter();
            return StaticType::object(
                sources.map(|source| (self.plan.source_name(*source), known(*source))),
            );
        };
        // An aggregation leaves out what has no result.
        let any = StaticType::either(from.sources.iter().map(|source| known(*source).existing()));
        match aggregate {
            Aggregate::Merge | Aggregate::First => any,
            Aggregate::Array => StaticType::List(Rc::new(any)),
        }
    }

    fn source(&self, source: Source, is_certain: bool) -> StaticType<'c> {
        match source {
            Source::Input => self.part_of(Callee::Own, "input"),
            Source::Output(callee) if is_certain => self.envelope(callee),
            Source::Output(callee) => self.envelope(callee).or_null(),
        }
    }

    fn envelope(&self, callee: Callee) -> StaticType<'c> {
        if let Some(known) = self.envelopes.borrow().get(&callee) {
            return known.clone();
        }
        let meta = match StaticType::either(self.answering(callee).map(|callee| self.meta(callee))) {
            // The runtime writes the meta of a list.
            _ if self.plan.mapped.contains(&callee) => self.common_meta(),
            StaticType::Any => self.common_meta(),
            meta => meta,
        };
        let known = envelope(meta, self.data(callee));
        self.envelopes.borrow_mut().insert(callee, known.clone());
        known
    }

    fn meta(&self, callee: Callee) -> StaticType<'c> {
        match self.part_of(callee, "meta") {
            StaticType::Any => self.common_meta(),
            own => StaticType::Layers([own, self.common_meta()].into()),
        }
    }

    fn common_meta(&self) -> StaticType<'c> {
        let known = self.common_meta.get_or_init(|| {
            let runtime = RUNTIME_KEYS.iter().map(|key| (*key, StaticType::Any));
            let fixed = [
                ("confidence", StaticType::Confidence),
                ("risk", StaticType::Types(Types::STRING.or(Types::OBJECT))),
                ("explain", StaticType::Types(Types::STRING)),
            ];
            StaticType::object(fixed.into_iter().chain(runtime))
        });
        known.clone()
    }

    pub(crate) fn data(&self, callee: Callee) -> StaticType<'c> {
        let data = StaticType::either(self.answering(callee).map(|callee| self.data_of(callee)));
        match self.plan.mapped.contains(&callee) {
            true if self.is_required(callee) => StaticType::List(Rc::new(data)),
            true => StaticType::List(Rc::new(data.or_null())),
            false => data,
        }
    }

    /// Returns what is known about the data of a module, without the data of its fallbacks.
    pub(crate) fn data_of(&self, callee: Callee) -> StaticType<'c> {
        self.part_of(callee, "data")
    }

    /// Returns the modules that can answer a call: the callee, and the fallbacks in their order, at most one more than are
    /// compared.
    pub(crate) fn answering(&self, callee: Callee) -> impl Iterator<Item = Callee> {
        // Fallbacks that lead to each other are reported elsewhere.
        let mut seen = HashSet::new();
        let all = std::iter::successors(Some(callee), |callee| self.fallback_of(*callee));
        all.take_while(move |callee| seen.insert(*callee)).take(MAX_ALTERNATIVES + 1)
    }

    fn fallback_of(&self, callee: Callee) -> Option<Callee> {
        match callee {
            Callee::Own => None,
            Callee::Part(part) => self.plan.parts.get(part)?.fallback.map(Callee::Part),
        }
    }

    fn part_of(&self, callee: Callee, part: &str) -> StaticType<'c> {
        self.module(callee)
            .and_then(|module| module.contract.shape(part))
            .map_or(StaticType::Any, StaticType::Schema)
    }

    /// Returns the modules whose result can be the result so far after the steps: of a list of targets, the last one with a
    /// result.
    pub(crate) fn latest(&self) -> Vec<Callee> {
        let mut latest = Vec::new();
        let mut seen = HashSet::new();
        for step in self.steps() {
            let certain = self.certain_target(step);
            if certain.is_some() {
                latest.clear();
                seen.clear();
            }
            let targets = step.targets().iter().skip(certain.unwrap_or_default());
            latest.extend(targets.copied().filter(|target| seen.insert(*target)));
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
        certain.filter(|_| self.certain.steps.contains(&step.index))
    }
}

/// Returns how many steps have run before a step reads its sources.
fn last_step_before(step: &Step) -> usize {
    let is_last = step.is_routed || step.to == Target::Output;
    if is_last { usize::MAX } else { step.index }
}

/// Returns what is known about an envelope with these parts. An error is not a result.
fn envelope<'c>(meta: StaticType<'c>, data: StaticType<'c>) -> StaticType<'c> {
    StaticType::object([("ok", StaticType::True), ("meta", meta), ("data", data)])
}
