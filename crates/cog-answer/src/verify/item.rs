use cog_json::Node;

use super::chunk::Part;

/// A chunk, and its index among all chunks.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) index: usize,
    pub(super) node: Node<'a>,
    pub(super) part: Option<Part>,
}

impl Item<'_> {
    pub(super) fn path(&self, inner: &str) -> String {
        match inner {
            "" => format!("[{}]", self.index),
            _ => format!("[{}].{inner}", self.index),
        }
    }

    pub(super) fn seq(&self) -> Option<u64> {
        self.node.get("chunk")?.get("seq")?.as_u64()
    }
}

/// Returns the numbered chunks in the order of their numbers.
pub(super) fn sorted<'a, 'b>(items: &'b [Item<'a>]) -> Vec<(&'b Item<'a>, u64)> {
    let mut numbered: Vec<_> = items.iter().filter_map(|item| Some((item, item.seq()?))).collect();
    numbered.sort_by_key(|(_, seq)| *seq);
    numbered
}
