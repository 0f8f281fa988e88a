//! Which types contain which: a value must not contain itself, except behind a `Box` in Rust and a pointer in Go.

use std::collections::{HashMap, HashSet};

use super::model::{Definition, Type};

/// The references between definitions.
#[derive(Default)]
pub(super) struct Graph {
    /// Those that need the size of the other.
    direct: HashMap<String, Vec<String>>,
    /// All references of definitions that are only another name for a type.
    aliases: HashMap<String, Vec<String>>,
    /// The number of required fields of each object.
    required: HashMap<String, usize>,
}

impl Graph {
    pub(super) fn new(definitions: &[Definition]) -> Self {
        let mut graph = Self::default();
        for Definition { name, kind, .. } in definitions {
            graph.direct.insert(name.clone(), references(kind, false));
            match kind {
                Type::Object(object) => {
                    graph.required.insert(name.clone(), object.required.len());
                }
                Type::Union(_) | Type::Literal(_) => {}
                other => {
                    graph.aliases.insert(name.clone(), references(other, true));
                }
            }
        }
        graph
    }

    /// Whether a value of `outer` would contain itself through an object of `inner`. Every cycle has an object.
    pub(super) fn contains_itself(&self, outer: &str, inner: &str) -> bool {
        self.required.contains_key(inner) && reaches(&self.direct, inner, outer)
    }

    /// Whether a name is defined by itself.
    pub(super) fn is_cyclic(&self, name: &str) -> bool {
        self.aliases.get(name).into_iter().flatten().any(|next| reaches(&self.aliases, next, name))
    }

    /// Returns how many fields every value of a type has.
    pub(super) fn required_fields(&self, kind: &Type) -> usize {
        let Type::Reference(name) = kind else { return 0 };
        self.required.get(name).copied().unwrap_or_default()
    }
}

fn reaches(edges: &HashMap<String, Vec<String>>, from: &str, to: &str) -> bool {
    let mut open = vec![from];
    let mut seen = HashSet::new();
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            open.extend(edges.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// Returns the names that a type uses; with `in_lists` also in items and values.
fn references(kind: &Type, in_lists: bool) -> Vec<String> {
    match kind {
        Type::Reference(name) => vec![name.clone()],
        Type::List(items) | Type::Map(items) if in_lists => references(items, in_lists),
        Type::Tuple(kinds) | Type::Union(kinds) => {
            kinds.iter().flat_map(|kind| references(kind, in_lists)).collect()
        }
        Type::Object(object) => {
            object.fields.iter().flat_map(|field| references(&field.kind, in_lists)).collect()
        }
        _ => Vec::new(),
    }
}
