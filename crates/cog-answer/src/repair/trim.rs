//! An answer without some of its parts: what it leaves out is left out, what it keeps is kept as it was written.

use std::collections::{BTreeSet, HashSet};

use cog_json::{Node, NodeId, Path, ToJson, Value, Writer};
use cog_schema::Contract;

use crate::place;

/// Parts of a tree that are left out.
pub(crate) type Omitted = BTreeSet<NodeId>;

/// A part of a value, without some of its own parts. Nothing is copied where nothing is left out.
pub(crate) fn without(whole: &Value, part: Node<'_>, omitted: &Omitted) -> Value {
    if omitted.is_empty() {
        return whole.child(part);
    }
    Value::parse(&Kept { node: part, omitted }.to_json()).unwrap_or_default()
}

/// A part of an envelope (`data`, `meta`, `error`) without the nulls that stand for members left out.
pub(crate) fn without_added_nulls(whole: &Value, part: Node<'_>, name: &str, contract: &Contract) -> Value {
    let nulls = contract.added_nulls(name, part).into_iter().collect();
    without(whole, part, &located(part, name, &nulls))
}

/// What stands at these places of a part of an envelope. One walk, however many places there are.
pub(crate) fn located(part: Node<'_>, name: &str, places: &HashSet<Path>) -> Omitted {
    let mut omitted = Omitted::new();
    if !places.is_empty() {
        let mut path = Path::root();
        path.push_key(name);
        locate(part, &mut path, places, &mut omitted);
    }
    omitted
}

fn locate(node: Node<'_>, path: &mut Path, places: &HashSet<Path>, omitted: &mut Omitted) {
    if places.contains(path) {
        omitted.insert(node.id());
        return;
    }
    place::each_inside(node, path, &mut |node, path| locate(node, path, places, omitted));
}

struct Kept<'a> {
    node: Node<'a>,
    omitted: &'a Omitted,
}

impl ToJson for Kept<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let kept = |node: Node<'_>| !self.omitted.contains(&node.id());
        let inner = |node| Kept { node, omitted: self.omitted };
        if self.node.is_object() {
            w.object(|w| {
                for (key, node) in self.node.members().filter(|(_, node)| kept(*node)) {
                    w.field(key, &inner(node));
                }
            });
        } else if self.node.is_array() {
            w.array(|w| {
                for node in self.node.elements().filter(|node| kept(*node)) {
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
    fn what_is_kept_is_kept_as_it_was_written() {
        let value = Value::parse(r#"{"a": 1.50, "b": [1, 2, 3], "c": "x"}"#).unwrap();
        let omitted = [value.get("c").unwrap().id(), value.pointer("/b/1").unwrap().id()].into();
        assert_eq!(without(&value, value.node(), &omitted).to_string(), r#"{"a":1.50,"b":[1,3]}"#);
    }
}
