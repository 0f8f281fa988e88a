//! The schemas of a document as a graph that is walked together with a value.
//!
//! The engine decides whether a value is valid. The graph answers what the engine does not: which members a schema
//! defines (ruling R8), which values are extensible enums or media (rulings R14, R22), and which schemas apply to an inner
//! value (ruling R48). References are resolved: they are not nodes.

mod build;
mod fast_path;
mod walk;

use std::collections::{HashMap, HashSet};

use cog_json::{Key, Segment};
use serde_json::Value;

use self::{build::Names, fast_path::FastPath};
pub(crate) use self::{
    build::is_output,
    walk::{PathStack, Visit},
};
use crate::{engine::Pattern, subschema::token};

/// All schemas that a document reaches.
#[derive(Debug)]
pub(crate) struct SchemaGraph {
    nodes: Vec<SchemaNode>,
    by_pointer: HashMap<String, Id>,
    /// Whether very many paths lead through the schemas.
    pub(crate) is_wide: bool,
}

/// A schema of the graph: the structure of its values.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    /// Its JSON pointer in the document.
    pub(crate) pointer: String,
    /// Whether it is an extensible enum (ruling R22).
    pub(crate) is_extensible_enum: bool,
    /// Whether it is a media input.
    pub(crate) is_media: bool,
    /// Whether it is a media output.
    pub(crate) is_output: bool,
    properties: Names,
    /// The required members that `properties` does not define (ruling R72).
    required: Vec<Box<str>>,
    /// The properties with values that any filter selects, at any depth.
    relevant: Vec<(Key, Id)>,
    patterns: Vec<(Pattern, Id)>,
    rest: Rest,
    items: Vec<Id>,
    further_items: Option<Id>,
    /// The schemas that it combines.
    pub(crate) links: Links,
    /// The schema itself and all schemas that certainly apply with it.
    certain: Vec<Id>,
    /// The schema itself and all schemas that can apply with it.
    possible: Vec<Id>,
    /// Its requirements, if all are simple.
    fast_path: Option<FastPath>,
    /// The kinds of values in it, at any depth.
    filter: WalkFilter,
}

/// The value of `additionalProperties`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Absent.
    #[default]
    Unspecified,
    /// No additional members.
    Closed,
    /// Members of this schema.
    Like(Id),
}

/// The kinds of values that a walk visits; parts of the graph without them are skipped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkFilter(u8);

impl WalkFilter {
    /// Objects that can have members that the schema does not define.
    pub(crate) const UNNAMED: WalkFilter = WalkFilter(1);
    /// Extensible enums.
    pub(crate) const EXTENSIBLE_ENUM: WalkFilter = WalkFilter(2);
    /// Media inputs.
    pub(crate) const MEDIA: WalkFilter = WalkFilter(4);
    /// Media outputs.
    pub(crate) const OUTPUT: WalkFilter = WalkFilter(8);

    /// All values: nothing is skipped.
    pub(crate) const ALL: WalkFilter = WalkFilter(u8::MAX);

    pub(crate) const fn with(self, other: WalkFilter) -> WalkFilter {
        WalkFilter(self.0 | other.0)
    }

    const fn meets(self, other: WalkFilter) -> bool {
        self.0 & other.0 != 0 || other.0 == WalkFilter::ALL.0
    }
}

impl SchemaGraph {
    /// Returns the schema at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<Id> {
        self.by_pointer.get(pointer).copied()
    }

    /// Returns the schemas that certainly apply to a value if this one does.
    pub(crate) fn certain(&self, id: Id) -> impl Iterator<Item = &SchemaNode> {
        self.get(id).certain.iter().map(|id| self.get(*id))
    }

    /// Returns the schemas that can apply to a value if this one does.
    pub(crate) fn possible(&self, id: Id) -> impl Iterator<Item = &SchemaNode> {
        self.get(id).possible.iter().map(|id| self.get(*id))
    }

    /// Returns the schemas that can apply to a member that is defined by name.
    pub(crate) fn members(&self, id: Id, key: &str) -> Vec<Id> {
        self.possible(id).filter_map(|shape| shape.property(key)).collect()
    }

    /// Returns the schemas that can apply to a value if one of these does.
    pub(crate) fn all_possible(&self, ids: &[Id]) -> Vec<Id> {
        if let [only] = ids {
            return self.get(*only).possible.clone();
        }
        let mut seen = HashSet::new();
        let possible = ids.iter().flat_map(|id| &self.get(*id).possible);
        possible.copied().filter(|id| seen.insert(*id)).collect()
    }

    /// Returns the schemas of an inner value, if these apply to the outer value.
    pub(crate) fn inside(&self, ids: &[Id], step: Segment<'_>) -> Vec<Id> {
        let mut inside = Vec::new();
        for id in ids {
            match step {
                Segment::Key(key) => self.get(*id).push_member(key, &mut 0, &mut inside),
                Segment::Index(index) => inside.extend(self.get(*id).item(index)),
            }
        }
        inside
    }

    /// Returns whether a schema contains values that a filter selects, at any depth.
    pub(crate) fn sees(&self, id: Id, filter: WalkFilter) -> bool {
        self.get(id).filter.meets(filter)
    }

    /// Returns all schemas.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SchemaNode> {
        self.nodes.iter()
    }

    /// Returns the number of schemas; all ids are below it.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[expect(clippy::indexing_slicing, reason = "only the graph creates the ids of its nodes")]
    pub(crate) fn get(&self, id: Id) -> &SchemaNode {
        &self.nodes[id.index()]
    }
}

impl SchemaNode {
    /// Returns the properties with their schemas, in the order of the schema.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&str, Id)> {
        self.properties.iter()
    }

    /// Returns the schema of a property.
    pub(crate) fn property(&self, key: &str) -> Option<Id> {
        self.properties.find(key, &mut 0)
    }

    /// Returns the schema of the items of a list.
    pub(crate) fn list_items(&self) -> Option<Id> {
        self.further_items
    }

    /// Returns whether its items have schemas of their own.
    pub(crate) fn is_tuple(&self) -> bool {
        !self.items.is_empty()
    }

    /// Returns whether it allows only its properties.
    pub(crate) fn is_closed(&self) -> bool {
        self.rest == Rest::Closed && self.patterns.is_empty()
    }

    /// Returns whether it defines any member; otherwise the object is open.
    fn names_members(&self) -> bool {
        !self.properties.is_empty() || !self.patterns.is_empty()
    }
}

/// The keywords that combine schemas, apart from members and items.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// `allOf`.
    pub(crate) all: Vec<Id>,
    /// `anyOf`; empty if absent.
    pub(crate) any: Vec<Id>,
    /// `oneOf`; empty if absent.
    pub(crate) one: Vec<Id>,
    /// `not`.
    pub(crate) not: Option<Id>,
    /// `contains`.
    pub(crate) contains: Option<Id>,
    /// `if`, with `then` and `else`.
    pub(crate) condition: Option<(Id, Option<Id>, Option<Id>)>,
    /// `dependencies` with schemas: a member, and the schema that applies if it is present.
    pub(crate) dependent: Vec<(String, Id)>,
}

impl Links {
    /// Reads the combined schemas; `id` returns the schema at a pointer from this one.
    pub(super) fn read(schema: &Value, id: impl Fn(&str) -> Option<Id>) -> Self {
        let dependencies = schema.get("dependencies").and_then(Value::as_object);
        let dependent = dependencies
            .into_iter()
            .flat_map(|members| members.keys())
            .filter_map(|name| Some((name.clone(), id(&format!("/dependencies/{}", token(name)))?)));
        Self {
            all: listed(schema, "allOf", &id),
            any: listed(schema, "anyOf", &id),
            one: listed(schema, "oneOf", &id),
            not: id("/not"),
            contains: id("/contains"),
            condition: id("/if").map(|condition| (condition, id("/then"), id("/else"))),
            dependent: dependent.collect(),
        }
    }

    /// Returns the schemas that can apply to the same value, except `allOf`.
    pub(super) fn branches(&self) -> impl Iterator<Item = Id> {
        let condition = self
            .condition
            .into_iter()
            .flat_map(|(condition, then, other)| std::iter::once(condition).chain(then).chain(other));
        let listed = self.any.iter().chain(&self.one).copied();
        listed.chain(condition).chain(self.dependent.iter().map(|(_, id)| *id))
    }
}

/// Returns the schemas in the list of a keyword.
fn listed(schema: &Value, keyword: &str, id: impl Fn(&str) -> Option<Id>) -> Vec<Id> {
    let count = schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
    (0..count).filter_map(|index| id(&format!("/{keyword}/{index}"))).collect()
}

/// The index of a schema in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(u32);

impl Id {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests;
