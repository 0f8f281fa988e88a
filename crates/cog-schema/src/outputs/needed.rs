//! Which media an answer must have.

use cog_json::{Path, Segment};
use serde_json::Value;

use super::Placement;
use crate::contract::Contract;
use crate::shape::{Id, WalkFilter};

/// A place for a medium that the schema names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSlot {
    /// The place, from `data`; of a list its first element.
    pub path: Path,
    /// Whether no answer is whole without it.
    pub is_required: bool,
    /// Those of the types asked for that it takes.
    pub types: Vec<&'static str>,
}

impl Contract {
    /// The places for media that the schema names outright, along objects and the beginnings of lists, and which of these
    /// types each takes in this form.
    pub fn named_media_outputs(&self, types: &[&'static str], form: &str) -> Vec<NamedSlot> {
        let mut found = Vec::new();
        if let Some(part) = &self.data {
            let mut path = Path::root();
            path.push_key("data");
            let asked = NamedSlots { contract: self, types, form };
            asked.value(&[part.shape], true, &mut path, &mut Vec::new(), &mut found);
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
        let shapes = &self.contract.shapes;
        let schemas = shapes.all_possible(ids);
        let is_dull = !schemas.iter().any(|id| shapes.sees(*id, WalkFilter::OUTPUT));
        if is_dull || schemas.iter().any(|id| within.contains(id)) || found.len() >= MAX {
            return;
        }
        if schemas.iter().any(|id| shapes.get(*id).is_output) {
            let is_taken =
                |media_type: &&&str| self.contract.takes(&schemas, Placement { media_type, form: self.form });
            let types = self.types.iter().filter(is_taken).copied().collect();
            return found.push(NamedSlot { path: path.clone(), is_required, types });
        }
        let before = within.len();
        within.extend(&schemas);
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in schemas.iter().flat_map(|id| shapes.get(*id).properties()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let is_required = is_required && ids.iter().any(|id| self.contract.requires(*id, name));
            path.push_key(name);
            self.value(&shapes.inside(&schemas, Segment::Key(name)), is_required, path, within, found);
            path.pop();
        }
        let is_required = is_required && schemas.iter().any(|id| self.demands_items(*id));
        path.push_index(0);
        self.value(&shapes.inside(&schemas, Segment::Index(0)), is_required, path, within, found);
        path.pop();
        within.truncate(before);
    }

    fn demands_items(&self, id: Id) -> bool {
        let schema = self.contract.document().pointer(&self.contract.shapes.get(id).pointer);
        schema
            .and_then(|schema| schema.get("minItems"))
            .and_then(Value::as_u64)
            .is_some_and(|least| least > 0)
    }
}

/// More places than these are not named.
const MAX: usize = 64;
