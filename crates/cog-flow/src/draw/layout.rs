//! Places the nodes of a drawing in columns, from left to right, with the edges around them.

mod backward;
mod columns;
mod geometry;
mod lanes;

use self::{
    columns::{Item, columns},
    geometry::{CHARACTER, MARGIN},
    lanes::Band,
};
use super::diagram::Diagram;

pub(super) use self::{
    backward::backward,
    geometry::{LINE, Layout, Point, Rectangle},
};

/// The space between two items of a column.
const ROW_GAP: usize = 28;
/// The space beside the labels of a gap between two columns.
const COLUMN_GAP: usize = 40;

/// Returns the layout of a drawing.
pub(super) fn layout(diagram: &Diagram) -> Layout {
    let columns = columns(diagram);
    let mut layout = Layout::empty(diagram);
    let heights = columns.iter().map(|column| height_of(diagram, column));
    layout.height = heights.max().unwrap_or_default();
    let mut x = MARGIN;
    let mut bands = Vec::new();
    for (column, label_width) in columns.iter().zip(label_widths(diagram, &columns)) {
        let width = column.iter().map(|item| item_width(diagram, *item)).max().unwrap_or_default();
        place_column(diagram, &mut layout, column, (x, width));
        layout.width = x + width + MARGIN;
        let band = Band { x: x + width + COLUMN_GAP, width: label_width };
        x = band.x + band.width + COLUMN_GAP;
        bands.push(band);
    }
    finish_routes(diagram, &mut layout);
    lanes::place(diagram, &mut layout, &columns, &bands);
    layout.height = bottom_of(&layout) + MARGIN;
    layout
}

/// Returns the bottom of everything that is placed.
fn bottom_of(layout: &Layout) -> usize {
    let boxes = layout.nodes.iter().chain(&layout.labels).map(|at| at.y + at.height);
    boxes.chain(layout.routes.iter().flatten().map(|point| point.1)).max().unwrap_or_default()
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
        if !edge.is_forward() || to.x <= from.x {
            route.clear();
            continue;
        }
        route.insert(0, (from.x + from.width, from.y + from.height / 2));
        route.push((to.x, to.y + to.height / 2));
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

/// Returns the width of the labels of the edges that start in each column.
fn label_widths(diagram: &Diagram, columns: &[Vec<Item>]) -> Vec<usize> {
    let mut of_nodes = vec![0; diagram.nodes.len()];
    for edge in diagram.edges.iter().filter(|edge| edge.is_forward()) {
        if let Some(width) = of_nodes.get_mut(edge.from) {
            *width = edge.label_size().0.max(*width);
        }
    }
    let of_item = |item: &Item| match item {
        Item::Node(node) => of_nodes.get(*node).copied().unwrap_or_default(),
        Item::Bend(_) => 0,
    };
    columns.iter().map(|column| column.iter().map(of_item).max().unwrap_or_default()).collect()
}
