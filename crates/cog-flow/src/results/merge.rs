//! Merges values: objects member by member, at any depth; of other values, the later one wins.

use cog_json::{Node, Value, Writer};

use super::written::written;

/// Returns the merged value; an empty object without values.
pub(super) fn merge(values: &[Value]) -> Value {
    let nodes: Vec<Node<'_>> = values.iter().map(Value::node).collect();
    written(|w| if nodes.is_empty() { w.object(|_| {}) } else { write_merged(&nodes, w) })
}

/// Writes values merged. The recursion is as deep as the values, whose nesting is limited.
fn write_merged(nodes: &[Node<'_>], w: &mut Writer<'_>) {
    // Objects before a value of another type are replaced by it.
    let start = nodes.iter().rposition(|node| !node.is_object());
    match nodes.get(start.map_or(0, |start| start + 1)..) {
        Some([]) | None => {
            if let Some(last) = nodes.last() {
                w.node(*last);
            }
        }
        Some(objects) => w.object(|w| write_members(objects, w)),
    }
}

fn write_members(objects: &[Node<'_>], w: &mut Writer<'_>) {
    for (index, object) in objects.iter().enumerate() {
        let (before, from) = objects.split_at(index);
        for (key, _) in object.members().filter(|(key, _)| before.iter().all(|node| node.get(key).is_none()))
        {
            let values: Vec<Node<'_>> = from.iter().filter_map(|node| node.get(key)).collect();
            write_merged(&values, w.key(key));
        }
    }
}
