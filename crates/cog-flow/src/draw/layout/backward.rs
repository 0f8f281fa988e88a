//! The edges that do not lead forward: between nodes of a column, or below the drawing, one inside another.

use super::geometry::{LINE, Layout, Rectangle};
use crate::draw::diagram::{Diagram, DiagramEdge};

/// An edge that does not lead forward.
pub(in crate::draw) struct Backward<'d> {
    pub(in crate::draw) edge: &'d DiagramEdge,
    /// Its line, as the path of an SVG image.
    pub(in crate::draw) path: String,
    pub(in crate::draw) label: Rectangle,
    /// The bottom of the drawing if it is the last one.
    pub(in crate::draw) bottom: usize,
}

/// An edge with its nodes.
type Ends<'d> = (&'d DiagramEdge, Rectangle, Rectangle);

/// Returns the edges that do not lead forward: those of a column, then the others, the shortest first.
pub(in crate::draw) fn backward<'d>(diagram: &'d Diagram, layout: &Layout) -> Vec<Backward<'d>> {
    let edges = diagram.edges.iter().zip(&layout.routes).filter(|(_, route)| route.is_empty());
    let ends =
        |edge: &'d DiagramEdge| Some((edge, *layout.nodes.get(edge.from)?, *layout.nodes.get(edge.to)?));
    let edges = edges.filter_map(|(edge, _)| ends(edge));
    let (beside, mut below): (Vec<_>, Vec<_>) =
        edges.partition(|(edge, from, to)| from.x == to.x && edge.from != edge.to);
    below.sort_by_key(|(_, from, to)| from.x.abs_diff(to.x));
    let beside = beside.into_iter().map(|ends| between(ends, layout.height));
    let count = below.len();
    let mut bottom = layout.height;
    let below = below.into_iter().enumerate().map(|(row, ends)| {
        let back = around(ends, (row + 1, count + 1), bottom);
        bottom = back.bottom;
        back
    });
    beside.chain(below).collect()
}

/// Returns the edge between two nodes of a column.
fn between((edge, from, to): Ends<'_>, bottom: usize) -> Backward<'_> {
    let x = from.x + from.width.min(to.width) * 2 / 3;
    let (y1, y2) = if from.y < to.y { (from.y + from.height, to.y) } else { (from.y, to.y + to.height) };
    let label = label(edge, x, usize::midpoint(y1, y2));
    Backward { edge, path: format!("M{x} {y1}L{x} {y2}"), label, bottom }
}

/// Returns the edge below everything above `top`. A longer edge, with a greater share of the width of its nodes, is
/// outside a shorter one.
fn around((edge, from, to): Ends<'_>, (share, of): (usize, usize), top: usize) -> Backward<'_> {
    let bottom = top + edge.label_size().1.max(LINE) + LINE;
    let y = usize::midpoint(top, bottom);
    let x1 = from.x + from.width / 2 + from.width * share / (2 * of);
    let x2 = to.x + to.width / 2 - to.width * share / (2 * of);
    let (y1, y2) = (from.y + from.height, to.y + to.height);
    let middle = usize::midpoint(x1, x2);
    let path = format!("M{x1} {y1}C{x1} {y} {x1} {y} {middle} {y}S{x2} {y} {x2} {y2}");
    // The line of a node to itself has no room for a label, which is therefore beside it.
    let is_loop = edge.from == edge.to;
    let x = if is_loop { x1 } else { middle.saturating_sub(edge.label_size().0 / 2) };
    Backward { edge, path, label: label(edge, x, y), bottom }
}

/// Returns the position of a label from its left end and its middle.
fn label(edge: &DiagramEdge, x: usize, middle: usize) -> Rectangle {
    let (width, height) = edge.label_size();
    Rectangle { x, y: middle.saturating_sub(height / 2), width, height }
}
