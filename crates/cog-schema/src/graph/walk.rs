//! Walks a value together with the graph.

use cog_json::{Node, Path, Segment};

use super::{Id, Rest, SchemaGraph, SchemaNode, WalkFilter};
use crate::violation::SchemaError;

/// Receives the values of a walk.
pub(crate) trait Visit {
    /// Returns the kinds of values to visit; the rest is skipped.
    fn filter(&self) -> WalkFilter;
    /// Visits a value to which a schema applies or can apply.
    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>);
    /// Visits a member that no schema defines, in an object with defined members.
    fn unnamed(&mut self, _member: Node<'_>, _stack: &PathStack<'_>) {}
}

impl SchemaGraph {
    /// Walks a value and the schemas that apply to it.
    pub(crate) fn walk(&self, ids: &[Id], node: Node<'_>, stack: &PathStack<'_>, visit: &mut impl Visit) {
        match ids {
            [] => {}
            [only] => self.walk_closed(&self.get(*only).possible, node, stack, visit),
            many => self.walk_closed(&self.all_possible(many), node, stack, visit),
        }
    }

    /// Returns the schemas that certainly apply to an inner value, along properties, items, `allOf` and `$ref`.
    pub(crate) fn follow<'s>(&self, root: Id, steps: impl Iterator<Item = Segment<'s>>) -> Vec<Id> {
        steps.fold(vec![root], |ids, step| self.step(&ids, step))
    }

    /// Returns the schemas that can apply to an inner value.
    pub(crate) fn follow_possible<'s>(&self, root: Id, steps: impl Iterator<Item = Segment<'s>>) -> Vec<Id> {
        let start = self.all_possible(&[root]);
        steps.fold(start, |ids, step| self.all_possible(&self.inside(&ids, step)))
    }

    /// Returns whether none of the schemas of an object defines a member, and members that they do not define are
    /// reported. `ids` are all schemas that can apply to the object.
    pub(crate) fn is_unnamed(&self, ids: &[Id], key: &str) -> bool {
        self.inside(ids, Segment::Key(key)).is_empty() && self.reports_unnamed(ids) && !self.require(ids, key)
    }

    /// Returns whether an object has no member of this name: none of its schemas defines it, and they define others.
    pub(crate) fn is_absent(&self, ids: &[Id], key: &str) -> bool {
        let mut schemas = ids.iter().map(|id| self.get(*id));
        self.inside(ids, Segment::Key(key)).is_empty()
            && schemas.clone().any(|schema| schema.names_members() || schema.rest == Rest::Closed)
            && !schemas.any(|schema| matches!(schema.rest, Rest::Like(_)))
            && !self.require(ids, key)
    }

    /// Returns the schemas that certainly apply to an inner value.
    pub(crate) fn step(&self, ids: &[Id], step: Segment<'_>) -> Vec<Id> {
        let certain: Vec<Id> = ids.iter().flat_map(|id| &self.get(*id).certain).copied().collect();
        let mut next = self.inside(&certain, step);
        next.sort_unstable();
        next.dedup();
        next
    }

    /// Walks a value; `ids` are all schemas that can apply.
    fn walk_closed(&self, ids: &[Id], node: Node<'_>, stack: &PathStack<'_>, visit: &mut impl Visit) {
        if !self.meets(ids, visit.filter()) {
            return;
        }
        ids.iter().for_each(|id| visit.value(self.get(*id), node, stack));
        if node.is_object() {
            match ids {
                [only] if self.can_look_up(*only, visit.filter()) => {
                    self.look_up(*only, node, stack, visit);
                }
                _ => self.walk_members(ids, node, stack, visit),
            }
        } else if node.is_array() {
            self.walk_elements(ids, node, stack, visit);
        }
    }

    /// Returns whether a filter selects only properties, so that each can be looked up.
    fn can_look_up(&self, id: Id, filter: WalkFilter) -> bool {
        let shape = self.get(id);
        let skips_rest = match shape.rest {
            Rest::Unspecified => !(filter.meets(WalkFilter::UNNAMED) && shape.names_members()),
            Rest::Like(id) => !self.get(id).filter.meets(filter),
            Rest::Closed => true,
        };
        skips_rest && shape.patterns.is_empty() && filter != WalkFilter::ALL
    }

    fn look_up(&self, id: Id, node: Node<'_>, stack: &PathStack<'_>, visit: &mut impl Visit) {
        for (key, child) in &self.get(id).relevant {
            if let Some(value) = node.get_key(key) {
                self.walk(&[*child], value, &stack.key(key.as_str()), visit);
            }
        }
    }

    fn walk_members(&self, ids: &[Id], node: Node<'_>, stack: &PathStack<'_>, visit: &mut impl Visit) {
        let reports_unnamed = self.reports_unnamed(ids) && visit.filter().meets(WalkFilter::UNNAMED);
        let mut cursor = 0;
        let mut next = Vec::new();
        for (key, value) in node.members() {
            next.clear();
            for id in ids {
                self.get(*id).push_member(key, &mut cursor, &mut next);
            }
            let is_unnamed = next.is_empty() && reports_unnamed && !self.require(ids, key);
            if is_unnamed || self.meets(&next, visit.filter()) {
                let stack = stack.key(key);
                if is_unnamed {
                    visit.unnamed(value, &stack);
                } else {
                    self.walk(&next, value, &stack, visit);
                }
            }
        }
    }

    fn walk_elements(&self, ids: &[Id], node: Node<'_>, stack: &PathStack<'_>, visit: &mut impl Visit) {
        let is_tuple = ids.iter().any(|id| !self.get(*id).items.is_empty());
        let mut next = self.items_at(ids, 0);
        for (index, element) in node.elements().enumerate() {
            if is_tuple {
                next = self.items_at(ids, index);
            }
            if self.meets(&next, visit.filter()) {
                self.walk(&next, element, &stack.index(index), visit);
            } else if !is_tuple {
                // All elements have the same schemas, and these have nothing to visit.
                return;
            }
        }
    }

    fn items_at(&self, ids: &[Id], index: usize) -> Vec<Id> {
        ids.iter().filter_map(|id| self.get(*id).item(index)).collect()
    }

    fn meets(&self, ids: &[Id], filter: WalkFilter) -> bool {
        ids.iter().any(|id| self.get(*id).filter.meets(filter))
    }

    /// Returns whether one of these schemas requires a member that it does not define (ruling R72).
    fn require(&self, ids: &[Id], key: &str) -> bool {
        ids.iter().any(|id| self.get(*id).required.iter().any(|name| **name == *key))
    }

    /// Returns whether undefined members are reported: some members are defined, and no schema has
    /// `additionalProperties`.
    fn reports_unnamed(&self, ids: &[Id]) -> bool {
        ids.iter().any(|id| self.get(*id).names_members())
            && ids.iter().all(|id| self.get(*id).rest == Rest::Unspecified)
    }
}

impl SchemaNode {
    /// Adds the schemas of a member: by name and pattern, otherwise the schema of additional members.
    pub(crate) fn push_member(&self, key: &str, cursor: &mut usize, into: &mut Vec<Id>) {
        // `additionalProperties` applies only to what neither `properties` nor `patternProperties` names.
        let before = into.len();
        into.extend(self.properties.find(key, cursor));
        into.extend(self.patterns.iter().filter(|(pattern, _)| pattern.is_match(key)).map(|(_, id)| *id));
        if into.len() == before
            && let Rest::Like(id) = self.rest
        {
            into.push(id);
        }
    }

    /// Returns whether it allows no member of this name.
    pub(crate) fn forbids(&self, key: &str) -> bool {
        let mut schemas = Vec::new();
        if self.rest == Rest::Closed {
            self.push_member(key, &mut 0, &mut schemas);
        }
        self.rest == Rest::Closed && schemas.is_empty()
    }

    /// Returns the schema of an item.
    pub(crate) fn item(&self, index: usize) -> Option<Id> {
        self.items.get(index).copied().or(self.further_items)
    }
}

/// The path of a value as a linked list, so that a [`Path`] is built only if it is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathStack<'a> {
    outer: Option<&'a PathStack<'a>>,
    step: Segment<'a>,
}

impl<'a> PathStack<'a> {
    /// Returns the path of a part of the envelope.
    pub(crate) const fn root(part: &'a str) -> Self {
        Self { outer: None, step: Segment::Key(part) }
    }

    /// Returns the path of a member.
    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { outer: Some(self), step: Segment::Key(key) }
    }

    /// Returns the path of an element.
    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self { outer: Some(self), step: Segment::Index(index) }
    }

    /// Returns the complete path.
    pub(crate) fn path(&self) -> Path {
        let mut path = self.outer.map_or_else(Path::root, PathStack::path);
        path.extend([self.step]);
        path
    }
}

// Measures how many schemas a check of a value visits.

/// The maximum number of paths through a document that the engine checks. It visits a schema once per path: twenty levels
/// with two references to the next level are a million paths.
const MAX_PATHS: u64 = 4_096;

/// The maximum nesting of schemas for one value in recursive documents: a value can have 128 levels, and a check goes this
/// deep at each of them.
const MAX_NESTING: u32 = 16;

/// The measurements of each schema.
struct WidthMeasure {
    /// The number of paths through it; 0 while it is being visited.
    paths: Vec<Option<u64>>,
    /// The nesting of schemas for the same value.
    levels: Vec<u32>,
    /// Whether any schema is recursive.
    is_recursive: bool,
}

impl SchemaGraph {
    /// Returns whether very many paths lead through the schemas. Recursive schemas count up to the recursion.
    ///
    /// # Errors
    /// If a check could overflow its stack.
    pub(super) fn measure(&self) -> Result<bool, SchemaError> {
        let count = self.nodes.len();
        let mut measure =
            WidthMeasure { paths: vec![None; count], levels: vec![0; count], is_recursive: false };
        (0..count).for_each(|number| self.measure_from(Id(number as u32), &mut measure));
        let deepest = measure.levels.iter().zip(&self.nodes).max_by_key(|(levels, _)| **levels);
        match deepest.filter(|(levels, _)| measure.is_recursive && **levels > MAX_NESTING) {
            Some((levels, shape)) => Err(too_deep(*levels, &shape.pointer)),
            None => Ok(measure.paths.into_iter().flatten().any(|paths| paths > MAX_PATHS)),
        }
    }

    /// Measures depth first with an explicit stack. A schema is on it twice: before and after the schemas that it leads to.
    fn measure_from(&self, start: Id, measure: &mut WidthMeasure) {
        let mut open = vec![(start, false)];
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                measure.close(id, self.leads_to(id), self.in_place(id));
                continue;
            }
            match measure.paths.get_mut(id.index()) {
                Some(paths @ None) => {
                    *paths = Some(0);
                    open.push((id, true));
                    open.extend(self.leads_to(id).map(|inner| (inner, false)));
                }
                Some(Some(0)) => measure.is_recursive = true,
                _ => {}
            }
        }
    }

    /// Returns the schemas that a schema applies to any value.
    fn leads_to(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        self.below(id).chain(links.not).chain(links.contains)
    }

    /// Returns the schemas that a schema applies to the same value.
    fn in_place(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        links.all.iter().copied().chain(links.branches()).chain(links.not)
    }
}

impl WidthMeasure {
    /// Completes a schema after all schemas that it leads to.
    fn close(&mut self, id: Id, inner: impl Iterator<Item = Id>, in_place: impl Iterator<Item = Id>) {
        let paths = inner.filter_map(|inner| self.paths.get(inner.index()).copied().flatten());
        let paths = paths.fold(1_u64, u64::saturating_add);
        let levels = in_place.filter_map(|inner| self.levels.get(inner.index())).max();
        let levels = levels.map_or(0, |levels| levels + 1);
        self.paths.get_mut(id.index()).into_iter().for_each(|known| *known = Some(paths));
        self.levels.get_mut(id.index()).into_iter().for_each(|known| *known = levels);
    }
}

fn too_deep(levels: u32, pointer: &str) -> SchemaError {
    let message =
        format!("recursive schemas apply {levels} nested schemas to one value; the maximum is {MAX_NESTING}");
    SchemaError::new(pointer, message).suggest("Shorten the chain of `allOf`, `anyOf` and `oneOf`.")
}
