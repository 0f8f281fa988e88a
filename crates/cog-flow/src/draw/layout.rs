//! Places the nodes of a drawing in columns, from left to right, with the edges around them.

mod columns;

use self::columns::{Item, columns};
use super::diagram::{Diagram, DiagramEdge, EdgeKind};

/// The width of a character.
pub(super) const CHARACTER: usize = 8;
/// The height of a line of text.
pub(super) const LINE: usize = 16;
/// The space between two items of a column.
const ROW_GAP: usize = 28;
/// The space beside the labels of a gap between two columns.
const COLUMN_GAP: usize = 40;
/// The space around the drawing.
const MARGIN: usize = 24;

/// The position and size of a node or a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A point of an edge.
pub(super) type Point = (usize, usize);

/// The positions of everything in a drawing.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The rectangle of each node.
    pub(super) nodes: Vec<Rectangle>,
    /// The points of each edge, from its first node to its second; none for an edge that does not lead forward.
    pub(super) routes: Vec<Vec<Point>>,
    /// The rectangle of the label of each edge; empty for an edge without a label.
    pub(super) labels: Vec<Rectangle>,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Returns whether an edge places its second node after the first.
pub(super) fn is_forward(edge: &DiagramEdge) -> bool {
    !matches!(edge.kind, EdgeKind::Round | EdgeKind::Fallback) && edge.from != edge.to
}

/// Returns the layout of a drawing.
pub(super) fn layout(diagram: &Diagram) -> Layout {
    let columns = columns(diagram);
    let mut layout = Layout {
        nodes: vec![Rectangle::default(); diagram.nodes.len()],
        routes: vec![Vec::new(); diagram.edges.len()],
        labels: vec![Rectangle::default(); diagram.edges.len()],
        ..Layout::default()
    };
    let heights = columns.iter().map(|column| height_of(diagram, column));
    layout.height = heights.max().unwrap_or_default();
    let mut x = MARGIN;
    let mut gaps = Vec::new();
    for column in &columns {
        let width = column.iter().map(|item| item_width(diagram, *item)).max().unwrap_or_default();
        place_column(diagram, &mut layout, column, (x, width));
        let gap = label_width(diagram, column);
        gaps.push(x + width);
        x += width + COLUMN_GAP + gap + COLUMN_GAP;
    }
    layout.width = gaps.last().copied().unwrap_or_default() + MARGIN;
    finish_routes(diagram, &mut layout);
    for (column, start) in columns.iter().zip(gaps) {
        place_labels(diagram, &mut layout, column, start + COLUMN_GAP);
    }
    let bottom = layout.labels.iter().map(|label| label.y + label.height + MARGIN).max();
    layout.height = layout.height.max(bottom.unwrap_or_default());
    layout
}

/// Places the items of a column in its middle, and adds the bends of edges that pass it.
fn place_column(diagram: &Diagram, layout: &mut Layout, column: &[Item], (x, width): (usize, usize)) {
    let mut y = MARGIN + layout.height.saturating_sub(height_of(diagram, column)) / 2;
    for item in column {
        let height = item_height(diagram, *item);
        match item {
            Item::Node(node) => {
                if let Some(slot) = layout.nodes.get_mut(*node) {
                    *slot = Rectangle { x, y, width, height };
                }
            }
            Item::Bend(edge) => {
                if let Some(route) = layout.routes.get_mut(*edge) {
                    route.extend([(x, y + height / 2), (x + width, y + height / 2)]);
                }
            }
        }
        y += height + ROW_GAP;
    }
}

/// Adds the ends of each edge to its bends.
fn finish_routes(diagram: &Diagram, layout: &mut Layout) {
    for (edge, route) in diagram.edges.iter().zip(&mut layout.routes) {
        let (Some(from), Some(to)) = (layout.nodes.get(edge.from), layout.nodes.get(edge.to)) else {
            continue;
        };
        if !is_forward(edge) || to.x <= from.x {
            route.clear();
            continue;
        }
        route.insert(0, (from.x + from.width, from.y + from.height / 2));
        route.push((to.x, to.y + to.height / 2));
    }
}

/// Places the labels of the edges that start in a column: in the middle of the first part of their edge, one below another.
fn place_labels(diagram: &Diagram, layout: &mut Layout, column: &[Item], x: usize) {
    let starts = |node: usize| column.iter().any(|item| matches!(item, Item::Node(other) if *other == node));
    let mut labels: Vec<(usize, usize)> = Vec::new();
    for (index, (edge, route)) in diagram.edges.iter().zip(&layout.routes).enumerate() {
        if let [first, second, ..] = route.as_slice()
            && starts(edge.from)
            && edge.label_size().1 > 0
        {
            labels.push((usize::midpoint(first.1, second.1), index));
        }
    }
    labels.sort_unstable();
    let mut free = 0;
    for (middle, index) in labels {
        let Some(edge) = diagram.edges.get(index) else { continue };
        let (width, height) = edge.label_size();
        let y = middle.saturating_sub(height / 2).max(free);
        free = y + height + LINE / 4;
        if let Some(slot) = layout.labels.get_mut(index) {
            *slot = Rectangle { x, y, width, height };
        }
    }
}

impl DiagramEdge {
    /// Returns the width and the height of its label.
    pub(super) fn label_size(&self) -> (usize, usize) {
        let lines = self.lines();
        let width = lines.iter().map(|line| line.chars().count() * CHARACTER).max();
        (width.unwrap_or_default(), lines.len() * LINE)
    }
}

/// Returns the height of a column, without the margin above it.
fn height_of(diagram: &Diagram, column: &[Item]) -> usize {
    column.iter().map(|item| item_height(diagram, *item) + ROW_GAP).sum::<usize>() + MARGIN
}

fn item_width(diagram: &Diagram, item: Item) -> usize {
    let Item::Node(node) = item else { return 0 };
    let Some(node) = diagram.nodes.get(node) else { return 0 };
    let characters = node.name.chars().count().max(node.detail.chars().count());
    characters * CHARACTER + 24
}

fn item_height(diagram: &Diagram, item: Item) -> usize {
    let Item::Node(node) = item else { return LINE };
    let has_detail = diagram.nodes.get(node).is_some_and(|node| !node.detail.is_empty());
    LINE * (1 + usize::from(has_detail)) + 20
}

/// Returns the width of the labels of the edges that start in a column.
fn label_width(diagram: &Diagram, column: &[Item]) -> usize {
    let starts = |node: usize| column.iter().any(|item| matches!(item, Item::Node(other) if *other == node));
    let edges = diagram.edges.iter().filter(|edge| is_forward(edge) && starts(edge.from));
    edges.map(|edge| edge.label_size().0).max().unwrap_or_default()
}
