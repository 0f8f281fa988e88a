//! The media fields that an answer can or must contain.

use cog_json::{Path, Segment};
use serde_json::Value;

use super::Placement;
use crate::contract::Contract;
use crate::graph::{Id, WalkFilter};

/// A media field that the schema defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSlot {
    /// Its path, from `data`; for a list, its first item.
    pub path: Path,
    /// Whether every answer must contain it.
    pub is_required: bool,
    /// The requested types that it accepts.
    pub types: Vec<&'static str>,
}

impl Contract {
    /// Returns the media fields that the schema defines, along objects and the first items of lists, with the types that
    /// each accepts in this form.
    pub fn named_media_outputs(&self, types: &[&'static str], form: &str) -> Vec<NamedSlot> {
        let mut found = Vec::new();
        if let Some(part) = &self.data {
            let mut path = Path::root();
            path.push_key("data");
            let slots = NamedSlots { contract: self, types, form };
            slots.value(&[part.id], true, &mut path, &mut Vec::new(), &mut found);
        }
        found
    }
}

struct NamedSlots<'a> {
    contract: &'a Contract,
    types: &'a [&'static str],
    form: &'a str,
}

impl NamedSlots<'_> {
    fn value(
        &self,
        ids: &[Id],
        is_required: bool,
        path: &mut Path,
        within: &mut Vec<Id>,
        found: &mut Vec<NamedSlot>,
    ) {
        let graph = &self.contract.graph;
        let schemas = graph.all_possible(ids);
        let has_no_media = !schemas.iter().any(|id| graph.sees(*id, WalkFilter::OUTPUT));
        if has_no_media || schemas.iter().any(|id| within.contains(id)) || found.len() >= MAX_FIELDS {
            return;
        }
        if schemas.iter().any(|id| graph.get(*id).is_output) {
            let is_accepted =
                |media_type: &&&str| self.contract.takes(&schemas, Placement { media_type, form: self.form });
            let types = self.types.iter().filter(is_accepted).copied().collect();
            return found.push(NamedSlot { path: path.clone(), is_required, types });
        }
        let before = within.len();
        within.extend(&schemas);
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in schemas.iter().flat_map(|id| graph.get(*id).properties()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let is_required = is_required && ids.iter().any(|id| self.contract.requires(*id, name));
            path.push_key(name);
            self.value(&graph.inside(&schemas, Segment::Key(name)), is_required, path, within, found);
            path.pop();
        }
        let is_required = is_required && schemas.iter().any(|id| self.requires_items(*id));
        path.push_index(0);
        self.value(&graph.inside(&schemas, Segment::Index(0)), is_required, path, within, found);
        path.pop();
        within.truncate(before);
    }

    fn requires_items(&self, id: Id) -> bool {
        let min = self.contract.keyword(self.contract.graph.get(id), "minItems").and_then(Value::as_u64);
        min.is_some_and(|min| min > 0)
    }
}

/// The maximum number of fields that are returned.
const MAX_FIELDS: usize = 64;
