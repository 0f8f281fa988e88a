//! What receives values: a module, its fallbacks, or the answer.

use cog_module::Rule;
use cog_schema::Types;

use super::{Known, Sources};
use crate::{Callee, Finding, finding::FindingLocation};

/// A receiver of values.
pub(super) struct Receiver<'c> {
    /// Its name for a message: "the input of `reviewer`".
    pub(super) name: String,
    pub(super) known: Known<'c>,
    /// Whether it is an input. An answer can be the result of several steps, and the runtime adds fields to it.
    pub(super) is_input: bool,
    /// Whether it takes the place of another module, and ignores the fields that only that one has.
    pub(super) is_fallback: bool,
}

/// A complete value that is passed on.
pub(super) struct Passed<'c> {
    /// What passes it: "the step".
    pub(super) by: &'static str,
    pub(super) value: Known<'c>,
    pub(super) location: FindingLocation,
    pub(super) rule: Rule,
    /// What to do about a value that does not fit.
    pub(super) help: String,
}

impl<'c> Receiver<'c> {
    pub(super) fn answer(sources: &Sources<'c>) -> Self {
        let (name, known) = ("the answer".to_owned(), sources.answer());
        Self { name, known, is_input: false, is_fallback: false }
    }

    /// Returns the inputs of a callee and of its fallbacks, which receive the same values.
    pub(super) fn inputs(sources: &Sources<'c>, callee: Callee) -> impl Iterator<Item = Self> {
        let name_of = |callee| sources.plan.name_of(callee);
        let receiver = move |receiving: Callee| {
            let is_fallback = receiving != callee;
            let replaced = match is_fallback {
                true => format!(" (a fallback of `{}`)", name_of(callee)),
                false => String::new(),
            };
            let name = format!("the input of `{}`{replaced}", name_of(receiving));
            Self { name, known: sources.input_of(receiving), is_input: true, is_fallback }
        };
        sources.answering(callee).map(receiver)
    }

    /// Returns the required fields that are not given.
    pub(super) fn missing(&self, gives: impl Fn(&str) -> bool) -> Vec<&str> {
        let Known::Schema(shape) = &self.known else { return Vec::new() };
        let is_missing = |name: &&str| self.is_input && !gives(name);
        shape.required_names().into_iter().filter(is_missing).collect()
    }

    /// Returns why a complete value does not fit.
    pub(super) fn check(&self, passed: &Passed<'c>) -> Vec<Finding> {
        let Passed { by, value, .. } = passed;
        let (name, mut messages) = (&self.name, Vec::new());
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
        let is_forbidden = |field: &&str| self.is_input && self.known.forbids(field);
        let forbidden = value.certain_members().into_iter().filter(is_forbidden);
        messages.extend(forbidden.map(|field| format!("{name} has no field `{field}`, which {by} passes")));
        let missing = self.missing(|field| value.member(field).is_some());
        if !missing.is_empty() {
            messages.push(format!("{name} requires `{}`, which {by} does not give", missing.join("`, `")));
        }
        messages.into_iter().map(|message| passed.error(message)).collect()
    }
}

impl Passed<'_> {
    pub(super) fn error(&self, message: String) -> Finding {
        Finding::error(self.rule, self.location.clone(), message).suggest(self.help.clone())
    }
}

/// Returns the types of a value and of a field, if no value can have both.
pub(super) fn mismatch(source: &Known<'_>, target: &Known<'_>) -> Option<(String, String)> {
    let elements = || {
        let (source, target) = (source.elements()?, target.elements()?);
        (!source.types().meet(target.types())).then_some(())
    };
    let is_list = source.types() == Types::ARRAY;
    let fits = source.types().meet(target.types()) && !(is_list && elements().is_some());
    (!fits).then(|| (source.describe(), target.describe()))
}
