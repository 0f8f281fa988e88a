//! Judges two schemas: a proof that one accepts all values of the other, or a value that it refuses.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use cog_json::Value as Tree;
use serde_json::Value;

use super::candidates::Candidates;
use crate::{
    engine::{Check, Cover, Engine, EngineError, Reason, cover},
    sample::sample_at,
};

/// Whether a schema accepts every value of another one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// It does, and the other one accepts no fewer.
    Equal,
    /// It does.
    Accepted,
    /// It refuses this value.
    Refused(Tree),
    /// Not decided.
    Unknown,
}

/// Judges the schemas of a document.
pub(super) struct Judge<'a> {
    document: &'a Value,
    engine: Engine,
}

/// The number of samples that are taken from a schema.
const SAMPLES: u64 = 24;
/// The number of samples whose variants are tried.
const VARIED: usize = 12;
/// The number of values with a difference that are compared for the shortest.
const ENOUGH: usize = 12;

impl<'a> Judge<'a> {
    pub(super) fn new(document: &'a Value) -> Option<Self> {
        let engine = Engine::new(Arc::new(document.clone())).ok()?;
        Some(Self { document, engine })
    }

    /// Returns the checks of two schemas.
    pub(super) fn pair(&self, outer: &str, inner: &str) -> Option<Pair> {
        let check = |pointer| self.engine.compile(pointer).ok();
        Some(Pair { outer: check(outer)?, inner: check(inner)? })
    }

    /// Judges whether `outer` accepts every value of `inner`. A value that it refuses must also separate `complete`.
    pub(super) fn verdict(&self, outer: &str, inner: &str, complete: Option<&Pair>) -> Verdict {
        self.judge(outer, inner, complete).0
    }

    /// Also returns the values that it refuses, the shortest first.
    pub(super) fn judge(&self, outer: &str, inner: &str, complete: Option<&Pair>) -> (Verdict, Vec<Tree>) {
        let Some(pair) = self.pair(outer, inner) else { return (Verdict::Unknown, Vec::new()) };
        let is_refused =
            |value: &Tree| pair.separates(value) && complete.is_none_or(|complete| complete.separates(value));
        let proof = cover(self.document, outer, inner);
        let samples: Vec<Value> =
            (0..SAMPLES).filter_map(|seed| sample_at(self.document, inner, seed)).collect();
        let mut found = Found::default();
        samples.iter().for_each(|sample| found.offer(sample, &is_refused));
        if proof == Cover::Proven {
            // A value that refutes a proof is believed.
            return found.verdict(Verdict::Accepted);
        }
        if let Cover::Difference(schema) = &proof {
            for seed in 0..SAMPLES {
                if let Some(sample) = sample_at(schema, "", seed) {
                    found.offer(&sample, &is_refused);
                }
            }
        }
        let candidates = Candidates::new(self.document, &[outer, inner]);
        for sample in samples.iter().take(VARIED) {
            candidates.each_variant(sample, &mut |value| {
                found.offer(value, &is_refused);
                found.values.len() < ENOUGH
            });
        }
        found.verdict(Verdict::Unknown)
    }

    /// Returns the number of errors of a value; each unexpected member is one.
    pub(super) fn errors(&self, pointer: &str, value: &Tree) -> Option<usize> {
        let errors = self.engine.compile(pointer).ok()?.errors(value.node());
        let count = |error: &EngineError| match &error.reason {
            Reason::Unexpected(members) => members.len(),
            _ => 1,
        };
        Some(errors.iter().map(count).sum())
    }
}

/// The compiled checks of two schemas.
pub(super) struct Pair {
    outer: Check,
    inner: Check,
}

impl Pair {
    /// Returns whether the inner schema accepts a value that the outer one refuses.
    fn separates(&self, value: &Tree) -> bool {
        self.inner.accepts(value.node()) && !self.outer.accepts(value.node())
    }
}

/// The values that were accepted, each with its length as JSON.
#[derive(Default)]
struct Found {
    values: Vec<(usize, Tree)>,
    /// The hashes of the values that were tried.
    tried: HashSet<u64>,
}

impl Found {
    fn offer(&mut self, value: &Value, accepts: &dyn Fn(&Tree) -> bool) {
        let text = value.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if self.tried.insert(hasher.finish()) {
            let tree = Tree::from(value.clone());
            if accepts(&tree) {
                self.values.push((text.len(), tree));
            }
        }
    }

    /// Returns the verdict, which is `without` if there is no value.
    fn verdict(mut self, without: Verdict) -> (Verdict, Vec<Tree>) {
        self.values.sort_by_key(|(length, _)| *length);
        let values: Vec<Tree> = self.values.into_iter().map(|(_, value)| value).collect();
        (values.first().cloned().map_or(without, Verdict::Refused), values)
    }
}
