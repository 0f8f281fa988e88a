//! What of a value does not fit a schema, place by place.
//!
//! NamedSlots for that, the engine reports for alternatives what each has against the value, and for alternatives in them
//! again what each has: where schemas lead to themselves (`anyOf` of the nodes of a tree) that is a list which doubles
//! with every level of the value. Here each pair of schema and value is looked at once and its list is shared. What a
//! schema says of a value by itself is the engine's to judge ([`own`]); what it says by means of other schemas is
//! followed along the graph.

mod own;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cog_json::{Node, NodeId, Segment};

use crate::contract::Contract;
use crate::engine::{EngineError, MAX_VIOLATIONS, Reason};
use crate::shape::{Id, SchemaNode};
use crate::subschema::token;

pub(crate) use self::own::own;

/// One search in one value.
pub(crate) struct Search<'c> {
    contract: &'c Contract,
    verdicts: Known<bool>,
    lists: Known<Arc<[EngineError]>>,
}

/// What is known already of schemas and values.
type Known<T> = RefCell<HashMap<(Id, NodeId), T>>;

/// Receives a step into a value, the schema that applies there, and the value there; says whether to go on.
type Act<'a, 'n> = &'a mut dyn FnMut(Segment<'_>, Id, Node<'n>) -> bool;

impl<'c> Search<'c> {
    pub(crate) fn new(contract: &'c Contract) -> Self {
        Self { contract, verdicts: RefCell::default(), lists: RefCell::default() }
    }

    /// Whether a value fits.
    pub(crate) fn fits(&self, id: Id, node: Node<'_>) -> bool {
        let key = (id, node.id());
        let is_container = node.is_object() || node.is_array();
        if !is_container {
            let is_wide = self.contract.shapes.is_wide;
            return if is_wide { self.judge(id, node) } else { self.contract.accepts_unshared(id, node) };
        }
        if let Some(known) = self.verdicts.borrow().get(&key) {
            return *known;
        }
        let verdict = self.judge(id, node);
        self.verdicts.borrow_mut().insert(key, verdict);
        verdict
    }

    /// What does not fit, with places from the value; the first [`MAX_VIOLATIONS`]. Empty only where the value fits.
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
        let (shape, fits) = (self.contract.shapes.get(id), |id: Id| self.fits(id, node));
        let links = &shape.links;
        // What the value itself demands may cost more than its items: `uniqueItems` visited at all of them.
        each_inside(shape, node, &mut |_, id, inner| self.fits(id, inner))
            && self.contract.own_check(id).is_some_and(|check| check.accepts(node))
            && links.all.iter().copied().all(fits)
            && (links.any.is_empty() || links.any.iter().copied().any(fits))
            && (links.one.is_empty() || links.one.iter().filter(|id| fits(**id)).count() == 1)
            && !links.not.is_some_and(fits)
            && self.contains(shape, node)
            && self.conditional(shape, node).into_iter().all(fits)
    }

    /// The frames of this function and of those that it calls may be on the stack for each level of a value and for
    /// each schema in place there: none of them holds much.
    fn collect(&self, id: Id, node: Node<'_>) -> Vec<EngineError> {
        let shape = self.contract.shapes.get(id);
        let mut found = self.errors_inside(shape, node);
        if node.is_array() && found.len() >= MAX_VIOLATIONS {
            return first(found);
        }
        let unexpected = self.add_own(id, shape, node, &mut found);
        for id in shape.links.all.iter().copied().chain(self.conditional(shape, node)) {
            add_unreported(&mut found, &self.list(id, node));
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

    /// Puts what the value itself has against it before `found`; returns the members that may not be there, which are
    /// reported last.
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
            let words = "no item of the array matches the schema in `contains`";
            found.push(error(shape, "contains", Reason::Other(words.to_owned())));
        }
    }

    fn contains(&self, shape: &SchemaNode, node: Node<'_>) -> bool {
        let Some(id) = shape.links.contains.filter(|_| node.is_array()) else { return true };
        node.elements().any(|element| self.fits(id, element))
    }

    /// The schemas that apply because of what the value is: `then` or `else`, and `dependencies`.
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

/// Goes through the members and items of a value, each with the schemas that apply to it. Whether it got to the end.
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

/// The first [`MAX_VIOLATIONS`].
fn first(mut errors: Vec<EngineError>) -> Vec<EngineError> {
    errors.truncate(MAX_VIOLATIONS);
    errors
}

/// Adds what is not reported already: two schemas of a value may lead to the same third.
fn add_unreported(found: &mut Vec<EngineError>, more: &[EngineError]) {
    for error in more {
        let is_told = found.iter().any(|other| other.at == error.at && other.schema == error.schema);
        if !is_told && found.len() < MAX_VIOLATIONS {
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
