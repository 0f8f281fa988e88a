//! The columns of a drawing, and the order of the items in them.

use std::collections::HashMap;

use crate::draw::diagram::{Diagram, NodeKind};

/// What takes a row of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// A node, by its index.
    Node(usize),
    /// An edge that passes the column, by its index.
    Bend(usize),
}

/// The maximum number of bends. Edges beyond it are straight, so that a long drawing stays small.
const MAX_BENDS: usize = 20_000;

/// Returns the items of each column, in order.
pub(super) fn columns(diagram: &Diagram) -> Vec<Vec<Item>> {
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
        let (bend, mut last) = (Item::Bend(index), Item::Node(edge.from));
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
