//! Places the nodes of a drawing in columns, from left to right.

use super::diagram::{Diagram, DiagramEdge, EdgeKind};

/// The width of a character.
pub(super) const CHARACTER: usize = 7;
/// The height of a line of text.
pub(super) const LINE: usize = 16;
/// The space between two nodes of a column.
const ROW_GAP: usize = 28;
/// The space between two columns, beside the labels.
const COLUMN_GAP: usize = 56;
/// The space around the drawing.
const MARGIN: usize = 24;

/// The position and size of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The positions of all nodes.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The rectangle of each node.
    pub(super) nodes: Vec<Rectangle>,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Returns the layout of a drawing.
pub(super) fn layout(diagram: &Diagram) -> Layout {
    let columns = by_column(&columns(diagram), diagram);
    let mut layout = Layout { nodes: vec![Rectangle::default(); diagram.nodes.len()], ..Layout::default() };
    let mut x = MARGIN;
    for (index, column) in columns.iter().enumerate() {
        let width = column.iter().map(|node| width(diagram, *node)).max().unwrap_or_default();
        let mut y = MARGIN;
        for node in column {
            let height = height(diagram, *node);
            // A node is beside its labels, so that two labels of a column never overlap.
            let room = height.max(label_lines(diagram, *node) * LINE + LINE);
            if let Some(slot) = layout.nodes.get_mut(*node) {
                *slot = Rectangle { x, y: y + (room - height) / 2, width, height };
            }
            y += room + ROW_GAP;
        }
        layout.height = layout.height.max(y);
        let is_last = index + 1 == columns.len();
        x += width + if is_last { MARGIN } else { COLUMN_GAP + label_width(diagram, columns.get(index + 1)) };
    }
    layout.width = x;
    center(&columns, &mut layout);
    layout
}

/// Returns the column of each node: one more than the greatest column of the nodes before it. Rounds lead back.
fn columns(diagram: &Diagram) -> Vec<usize> {
    let mut columns = vec![0_usize; diagram.nodes.len()];
    // A drawing without a circle is complete after as many passes as it has nodes.
    for _ in 0..diagram.nodes.len() {
        let mut changed = false;
        for edge in diagram.edges.iter().filter(|edge| is_forward(edge)) {
            let next = columns.get(edge.from).copied().unwrap_or_default() + 1;
            let limit = diagram.nodes.len();
            if let Some(column) = columns.get_mut(edge.to).filter(|column| **column < next && next < limit) {
                *column = next;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    columns
}

/// Returns whether an edge places its second node after the first.
pub(super) const fn is_forward(edge: &DiagramEdge) -> bool {
    !matches!(edge.kind, EdgeKind::Round) && edge.from != edge.to
}

/// Returns the nodes of each column. Nodes are ordered like those of the column before them that they follow.
fn by_column(columns: &[usize], diagram: &Diagram) -> Vec<Vec<usize>> {
    let count = columns.iter().max().map_or(0, |last| last + 1);
    let mut positions = vec![0_usize; columns.len()];
    let mut ordered = Vec::new();
    for number in 0..count {
        let mut nodes: Vec<usize> =
            (0..columns.len()).filter(|node| columns.get(*node) == Some(&number)).collect();
        nodes.sort_by_key(|node| {
            let before = diagram.edges.iter().filter(|edge| edge.to == *node && is_forward(edge));
            let before: Vec<usize> = before.filter_map(|edge| positions.get(edge.from)).copied().collect();
            before.iter().sum::<usize>() * 1000 / before.len().max(1)
        });
        for (position, node) in nodes.iter().enumerate() {
            if let Some(slot) = positions.get_mut(*node) {
                *slot = position;
            }
        }
        ordered.push(nodes);
    }
    ordered.retain(|nodes| !nodes.is_empty());
    ordered
}

/// Moves each column to the middle of the drawing.
fn center(columns: &[Vec<usize>], layout: &mut Layout) {
    for column in columns {
        let bottom =
            column.iter().filter_map(|node| layout.nodes.get(*node)).map(|node| node.y + node.height).max();
        let shift = layout.height.saturating_sub(bottom.unwrap_or_default() + MARGIN) / 2;
        for node in column {
            if let Some(slot) = layout.nodes.get_mut(*node) {
                slot.y += shift;
            }
        }
    }
}

fn width(diagram: &Diagram, node: usize) -> usize {
    let Some(node) = diagram.nodes.get(node) else { return 0 };
    let characters = node.name.chars().count().max(node.detail.chars().count());
    characters * CHARACTER + 32
}

fn height(diagram: &Diagram, node: usize) -> usize {
    let has_detail = diagram.nodes.get(node).is_some_and(|node| !node.detail.is_empty());
    LINE * (1 + usize::from(has_detail)) + 20
}

/// Returns the number of lines of all labels that lead to a node.
fn label_lines(diagram: &Diagram, node: usize) -> usize {
    diagram.edges.iter().filter(|edge| edge.to == node).map(|edge| edge.lines().len()).sum()
}

/// Returns the width of the labels that lead to the nodes of a column.
fn label_width(diagram: &Diagram, column: Option<&Vec<usize>>) -> usize {
    let edges = diagram.edges.iter().filter(|edge| column.is_some_and(|column| column.contains(&edge.to)));
    let lines = edges.flat_map(|edge| edge.lines());
    lines.map(|line| line.chars().count() * CHARACTER).max().unwrap_or_default()
}
