//! The lanes of the edges between two columns: edges pass the labels of other edges above or below.

use std::collections::HashMap;

use super::{
    columns::Item,
    geometry::{CHARACTER, LINE, Layout, MARGIN, Rectangle},
};
use crate::draw::diagram::Diagram;

/// Where the labels are between two columns.
pub(super) struct Band {
    pub(super) x: usize,
    pub(super) width: usize,
}

/// An edge between two columns.
struct Lane {
    edge: usize,
    /// The point of its route from which it leaves the first column.
    point: usize,
    /// The size of its label; only the first lane of an edge has it.
    label: (usize, usize),
    /// The middle between its ends, then the middle of the lane.
    y: usize,
}

impl Lane {
    fn height(&self) -> usize {
        self.label.1.max(LINE / 2)
    }
}

/// Leads every edge through a lane of each band with labels, and places its label there.
pub(super) fn place(diagram: &Diagram, layout: &mut Layout, columns: &[Vec<Item>], bands: &[Band]) {
    let mut lanes = lanes(diagram, layout, columns);
    // From the right to the left, because each lane adds points to the end of its route.
    for (lanes, band) in lanes.iter_mut().zip(bands).rev().filter(|(_, band)| band.width > 0) {
        stack(lanes);
        for lane in lanes {
            if let Some(route) = layout.routes.get_mut(lane.edge) {
                let after = lane.point + 1;
                route.splice(after..after, [(band.x, lane.y), (band.x + band.width, lane.y)]);
            }
            let (width, height) = lane.label;
            if let Some(label) = layout.labels.get_mut(lane.edge).filter(|_| height > 0) {
                *label = Rectangle { x: band.x, y: lane.y.saturating_sub(height / 2), width, height };
            }
        }
    }
}

/// Returns the lanes after each column.
fn lanes(diagram: &Diagram, layout: &Layout, columns: &[Vec<Item>]) -> Vec<Vec<Lane>> {
    let items =
        columns.iter().enumerate().flat_map(|(column, items)| items.iter().map(move |item| (*item, column)));
    let column_of: HashMap<Item, usize> = items.collect();
    let mut lanes: Vec<Vec<Lane>> = columns.iter().map(|_| Vec::new()).collect();
    for (index, (edge, route)) in diagram.edges.iter().zip(&layout.routes).enumerate() {
        let Some(first) = column_of.get(&Item::Node(edge.from)) else { continue };
        for (number, ends) in route.chunks_exact(2).enumerate() {
            let ([from, to], Some(after)) = (ends, lanes.get_mut(first + number)) else { continue };
            let label = if number == 0 { edge.label_size() } else { (0, 0) };
            after.push(Lane { edge: index, point: number * 2, label, y: usize::midpoint(from.1, to.1) });
        }
    }
    lanes
}

/// Moves the lanes apart, as little as possible.
fn stack(lanes: &mut [Lane]) {
    lanes.sort_by_key(|lane| (lane.y, lane.edge));
    let (mut free, mut moved) = (0, 0);
    for lane in &mut *lanes {
        let middle = lane.y.max(free + lane.height() / 2);
        moved += middle - lane.y;
        lane.y = middle;
        free = middle + lane.height().div_ceil(2) + CHARACTER;
    }
    let above = lanes.first().map_or(0, |lane| lane.y.saturating_sub(lane.height() / 2 + MARGIN / 2));
    let shift = (moved / lanes.len().max(1)).min(above);
    lanes.iter_mut().for_each(|lane| lane.y -= shift);
}
