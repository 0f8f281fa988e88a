//! The choice of what is removed beyond the limits.

use std::collections::{BTreeMap, VecDeque};

use super::Limits;

/// A stored value, as the choice sees it.
pub(super) struct Item<T> {
    /// The owner, or what stands for it in the name of a file; none for the operator's own.
    pub(super) owner: Option<String>,
    pub(super) bytes: u64,
    /// What removes it.
    pub(super) handle: T,
}

/// Stored values of the operator, or of all owners.
pub(super) struct Group<T> {
    owners: BTreeMap<Option<String>, Owned<T>>,
    entries: usize,
    bytes: u64,
}

/// The values of one owner, the oldest first, each with its position among the values of all owners.
struct Owned<T> {
    values: VecDeque<(usize, u64, T)>,
    bytes: u64,
}

impl<T> Group<T> {
    /// Creates a group of values, the oldest first.
    pub(super) fn new(items: impl IntoIterator<Item = Item<T>>) -> Self {
        let mut group = Self { owners: BTreeMap::new(), entries: 0, bytes: 0 };
        for (position, Item { owner, bytes, handle }) in items.into_iter().enumerate() {
            let owned =
                group.owners.entry(owner).or_insert_with(|| Owned { values: VecDeque::new(), bytes: 0 });
            owned.values.push_back((position, bytes, handle));
            owned.bytes = owned.bytes.saturating_add(bytes);
            group.entries += 1;
            group.bytes = group.bytes.saturating_add(bytes);
        }
        group
    }

    /// Returns what exceeds the limits: of the owner who has the most, the oldest value, again and again.
    pub(super) fn surplus(mut self, limits: &Limits) -> Vec<T> {
        let mut surplus = Vec::new();
        while self.entries > limits.entries
            && let Some(handle) = self.take_oldest(|owned| owned.values.len() as u64)
        {
            surplus.push(handle);
        }
        while self.bytes > limits.bytes
            && let Some(handle) = self.take_oldest(|owned| owned.bytes)
        {
            surplus.push(handle);
        }
        surplus
    }

    /// Takes the oldest value of the owner with the largest size. Of several with the same size, the one with the oldest value loses
    /// it, so that a group in which each owner has one value removes them by age.
    fn take_oldest(&mut self, size: impl Fn(&Owned<T>) -> u64) -> Option<T> {
        let with_values = self.owners.values_mut().filter(|owned| !owned.values.is_empty());
        let position =
            |owned: &Owned<T>| owned.values.front().map(|(position, ..)| std::cmp::Reverse(*position));
        let largest = with_values.max_by_key(|owned| (size(owned), position(owned)))?;
        let (_, bytes, handle) = largest.values.pop_front()?;
        largest.bytes -= bytes;
        self.entries -= 1;
        self.bytes -= bytes;
        Some(handle)
    }
}
