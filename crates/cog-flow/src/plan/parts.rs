//! The results that a plan has, collected from the manifest and the prompt.

use std::{collections::HashMap, time::Duration};

use semver::VersionReq;

use crate::finding::FindingLocation;

/// A part before its module is found.
#[derive(Debug)]
pub(crate) struct PartDraft {
    /// The name of its result: that of its module, unless `as` gives it another one.
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
