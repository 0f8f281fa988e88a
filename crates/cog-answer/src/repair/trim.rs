//! Removes parts of an answer. The rest stays as it was written.

use std::collections::{BTreeSet, HashSet};

use cog_json::{Node, NodeId, Path, ToJson, Value, Writer};
use cog_schema::Contract;

use crate::place;

/// The nodes to remove.
pub(crate) type Omitted = BTreeSet<NodeId>;

/// Returns a part of a value without the omitted nodes. Copies nothing if there are none.
pub(crate) fn without(whole: &Value, part: Node<'_>, omitted: &Omitted) -> Value {
    if omitted.is_empty() {
        return whole.child(part);
    }
    Value::parse(&Retained { node: part, omitted }.to_json()).unwrap_or_default()
}

/// Returns a part of an envelope (`data`, `meta`, `error`) without the nulls for omitted members.
pub(crate) fn without_added_nulls(whole: &Value, part: Node<'_>, name: &str, contract: &Contract) -> Value {
    let nulls = contract.added_nulls(name, part).into_iter().collect();
    without(whole, part, &located(part, name, &nulls))
}

/// Finds the nodes at these paths of a part of an envelope, in one walk.
pub(crate) fn located(part: Node<'_>, name: &str, paths: &HashSet<Path>) -> Omitted {
    let mut omitted = Omitted::new();
    if !paths.is_empty() {
        let mut path = Path::root();
        path.push_key(name);
        locate(part, &mut path, paths, &mut omitted);
    }
    omitted
}

fn locate(node: Node<'_>, path: &mut Path, paths: &HashSet<Path>, omitted: &mut Omitted) {
    if paths.contains(path) {
        omitted.insert(node.id());
        return;
    }
    place::each_inside(node, path, &mut |node, path| locate(node, path, paths, omitted));
}

struct Retained<'a> {
    node: Node<'a>,
    omitted: &'a Omitted,
}

/// Written by hand: a tree without the omitted values.
impl ToJson for Retained<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let is_retained = |node: Node<'_>| !self.omitted.contains(&node.id());
        let inner = |node| Retained { node, omitted: self.omitted };
        if self.node.is_object() {
            w.object(|w| {
                for (key, node) in self.node.members().filter(|(_, node)| is_retained(*node)) {
                    w.field(key, &inner(node));
                }
            });
        } else if self.node.is_array() {
            w.array(|w| {
                for node in self.node.elements().filter(|node| is_retained(*node)) {
                    w.item(&inner(node));
                }
            });
        } else {
            w.node(self.node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_the_rest_as_written() {
        let value = Value::parse(r#"{"a": 1.50, "b": [1, 2, 3], "c": "x"}"#).unwrap();
        let omitted = [value.get("c").unwrap().id(), value.pointer("/b/1").unwrap().id()].into();
        assert_eq!(without(&value, value.node(), &omitted).to_string(), r#"{"a":1.50,"b":[1,3]}"#);
    }
}
