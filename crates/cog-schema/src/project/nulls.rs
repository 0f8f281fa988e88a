use std::collections::HashSet;

use cog_json::{Node, Path, Value};

use crate::context_pointer::context_pointer;
use crate::contract::Contract;
use crate::graph::{Id, PathStack, SchemaNode, Visit, WalkFilter};

impl Contract {
    /// Returns the nulls in a part of an answer (`data`, `meta`, `error`), or in an `input`, that mean an absent member.
    /// Paths start at that part.
    ///
    /// OpenAI's strict dialect has no optional members, and Anthropic's a limited number, so projections make them nullable.
    /// If the module's schema neither requires a member nor allows null, its null is removed on reading, which is not a
    /// repair. In other dialects nulls are not removed.
    pub fn added_nulls(&self, part: &str, node: Node<'_>) -> Vec<Path> {
        let schema = if part == "input" { self.input.as_ref() } else { self.part(part) };
        let mut paths = self.nulls_at(schema.map(|part| part.id), part, node);
        let is_added = part == "data" && !self.facts.names_extensions;
        if is_added && node.get("extensions").is_some_and(Node::is_null) {
            paths.push(PathStack::root(part).key("extensions").path());
        }
        paths
    }

    /// Returns the nulls in a context of this type that an answer emits, as [`Contract::added_nulls`]. Paths start at the
    /// type.
    pub fn added_nulls_of_emitted(&self, name: &str, node: Node<'_>) -> Vec<Path> {
        self.nulls_at(self.graph.at(&context_pointer("emits", name)), name, node)
    }

    fn nulls_at(&self, schema: Option<Id>, root: &str, node: Node<'_>) -> Vec<Path> {
        let mut walk = NullWalk { contract: self, paths: Vec::new(), known: HashSet::new() };
        if let Some(id) = schema {
            self.graph.walk(&[id], node, &PathStack::root(root), &mut walk);
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
    /// The same paths as a set, because a value is visited once for each schema that applies.
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
            let is_meant = self.contract.requires_here(shape, key) || self.contract.allows_null(member);
            if !is_meant && self.known.insert(path.clone()) {
                self.paths.push(path);
            }
        }
    }
}
