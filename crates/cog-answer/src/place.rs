//! Places in an answer, as the envelope names them.

use cog_json::{Node, Path, Segment};

/// The path of `data`.
pub(crate) fn data() -> Path {
    let mut path = Path::root();
    path.push_key("data");
    path
}

/// The path from the envelope of a place in data that stand alone.
pub(crate) fn below_data(path: &Path) -> Path {
    let mut whole = data();
    whole.extend(path.segments());
    whole
}

/// What stands at a place of the envelope, seen from the part that its first step names.
pub(crate) fn resolve<'a>(part: Node<'a>, path: &Path) -> Option<Node<'a>> {
    resolve_below(part, path, 1)
}

/// What stands at a place of the envelope, seen from the value that its first `depth` steps lead to.
pub(crate) fn resolve_below<'a>(value: Node<'a>, path: &Path, depth: usize) -> Option<Node<'a>> {
    path.segments().skip(depth).try_fold(value, |node, step| match step {
        Segment::Key(key) => node.get(key),
        Segment::Index(index) => node.at(index),
    })
}

/// Does something with each member or element of a value, and the path to it.
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
