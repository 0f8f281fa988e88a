use std::collections::HashSet;

use cog_json::{Node, Path, Value};

use crate::contract::Contract;
use crate::shape::{Id, PathStack, SchemaNode, Visit, WalkFilter};

impl Contract {
    /// The nulls in a part of an answer (`data`, `meta`, `error`) that stand for members left out; paths start at
    /// that part.
    ///
    /// OpenAI's strict dialect knows no optional members; a projection reports them as nullable. A null that came
    /// back this way, where the module's schema neither requires the member nor allows null in it, says what
    /// leaving it out would say, and is dropped on reading; that is no repair. NamedSlots in any other dialect a null is
    /// the model's own, and is checked as it stands.
    pub fn added_nulls(&self, part: &str, node: Node<'_>) -> Vec<Path> {
        let root = PathStack::root(part);
        let mut walk = NullWalk { contract: self, paths: Vec::new(), known: HashSet::new() };
        if let Some(part) = self.part(part) {
            self.shapes.walk(&[part.shape], node, &root, &mut walk);
        }
        let told_by_us = part == "data" && !self.facts.names_extensions;
        if told_by_us && node.get("extensions").is_some_and(Node::is_null) {
            walk.paths.push(root.key("extensions").path());
        }
        walk.paths
    }

    fn allows_null(&self, id: Id) -> bool {
        self.accepts(id, Value::null().node())
    }
}

struct NullWalk<'a> {
    contract: &'a Contract,
    paths: Vec<Path>,
    /// The same paths: a value is visited once for each schema that describes it.
    known: HashSet<Path>,
}

impl Visit for NullWalk<'_> {
    fn filter(&self) -> WalkFilter {
        WalkFilter::ALL
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        for (key, _) in node.members().filter(|(_, member)| member.is_null()) {
            let Some(member) = shape.property(key) else { continue };
            let path = stack.key(key).path();
            let is_due = self.contract.requires_here(shape, key) || self.contract.allows_null(member);
            if !is_due && self.known.insert(path.clone()) {
                self.paths.push(path);
            }
        }
    }

    fn unnamed(&mut self, _member: Node<'_>, _trail: &PathStack<'_>) {}
}
