//! Positions and sizes.

use crate::draw::diagram::{Diagram, DiagramEdge};

/// The width of a character.
pub(in crate::draw) const CHARACTER: usize = 8;
/// The height of a line of text.
pub(in crate::draw) const LINE: usize = 16;
/// The space around the drawing.
pub(super) const MARGIN: usize = 24;

/// The position and size of a node or a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::draw) struct Rectangle {
    pub(in crate::draw) x: usize,
    pub(in crate::draw) y: usize,
    pub(in crate::draw) width: usize,
    pub(in crate::draw) height: usize,
}

/// A point of an edge.
pub(in crate::draw) type Point = (usize, usize);

/// The positions of everything in a drawing.
#[derive(Debug, Default)]
pub(in crate::draw) struct Layout {
    /// The rectangle of each node.
    pub(in crate::draw) nodes: Vec<Rectangle>,
    /// The points of each edge, from its first node to its second; none for an edge that does not lead forward.
    pub(in crate::draw) routes: Vec<Vec<Point>>,
    /// The rectangle of the label of each edge; empty for an edge without a label.
    pub(in crate::draw) labels: Vec<Rectangle>,
    pub(in crate::draw) width: usize,
    pub(in crate::draw) height: usize,
}

impl Layout {
    /// Returns the layout before anything is placed.
    pub(super) fn empty(diagram: &Diagram) -> Self {
        Self {
            nodes: vec![Rectangle::default(); diagram.nodes.len()],
            routes: vec![Vec::new(); diagram.edges.len()],
            labels: vec![Rectangle::default(); diagram.edges.len()],
            ..Self::default()
        }
    }
}

impl DiagramEdge {
    /// Returns the width and the height of its label.
    pub(in crate::draw) fn label_size(&self) -> (usize, usize) {
        let lines = self.lines();
        let width = lines.iter().map(|line| line.chars().count() * CHARACTER).max();
        (width.unwrap_or_default(), lines.len() * LINE)
    }
}
