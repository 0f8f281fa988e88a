//! Finds the locations of values of a manifest, and of parts of their texts.

use std::ops::Range;

use crate::{
    Diagnostic,
    source::Source,
    yaml::{Content, Node},
};

/// Adds the location of a part of a text of the manifest to a diagnostic.
pub(crate) fn in_text(
    found: Diagnostic,
    source: &Source,
    root: &Node,
    pointer: &str,
    within: Range<usize>,
) -> Diagnostic {
    let Some((node, is_exact)) = descend(root, pointer) else { return found };
    let range = Some(within).filter(|_| is_exact).and_then(|within| range_in(source, node, within));
    found.at(source, range.unwrap_or_else(|| node.written.clone()))
}

/// Returns the value at a pointer, or its nearest parent, and whether it is the value itself.
pub(crate) fn descend<'n>(root: &'n Node, pointer: &str) -> Option<(&'n Node, bool)> {
    let mut node = root;
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        let next = match &node.content {
            Content::List(items) => key.parse().ok().and_then(|index: usize| items.get(index)),
            Content::Map(_) => node.get(&key),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return Some((node, false)),
        }
    }
    Some((node, true))
}

/// Returns the range of a part of a string in the file; none if the string is written with escapes or over several
/// lines.
pub(crate) fn range_in(source: &Source, node: &Node, within: Range<usize>) -> Option<Range<usize>> {
    let Content::Text(text) = &node.content else { return None };
    let written = source.text.get(node.written.start..)?;
    let quote = usize::from(written.starts_with(['"', '\'']));
    written.get(quote..)?.starts_with(text.as_str()).then_some(())?;
    let start = node.written.start + quote;
    Some(start + within.start..start + within.end)
}
