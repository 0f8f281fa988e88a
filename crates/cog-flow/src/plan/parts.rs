//! The results that a plan has, collected from the manifest and the prompt.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use cog_module::Rule;
use cog_spec::{Code, Requirement};
use semver::{Version, VersionReq};

use super::Compiler;
use crate::finding::{Finding, FindingLocation};

/// A part before its module is found.
#[derive(Debug)]
pub(crate) struct PartDraft {
    /// The name of its result: the name of its module, unless `as` gives it another one.
    pub(crate) name: String,
    /// The name of the module that runs.
    pub(crate) module: String,
    /// What `requires` says about the module.
    pub(crate) rule: PartRule,
    /// Where it is named first.
    pub(crate) location: FindingLocation,
    /// Whether it is an item of `requires`.
    pub(crate) is_required: bool,
    /// Whether a step, a route, a call or a fallback runs it.
    pub(crate) is_used: bool,
    /// Whether the prompt calls it.
    pub(crate) is_called: bool,
}

/// What an item of `requires` says about all parts that run its module.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartRule {
    /// The versions that may be called; none for all.
    pub(crate) version: Option<(String, VersionReq)>,
    pub(crate) optional: bool,
    pub(crate) fallback: Option<usize>,
    pub(crate) timeout: Option<Duration>,
}

/// The parts of a module: one for each result.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) list: Vec<PartDraft>,
    pub(crate) by_name: HashMap<String, usize>,
    /// The items of `requires`, by their modules.
    rules: HashMap<String, PartRule>,
}

impl PartDraft {
    /// Returns whether `as` gives its result a name of its own.
    pub(crate) fn is_named(&self) -> bool {
        self.name != self.module
    }
}

impl Parts {
    /// Returns the index of the part whose result has the name of its module; adds it if it is new.
    pub(crate) fn index(&mut self, name: &str, location: FindingLocation) -> usize {
        self.named_index(name, name, location)
    }

    /// Returns the index of the part with a name; adds one for this module if it is new.
    pub(crate) fn named_index(&mut self, name: &str, module: &str, location: FindingLocation) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.list.len();
        self.by_name.insert(name.to_owned(), index);
        self.list.push(PartDraft {
            name: name.to_owned(),
            module: module.to_owned(),
            rule: self.rules.get(module).cloned().unwrap_or_default(),
            location,
            is_required: false,
            is_used: false,
            is_called: false,
        });
        index
    }

    /// Adds an item of `requires`, before the parts of its module. Returns whether it is the first one of the module.
    pub(crate) fn add_rule(&mut self, module: &str, rule: PartRule) -> bool {
        let is_first = !self.rules.contains_key(module);
        if is_first {
            self.rules.insert(module.to_owned(), rule);
        }
        is_first
    }

    /// Sets the fallback of a module of `requires`.
    pub(crate) fn set_fallback(&mut self, module: &str, fallback: usize) {
        if let Some(rule) = self.rules.get_mut(module) {
            rule.fallback = Some(fallback);
        }
        let part = self.find(module).and_then(|part| self.list.get_mut(part));
        if let Some(part) = part {
            part.rule.fallback = Some(fallback);
        }
    }

    /// Returns the index of a part that exists.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns a part that exists.
    pub(crate) fn named(&self, name: &str) -> Option<&PartDraft> {
        self.list.get(self.find(name)?)
    }

    /// Returns the names that `as` gives to the results of a module.
    pub(crate) fn names_of<'s>(&'s self, module: &'s str) -> impl Iterator<Item = &'s str> {
        let named = self.list.iter().filter(move |part| part.module == module && part.is_named());
        named.map(|part| part.name.as_str())
    }

    /// Marks a part as run.
    pub(crate) fn mark_used(&mut self, index: usize) {
        if let Some(part) = self.list.get_mut(index) {
            part.is_used = true;
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|part| part.name.as_str())
    }
}

// `requires`: the modules that a composition calls, their versions and fallbacks.

impl Compiler<'_> {
    /// Adds the modules of `requires`. Those whose runs all have names have no part of their own.
    pub(super) fn requires(&mut self, requires: &[Requirement], only_named: &HashSet<String>) {
        for (index, requirement) in requires.iter().enumerate() {
            self.requirement(index, requirement, only_named.contains(&requirement.name));
        }
        for (index, requirement) in requires.iter().enumerate() {
            self.fallback(index, requirement);
        }
        self.fallback_cycles();
    }

    fn requirement(&mut self, index: usize, requirement: &Requirement, is_only_named: bool) {
        let pointer = format!("/requires/{index}");
        let location = FindingLocation::composition(format!("{pointer}/name"));
        let name = &requirement.name;
        if !self.is_callable(name, &location) {
            return;
        }
        let version = requirement.version.as_deref().and_then(|text| self.version(&pointer, text));
        let timeout = requirement.timeout_ms.map(Duration::from_millis);
        let rule = PartRule { version, optional: requirement.optional, fallback: None, timeout };
        if !self.parts.add_rule(name, rule) {
            let message = format!("`{name}` is listed twice in `requires`");
            self.report(
                Finding::error(Rule::CompositionModule, location, message).suggest("Remove one of them."),
            );
            return;
        }
        if is_only_named {
            return;
        }
        let part = self.parts.index(name, location);
        if let Some(part) = self.parts.list.get_mut(part) {
            part.is_required = true;
        }
    }

    /// Parses a range of versions. A complete version without a sign is exact.
    fn version(&mut self, pointer: &str, text: &str) -> Option<(String, VersionReq)> {
        let trimmed = text.trim();
        let exact = Version::parse(trimmed).ok().map(|_| format!("={trimmed}"));
        match VersionReq::parse(exact.as_deref().unwrap_or(trimmed)) {
            Ok(range) => Some((trimmed.to_owned(), range)),
            Err(_) => {
                let shown: String = trimmed.chars().take(40).collect();
                let message = format!("`{shown}` is not a range of versions");
                let location = FindingLocation::composition(format!("{pointer}/version"));
                self.report(
                    Finding::error(Rule::CompositionModule, location, message)
                        .suggest("Write `1.0.0`, `>=1.0.0`, `^1.0.0`, `~1.0.0` or `*`."),
                );
                None
            }
        }
    }

    fn fallback(&mut self, index: usize, requirement: &Requirement) {
        let Some(fallback) = &requirement.fallback else { return };
        let location = FindingLocation::composition(format!("/requires/{index}/fallback"));
        if !self.is_callable(fallback, &location) {
            return;
        }
        let fallback = self.parts.index(fallback, location);
        self.parts.mark_used(fallback);
        self.parts.set_fallback(&requirement.name, fallback);
    }

    /// Reports fallbacks that lead to each other.
    fn fallback_cycles(&mut self) {
        let next: Vec<Option<usize>> = self.parts.list.iter().map(|part| part.rule.fallback).collect();
        for cycle in cycles(&next) {
            let names = cycle.iter().chain(cycle.first()).filter_map(|part| self.parts.list.get(*part));
            let names: Vec<&str> = names.map(|part| part.name.as_str()).collect();
            let message = format!("the fallbacks lead to each other: {}", names.join(" → "));
            let location =
                cycle.first().and_then(|part| self.parts.list.get(*part)).map(|part| part.location.clone());
            let location = location.unwrap_or_else(|| FindingLocation::composition("/requires"));
            self.report(
                Finding::error(Rule::CompositionCycle, location, message)
                    .code(Code::CircularDependency)
                    .suggest("Remove one of the fallbacks."),
            );
        }
    }
}

/// Returns the cycles of a list in which each item has at most one successor.
fn cycles(next: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut visited_from = vec![None; next.len()];
    let mut cycles = Vec::new();
    for start in 0..next.len() {
        let mut at = Some(start);
        while let Some(item) = at
            && let Some(slot @ None) = visited_from.get_mut(item)
        {
            *slot = Some(start);
            at = next.get(item).copied().flatten();
        }
        if let Some(first) = at.filter(|item| visited_from.get(*item) == Some(&Some(start))) {
            cycles.push(
                std::iter::successors(Some(first), |item| {
                    next.get(*item).copied().flatten().filter(|item| *item != first)
                })
                .collect(),
            );
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::cycles;

    #[test]
    fn finds_each_cycle_once() {
        assert_eq!(cycles(&[Some(1), Some(2), Some(1), Some(0), Some(4), None]), [vec![1, 2], vec![4]]);
        assert_eq!(cycles(&[Some(1), None]), Vec::<Vec<usize>>::new());
    }
}
