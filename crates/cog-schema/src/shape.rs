//! The schemas of a document as a graph that can be walked beside a value.
//!
//! The engine says whether a value fits. What it does not say is which members a schema names (ruling R8),
//! where an extensible enum or a media input stands (R14, R22), and which schemas a place further in must meet
//! (R48). The graph does. A reference is no schema of its own here: whoever refers to a schema has it.

mod build;
mod fast_path;
mod links;
mod names;
mod path_stack;
mod walk;
mod width;

use std::collections::HashMap;

use cog_json::{Key, Segment};

use crate::engine::Pattern;

use self::fast_path::FastPath;
use self::links::Links;
use self::names::Names;

pub(crate) use self::build::is_output;
pub(crate) use self::path_stack::PathStack;
pub(crate) use self::walk::Visit;

/// One schema of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(u32);

/// All schemas that a document reaches.
#[derive(Debug)]
pub(crate) struct SchemaGraph {
    shapes: Vec<SchemaNode>,
    by_pointer: HashMap<String, Id>,
    /// There are very many ways through them.
    pub(crate) is_wide: bool,
}

/// What a schema says about the structure of a value.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    /// Where the schema stands in the document.
    pub(crate) pointer: String,
    /// It is the pattern of an extensible enum (ruling R22).
    pub(crate) is_word: bool,
    /// It is the runtime's definition of a media input.
    pub(crate) is_media: bool,
    /// It describes a medium that an answer holds.
    pub(crate) is_output: bool,
    properties: Names,
    /// The named members at or below which there is something of filter.
    relevant: Vec<(Key, Id)>,
    patterns: Vec<(Pattern, Id)>,
    rest: Rest,
    items: Vec<Id>,
    further_items: Option<Id>,
    /// What it says by means of other schemas.
    pub(crate) links: Links,
    /// The schema itself and all that applies for certain.
    certain: Vec<Id>,
    /// The schema itself and all that may apply.
    possible: Vec<Id>,
    /// What it demands, where that is seen at a fast_path.
    plain: Option<FastPath>,
    /// What there is to see here and below.
    filter: WalkFilter,
}

/// What `additionalProperties` says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing.
    #[default]
    Unsaid,
    /// No further members.
    Closed,
    /// Members of this schema.
    Like(Id),
}

/// What a walk visited for; parts of the graph without it are passed over.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkFilter(u8);

impl WalkFilter {
    /// Objects that may have members the schema does not name.
    pub(crate) const UNNAMED: WalkFilter = WalkFilter(1);
    /// Extensible enums.
    pub(crate) const WORD: WalkFilter = WalkFilter(2);
    /// Media inputs.
    pub(crate) const MEDIA: WalkFilter = WalkFilter(4);
    /// Media of an answer.
    pub(crate) const OUTPUT: WalkFilter = WalkFilter(8);

    /// Everything: nothing is passed over.
    pub(crate) const ALL: WalkFilter = WalkFilter(u8::MAX);

    pub(crate) const fn with(self, other: WalkFilter) -> WalkFilter {
        WalkFilter(self.0 | other.0)
    }

    const fn meets(self, other: WalkFilter) -> bool {
        self.0 & other.0 != 0 || other.0 == WalkFilter::ALL.0
    }
}

impl SchemaGraph {
    /// The schema at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> Option<Id> {
        self.by_pointer.get(pointer).copied()
    }

    /// The schemas that apply to a value for certain when this one does.
    pub(crate) fn certain(&self, id: Id) -> impl Iterator<Item = &SchemaNode> {
        self.get(id).certain.iter().map(|id| self.get(*id))
    }

    /// The schemas that may apply to a value when this one does.
    pub(crate) fn possible(&self, id: Id) -> impl Iterator<Item = &SchemaNode> {
        self.get(id).possible.iter().map(|id| self.get(*id))
    }

    /// The schemas that may apply to a member which is named outright.
    pub(crate) fn members(&self, id: Id, key: &str) -> Vec<Id> {
        self.possible(id).filter_map(|shape| shape.property(key)).collect()
    }

    /// The schemas that may apply to a value when any of these does.
    pub(crate) fn all_possible(&self, ids: &[Id]) -> Vec<Id> {
        let mut possible = Vec::new();
        for id in ids.iter().flat_map(|id| &self.get(*id).possible) {
            if !possible.contains(id) {
                possible.push(*id);
            }
        }
        possible
    }

    /// The schemas of what stands inside a value that these apply to.
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

    /// Whether there is anything of filter at a schema or below it.
    pub(crate) fn sees(&self, id: Id, filter: WalkFilter) -> bool {
        self.get(id).filter.meets(filter)
    }

    /// All schemas.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SchemaNode> {
        self.shapes.iter()
    }

    /// How many schemas there are; ids count up to here.
    pub(crate) fn len(&self) -> usize {
        self.shapes.len()
    }

    #[expect(clippy::indexing_slicing, reason = "an Id is made only by the graph that it indexes")]
    pub(crate) fn get(&self, id: Id) -> &SchemaNode {
        &self.shapes[id.index()]
    }
}

impl SchemaNode {
    /// The members that the schema names, in its order, with their schemas.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&str, Id)> {
        self.properties.iter()
    }

    /// The schema of a member that is named outright.
    pub(crate) fn property(&self, key: &str) -> Option<Id> {
        self.properties.find(key, &mut 0)
    }

    /// The schema of the items of a list.
    pub(crate) fn list_items(&self) -> Option<Id> {
        self.further_items
    }

    /// Whether it takes no members but those that it names.
    pub(crate) fn is_closed(&self) -> bool {
        self.rest == Rest::Closed && self.patterns.is_empty()
    }

    /// Whether it names any member at all; one that does not leaves the object open.
    fn names_members(&self) -> bool {
        !self.properties.is_empty() || !self.patterns.is_empty()
    }
}

impl Id {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}
