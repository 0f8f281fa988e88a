//! The modules that a plan calls, collected from the manifest and the prompt.

use std::{collections::HashMap, time::Duration};

use semver::VersionReq;

use crate::finding::FindingLocation;

/// A part before its module is found.
#[derive(Debug)]
pub(crate) struct PartDraft {
    pub(crate) name: String,
    /// The versions that may be called; none for all.
    pub(crate) version: Option<(String, VersionReq)>,
    pub(crate) optional: bool,
    pub(crate) fallback: Option<usize>,
    pub(crate) timeout: Option<Duration>,
    /// Where it is named first.
    pub(crate) location: FindingLocation,
    /// Whether it is an item of `requires`.
    pub(crate) is_required: bool,
    /// Whether a step, a route, a call or a fallback runs it.
    pub(crate) is_used: bool,
    /// Whether the prompt calls it.
    pub(crate) is_called: bool,
}

/// The parts of a module, each once.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) list: Vec<PartDraft>,
    pub(crate) by_name: HashMap<String, usize>,
}

impl Parts {
    /// Returns the index of a part; adds it if it is new.
    pub(crate) fn index(&mut self, name: &str, location: FindingLocation) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.list.len();
        self.by_name.insert(name.to_owned(), index);
        self.list.push(PartDraft {
            name: name.to_owned(),
            version: None,
            optional: false,
            fallback: None,
            timeout: None,
            location,
            is_required: false,
            is_used: false,
            is_called: false,
        });
        index
    }

    /// Returns the index of a part that exists.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns a part that exists.
    pub(crate) fn named(&self, name: &str) -> Option<&PartDraft> {
        self.list.get(self.find(name)?)
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
