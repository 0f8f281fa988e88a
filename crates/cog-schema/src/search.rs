//! Finds the errors of a value, one per location.
//!
//! For alternatives, the engine lists the errors of each, and for nested alternatives again the errors of each. With
//! recursive schemas (`anyOf` of the nodes of a tree) that list doubles with every level of the value. The search visits
//! each pair of schema and value once and shares its list. The engine checks the own keywords of a schema.
//! The search follows its references to other schemas along the graph.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cog_json::{Node, NodeId, Segment};

use crate::contract::Contract;
use crate::engine::{EngineError, MAX_VIOLATIONS, Reason};
use crate::graph::{Id, SchemaNode};
use crate::subschema::token;

impl Contract {
    /// Returns whether a value is valid for a schema of the document.
    pub(crate) fn accepts(&self, id: Id, node: Node<'_>) -> bool {
        if self.graph.is_wide { Search::new(self).fits(id, node) } else { self.accepts_unshared(id, node) }
    }

    /// Returns the errors of a value for a schema of the document.
    pub(crate) fn errors(&self, id: Id, node: Node<'_>) -> Vec<EngineError> {
        if self.accepts(id, node) { Vec::new() } else { Search::new(self).list(id, node).to_vec() }
    }
}

/// A search in one value.
pub(crate) struct Search<'c> {
    contract: &'c Contract,
    verdicts: Cache<bool>,
    lists: Cache<Arc<[EngineError]>>,
}

/// Cached results by schema and value.
type Cache<T> = RefCell<HashMap<(Id, NodeId), T>>;

/// Receives a step into a value, the schema that applies there, and the inner value. Returns whether to continue.
type Act<'a, 'n> = &'a mut dyn FnMut(Segment<'_>, Id, Node<'n>) -> bool;

impl<'c> Search<'c> {
    pub(crate) fn new(contract: &'c Contract) -> Self {
        Self { contract, verdicts: RefCell::default(), lists: RefCell::default() }
    }

    /// Returns whether a value is valid.
    pub(crate) fn fits(&self, id: Id, node: Node<'_>) -> bool {
        let key = (id, node.id());
        let is_container = node.is_object() || node.is_array();
        // Judging a scalar is faster than looking it up, and the cache would be as large as the value.
        if !is_container {
            let is_wide = self.contract.graph.is_wide;
            return if is_wide { self.judge(id, node) } else { self.contract.accepts_unshared(id, node) };
        }
        if let Some(known) = self.verdicts.borrow().get(&key) {
            return *known;
        }
        let verdict = self.judge(id, node);
        self.verdicts.borrow_mut().insert(key, verdict);
        verdict
    }

    /// Returns the first [`MAX_VIOLATIONS`] errors, with paths from the value; empty only if the value is valid.
    pub(crate) fn list(&self, id: Id, node: Node<'_>) -> Arc<[EngineError]> {
        if self.fits(id, node) {
            return Arc::default();
        }
        let key = (id, node.id());
        if let Some(known) = self.lists.borrow().get(&key) {
            return Arc::clone(known);
        }
        let list: Arc<[EngineError]> = self.collect(id, node).into();
        self.lists.borrow_mut().insert(key, Arc::clone(&list));
        list
    }

    fn judge(&self, id: Id, node: Node<'_>) -> bool {
        let shape = self.contract.graph.get(id);
        let fits = |id: Id| self.fits(id, node);
        let links = &shape.links;
        // The own keywords can cost more than the items: `uniqueItems` visits all of them.
        each_inside(shape, node, &mut |_, id, inner| self.fits(id, inner))
            && self.contract.own_check(id).is_some_and(|check| check.accepts(node))
            && links.all.iter().copied().all(fits)
            && (links.any.is_empty() || links.any.iter().copied().any(fits))
            && (links.one.is_empty() || links.one.iter().filter(|id| fits(**id)).count() == 1)
            && !links.not.is_some_and(fits)
            && self.contains(shape, node)
            && self.conditional(shape, node).into_iter().all(fits)
    }

    /// The stack contains frames of this function and of its callees for each level of a value and each schema there,
    /// so they must be small.
    fn collect(&self, id: Id, node: Node<'_>) -> Vec<EngineError> {
        let shape = self.contract.graph.get(id);
        let mut found = self.errors_inside(shape, node);
        // An array of wrong items has enough errors. An object goes on: its own errors are listed first.
        if node.is_array() && found.len() >= MAX_VIOLATIONS {
            return first(found);
        }
        let unexpected = self.add_own(id, shape, node, &mut found);
        for id in shape.links.all.iter().copied().chain(self.conditional(shape, node)) {
            add_unlisted(&mut found, &self.list(id, node));
        }
        self.collect_branches(shape, node, &mut found);
        found.extend(unexpected);
        first(found)
    }

    fn errors_inside(&self, shape: &SchemaNode, node: Node<'_>) -> Vec<EngineError> {
        let mut found = Vec::new();
        each_inside(shape, node, &mut |step, id, inner| {
            let list = self.list(id, inner);
            found.extend(list.iter().map(|error| error.below(&pointer(step))));
            found.len() < MAX_VIOLATIONS
        });
        found
    }

    /// Inserts the errors of the own keywords before `found`. Returns unexpected members, which are listed last.
    fn add_own(
        &self,
        id: Id,
        shape: &SchemaNode,
        node: Node<'_>,
        found: &mut Vec<EngineError>,
    ) -> Vec<EngineError> {
        let own = self.own_errors(id, shape, node).into_iter();
        let (unexpected, own): (Vec<_>, Vec<_>) =
            own.partition(|error| matches!(error.reason, Reason::Unexpected(_)));
        found.splice(..0, own);
        unexpected
    }

    fn own_errors(&self, id: Id, shape: &SchemaNode, node: Node<'_>) -> Vec<EngineError> {
        let Some(check) = self.contract.own_check(id) else {
            return vec![error(shape, "", Reason::Other("the schema cannot be checked".to_owned()))];
        };
        let mut errors = check.errors(node);
        errors.iter_mut().for_each(|error| error.schema.insert_str(0, &shape.pointer));
        errors
    }

    fn collect_branches(&self, shape: &SchemaNode, node: Node<'_>, found: &mut Vec<EngineError>) {
        let links = &shape.links;
        for (keyword, branches) in [("anyOf", &links.any), ("oneOf", &links.one)] {
            match branches.iter().filter(|id| self.fits(**id, node)).count() {
                0 if !branches.is_empty() => {
                    let lists = branches.iter().map(|id| self.list(*id, node)).collect();
                    found.push(error(shape, keyword, Reason::NoBranch(lists)));
                }
                2.. if keyword == "oneOf" => found.push(error(shape, keyword, Reason::ManyBranches)),
                _ => {}
            }
        }
        if links.not.is_some_and(|id| self.fits(id, node)) {
            found.push(error(
                shape,
                "not",
                Reason::Other("the value matches the schema in `not`".to_owned()),
            ));
        }
        if !self.contains(shape, node) {
            let reason = "no item of the array matches the schema in `contains`";
            found.push(error(shape, "contains", Reason::Other(reason.to_owned())));
        }
    }

    fn contains(&self, shape: &SchemaNode, node: Node<'_>) -> bool {
        let Some(id) = shape.links.contains.filter(|_| node.is_array()) else { return true };
        node.elements().any(|element| self.fits(id, element))
    }

    /// Returns the schemas that apply conditionally: `then` or `else`, and `dependencies`.
    fn conditional(&self, shape: &SchemaNode, node: Node<'_>) -> Vec<Id> {
        let condition = shape.links.condition.and_then(
            |(condition, then, other)| {
                if self.fits(condition, node) { then } else { other }
            },
        );
        let dependent = shape.links.dependent.iter().filter(|(key, _)| node.get(key).is_some());
        condition.into_iter().chain(dependent.map(|(_, id)| *id)).collect()
    }
}

/// Visits the members and items of a value with each schema that applies to them. Returns whether it visited all.
fn each_inside<'n>(shape: &SchemaNode, node: Node<'n>, act: Act<'_, 'n>) -> bool {
    let mut cursor = 0;
    let mut schemas = Vec::new();
    for (key, member) in node.members() {
        schemas.clear();
        shape.push_member(key, &mut cursor, &mut schemas);
        if !schemas.iter().all(|id| act(Segment::Key(key), *id, member)) {
            return false;
        }
    }
    let mut items = node.elements().enumerate();
    items.all(|(index, item)| shape.item(index).is_none_or(|id| act(Segment::Index(index), id, item)))
}

/// Returns the first [`MAX_VIOLATIONS`] errors.
fn first(mut errors: Vec<EngineError>) -> Vec<EngineError> {
    errors.truncate(MAX_VIOLATIONS);
    errors
}

/// Adds the errors that are not listed yet: two schemas of a value can refer to a third one.
fn add_unlisted(found: &mut Vec<EngineError>, more: &[EngineError]) {
    for error in more {
        let is_listed = found.iter().any(|other| other.at == error.at && other.schema == error.schema);
        if !is_listed && found.len() < MAX_VIOLATIONS {
            found.push(error.clone());
        }
    }
}

fn error(shape: &SchemaNode, keyword: &str, reason: Reason) -> EngineError {
    let schema = format!("{}/{keyword}", shape.pointer);
    EngineError { at: String::new(), keyword: keyword.to_owned(), schema, reason }
}

fn pointer(step: Segment<'_>) -> String {
    match step {
        Segment::Key(key) => format!("/{}", token(key)),
        Segment::Index(index) => format!("/{index}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
