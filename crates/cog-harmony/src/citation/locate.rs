//! Where a document has its citations: in `metadata`, in a `context_block`, or beside the text (appendix A.4).

use cog_json::{Node, Path};

use super::path::below;

/// The member of a document that contains the citations.
pub const MAP: &str = "citation_map";

/// Members that may contain a map.
const BLOCKS: [&str; 2] = ["metadata", "context_block"];

/// A text with the map that its anchors refer to.
pub(super) struct Scope<'a> {
    /// The value whose strings may have anchors.
    pub(super) text: Node<'a>,
    pub(super) path: Path,
    /// None if there is no map.
    pub(super) map: Option<Node<'a>>,
    pub(super) map_path: Path,
}

/// Returns the texts of a document: each message of a list, the data of an envelope, otherwise the document itself.
pub(super) fn scopes(document: Node<'_>) -> Vec<Scope<'_>> {
    if document.is_array() {
        let each = document.elements().enumerate().map(|(index, message)| {
            let mut path = Path::root();
            path.push_index(index);
            scope(message, path)
        });
        return each.collect();
    }
    let is_envelope = document.get("ok").and_then(Node::as_bool).is_some();
    match document.get("data").filter(|_| is_envelope) {
        Some(data) => vec![scope(data, below(&Path::root(), "data"))],
        None => vec![scope(document, Path::root())],
    }
}

/// Returns the data of a run, if they have a map.
pub(super) fn from_data(data: Node<'_>) -> Option<Scope<'_>> {
    let has_map = |place: Node<'_>| place.get(MAP).is_some();
    let is_cited = has_map(data) || BLOCKS.into_iter().filter_map(|block| data.get(block)).any(has_map);
    is_cited.then(|| scope(data, below(&Path::root(), "data")))
}

fn scope(text: Node<'_>, path: Path) -> Scope<'_> {
    let blocks = BLOCKS.into_iter().filter_map(|block| Some((text.get(block)?, below(&path, block))));
    let places = std::iter::once((text, path.clone())).chain(blocks);
    let found = places.into_iter().find_map(|(place, path)| Some((place.get(MAP)?, below(&path, MAP))));
    let (map, map_path) = found.map_or_else(|| (None, below(&path, MAP)), |(map, path)| (Some(map), path));
    Scope { text, path, map, map_path }
}
