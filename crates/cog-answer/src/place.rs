//! Paths in an answer, from the envelope.

use cog_json::{Node, Path, Segment};

/// Returns the path of `data`.
pub(crate) fn data() -> Path {
    let mut path = Path::root();
    path.push_key("data");
    path
}

/// Converts a path in bare data to a path in the envelope.
pub(crate) fn from_bare(path: &Path) -> Path {
    let mut placed = data();
    placed.extend(path.segments());
    placed
}

/// Returns the value at a path of the envelope. `part` is the member that the first step names.
pub(crate) fn resolve<'a>(part: Node<'a>, path: &Path) -> Option<Node<'a>> {
    resolve_below(part, path, 1)
}

/// Returns the value at a path of the envelope. `value` is the one at the first `depth` steps.
pub(crate) fn resolve_below<'a>(value: Node<'a>, path: &Path, depth: usize) -> Option<Node<'a>> {
    path.segments().skip(depth).try_fold(value, |node, step| match step {
        Segment::Key(key) => node.get(key),
        Segment::Index(index) => node.at(index),
    })
}

/// Calls `act` for each member or element of a value, with its path.
pub(crate) fn each_inside<'a>(node: Node<'a>, path: &mut Path, act: &mut dyn FnMut(Node<'a>, &mut Path)) {
    for (key, member) in node.members() {
        path.push_key(key);
        act(member, path);
        path.pop();
    }
    for (index, element) in node.elements().enumerate() {
        path.push_index(index);
        act(element, path);
        path.pop();
    }
}
