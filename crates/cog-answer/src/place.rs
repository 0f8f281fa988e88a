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
