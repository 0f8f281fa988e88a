//! Walks a value together with the graph.

use cog_json::{Node, Path, Segment};

use super::{Id, Rest, SchemaGraph, SchemaNode, WalkFilter};

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
        let is_open = |id: &Id| matches!(self.get(*id).rest, Rest::Like(_));
        let defines = |id: &Id| self.get(*id).names_members() || self.get(*id).rest == Rest::Closed;
        self.inside(ids, Segment::Key(key)).is_empty()
            && ids.iter().any(defines)
            && !ids.iter().any(is_open)
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
    /// Adds the schemas of a member: by name and pattern, otherwise that of additional members.
    pub(crate) fn push_member(&self, key: &str, cursor: &mut usize, into: &mut Vec<Id>) {
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
