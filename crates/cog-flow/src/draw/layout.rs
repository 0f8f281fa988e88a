//! Places the nodes of a drawing in columns, from left to right, with the edges around them.

use std::collections::HashMap;

use super::diagram::{Diagram, DiagramEdge, NodeKind};

/// The space between two items of a column.
const ROW_GAP: usize = 28;
/// The space on both sides of the labels in a gap between two columns.
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
        place_column(diagram, &mut layout, column, x, width);
        layout.width = x + width + MARGIN;
        let band = Band { x: x + width + COLUMN_GAP, width: label_width };
        x = band.x + band.width + COLUMN_GAP;
        bands.push(band);
    }
    finish_routes(diagram, &mut layout);
    place(diagram, &mut layout, &columns, &bands);
    layout.height = bottom_of(&layout) + MARGIN;
    layout
}

/// Returns the bottom of everything that is placed.
fn bottom_of(layout: &Layout) -> usize {
    let boxes = layout.nodes.iter().chain(&layout.labels).map(|at| at.y + at.height);
    boxes.chain(layout.routes.iter().flatten().map(|point| point.1)).max().unwrap_or_default()
}

/// Places the items of a column in its middle, and adds the bends of edges that pass it.
fn place_column(diagram: &Diagram, layout: &mut Layout, column: &[Item], x: usize, width: usize) {
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
    let mut widths = Vec::new();
    for column in columns {
        let of_column = column.iter().filter_map(|item| match item {
            Item::Node(node) => of_nodes.get(*node).copied(),
            Item::Bend(_) => None,
        });
        widths.push(of_column.max().unwrap_or_default());
    }
    widths
}

// Positions and sizes.

/// The width of a character.
pub(super) const CHARACTER: usize = 8;
/// The height of a line of text.
pub(super) const LINE: usize = 16;
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

impl Layout {
    /// Returns the layout before anything is placed.
    fn empty(diagram: &Diagram) -> Self {
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
    pub(super) fn label_size(&self) -> (usize, usize) {
        let lines = self.lines();
        let width = lines.iter().map(|line| line.chars().count() * CHARACTER).max();
        (width.unwrap_or_default(), lines.len() * LINE)
    }
}

// The lanes of the edges between two columns: edges pass the labels of other edges above or below.

/// Where the labels are between two columns.
struct Band {
    x: usize,
    width: usize,
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
fn place(diagram: &Diagram, layout: &mut Layout, columns: &[Vec<Item>], bands: &[Band]) {
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
    let mut free = 0;
    let mut moved = 0;
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

// The edges that do not lead forward: between nodes of a column, or below the drawing, one inside another.

/// An edge that does not lead forward.
pub(super) struct Backward<'d> {
    pub(super) edge: &'d DiagramEdge,
    /// Its line, as the path of an SVG image.
    pub(super) path: String,
    pub(super) label: Rectangle,
    /// The bottom of the drawing if it is the last one.
    pub(super) bottom: usize,
}

/// An edge with its nodes.
struct Ends<'d> {
    edge: &'d DiagramEdge,
    from: Rectangle,
    to: Rectangle,
}

/// Returns the edges that do not lead forward: the edges inside a column, then the others, the shortest first.
pub(super) fn backward<'d>(diagram: &'d Diagram, layout: &Layout) -> Vec<Backward<'d>> {
    let edges = diagram.edges.iter().zip(&layout.routes).filter(|(_, route)| route.is_empty());
    let edges = edges.filter_map(|(edge, _)| {
        Some(Ends { edge, from: *layout.nodes.get(edge.from)?, to: *layout.nodes.get(edge.to)? })
    });
    let (of_columns, mut below): (Vec<_>, Vec<_>) =
        edges.partition(|ends| ends.from.x == ends.to.x && ends.edge.from != ends.edge.to);
    below.sort_by_key(|ends| ends.from.x.abs_diff(ends.to.x));
    let mut backward: Vec<Backward<'_>> =
        of_columns.into_iter().map(|ends| between(&ends, layout.height)).collect();
    let count = below.len();
    let mut bottom = layout.height;
    for (row, ends) in below.into_iter().enumerate() {
        let edge = around(&ends, row, count, bottom);
        bottom = edge.bottom;
        backward.push(edge);
    }
    backward
}

/// Returns the edge between two nodes of a column.
fn between<'d>(ends: &Ends<'d>, bottom: usize) -> Backward<'d> {
    let Ends { edge, from, to } = *ends;
    let x = from.x + from.width.min(to.width) * 2 / 3;
    let (y1, y2) = if from.y < to.y { (from.y + from.height, to.y) } else { (from.y, to.y + to.height) };
    let label = label(edge, x, usize::midpoint(y1, y2));
    Backward { edge, path: format!("M{x} {y1}L{x} {y2}"), label, bottom }
}

/// Returns the edge of a row below everything above `top`. Of `rows`, a later one has a longer edge, which takes a greater share of
/// the width of its nodes, so that it is outside the shorter ones.
fn around<'d>(ends: &Ends<'d>, row: usize, rows: usize, top: usize) -> Backward<'d> {
    let Ends { edge, from, to } = *ends;
    let share = row + 1;
    let of = rows + 1;
    let bottom = top + edge.label_size().1.max(LINE) + LINE;
    let y = usize::midpoint(top, bottom);
    let x1 = from.x + from.width / 2 + from.width * share / (2 * of);
    let x2 = to.x + to.width / 2 - to.width * share / (2 * of);
    let y1 = from.y + from.height;
    let y2 = to.y + to.height;
    let middle = usize::midpoint(x1, x2);
    let path = format!("M{x1} {y1}C{x1} {y} {x1} {y} {middle} {y}S{x2} {y} {x2} {y2}");
    // The line of a node to itself has no room for a label, which is therefore next to it.
    let is_loop = edge.from == edge.to;
    let x = if is_loop { x1 } else { middle.saturating_sub(edge.label_size().0 / 2) };
    Backward { edge, path, label: label(edge, x, y), bottom }
}

/// Returns the position of a label from its left end and its middle.
fn label(edge: &DiagramEdge, x: usize, middle: usize) -> Rectangle {
    let (width, height) = edge.label_size();
    Rectangle { x, y: middle.saturating_sub(height / 2), width, height }
}

// The columns of a drawing, and the order of the items in them.

/// What takes a row of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Item {
    /// A node, by its index.
    Node(usize),
    /// An edge that passes the column, by its index.
    Bend(usize),
}

/// The maximum number of bends. Edges beyond it are straight, so that a long drawing stays small.
const MAX_BENDS: usize = 20_000;

/// Returns the items of each column, in order.
fn columns(diagram: &Diagram) -> Vec<Vec<Item>> {
    let numbers = numbers(diagram);
    let count = numbers.iter().max().map_or(0, |last| last + 1);
    let mut columns: Vec<Vec<Item>> = vec![Vec::new(); count];
    for (node, number) in numbers.iter().enumerate() {
        if let Some(column) = columns.get_mut(*number) {
            column.push(Item::Node(node));
        }
    }
    let before = add_bends(diagram, &numbers, &mut columns);
    order(&mut columns, &before);
    columns.retain(|column| !column.is_empty());
    columns
}

/// Adds the bends of edges that pass columns. Returns the items before each item, from which it takes its position.
fn add_bends(diagram: &Diagram, numbers: &[usize], columns: &mut [Vec<Item>]) -> HashMap<Item, Vec<Item>> {
    let mut before: HashMap<Item, Vec<Item>> = HashMap::new();
    let mut bends = 0;
    for (index, edge) in diagram.edges.iter().enumerate().filter(|(_, edge)| edge.is_forward()) {
        let (Some(from), Some(to)) = (numbers.get(edge.from), numbers.get(edge.to)) else { continue };
        let bend = Item::Bend(index);
        let mut last = Item::Node(edge.from);
        let passed = columns.get_mut(from + 1..*to).filter(|passed| bends + passed.len() <= MAX_BENDS);
        for column in passed.into_iter().flatten() {
            column.push(bend);
            before.entry(bend).or_default().push(last);
            last = bend;
            bends += 1;
        }
        before.entry(Item::Node(edge.to)).or_default().push(last);
    }
    before
}

/// Orders the items of each column like those before them.
fn order(columns: &mut [Vec<Item>], before: &HashMap<Item, Vec<Item>>) {
    let mut positions: HashMap<Item, usize> = HashMap::new();
    for column in columns {
        column.sort_by_key(|item| {
            let known = before.get(item).into_iter().flatten().filter_map(|item| positions.get(item));
            let known: Vec<usize> = known.copied().collect();
            known.iter().sum::<usize>() / known.len().max(1)
        });
        // Positions are relative to the middle of the column, so that columns of any length are compared.
        let middle = 1_000_000 - column.len() * 500;
        positions.extend(column.iter().enumerate().map(|(row, item)| (*item, middle + row * 1000)));
    }
}

/// Returns the column of each node: one more than the greatest column of the nodes before it; the answer is in the last.
fn numbers(diagram: &Diagram) -> Vec<usize> {
    let count = diagram.nodes.len();
    let mut numbers = vec![0_usize; count];
    // A drawing without a circle is complete after as many passes as it has nodes.
    for _ in 0..count {
        let mut changed = false;
        for edge in diagram.edges.iter().filter(|edge| edge.is_forward()) {
            let next = numbers.get(edge.from).copied().unwrap_or_default() + 1;
            if let Some(number) = numbers.get_mut(edge.to).filter(|number| **number < next && next < count) {
                *number = next;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let last = numbers.iter().max().copied().unwrap_or_default();
    let output = diagram.nodes.iter().position(|node| node.kind == NodeKind::Output);
    if let Some(number) = output.and_then(|output| numbers.get_mut(output)) {
        *number = last;
    }
    numbers
}
