//! Counters whose memory is bounded.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// The maximum number of keys of a counter.
const MAX_KEYS: usize = 4_096;

/// Counts keys, and keeps something for each. If there are too many keys, the rarest are dropped.
#[derive(Debug)]
pub(super) struct Counter<K, T> {
    counts: HashMap<K, (u64, T)>,
    /// Whether keys were dropped: counts of rare keys may be low.
    pub(super) has_dropped: bool,
}

impl<K, T> Default for Counter<K, T> {
    fn default() -> Self {
        Self { counts: HashMap::new(), has_dropped: false }
    }
}

impl<K: Hash + Eq + Ord, T: Default> Counter<K, T> {
    /// Counts a key, and changes what is kept for it.
    pub(super) fn add(&mut self, key: K, change: impl FnOnce(&mut T)) {
        if self.counts.len() >= MAX_KEYS && !self.counts.contains_key(&key) {
            self.drop_rarest();
        }
        let (count, kept) = self.counts.entry(key).or_default();
        *count += 1;
        change(kept);
    }

    /// Changes what is kept for a key without counting it.
    pub(super) fn change<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, change: impl FnOnce(&mut T))
    where
        K: Borrow<Q>,
    {
        if let Some((_, kept)) = self.counts.get_mut(key) {
            change(kept);
        }
    }

    /// Drops at least half of the keys.
    fn drop_rarest(&mut self) {
        self.has_dropped = true;
        let mut counts: Vec<u64> = self.counts.values().map(|(count, _)| *count).collect();
        counts.sort_unstable();
        let middle = counts.get(counts.len() / 2).copied().unwrap_or_default();
        self.counts.retain(|_, (count, _)| *count > middle);
    }

    /// Returns the count of a key.
    pub(super) fn count<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> u64
    where
        K: Borrow<Q>,
    {
        self.counts.get(key).map_or(0, |(count, _)| *count)
    }

    /// Returns the keys with their counts, the most frequent first.
    pub(super) fn sorted(&self) -> impl Iterator<Item = (&K, u64, &T)> {
        let mut all: Vec<_> = self.counts.iter().map(|(key, (count, kept))| (key, *count, kept)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter()
    }
}

/// The first different texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples(Vec<String>);

/// The maximum number of samples.
const MAX_SAMPLES: usize = 8;

impl Samples {
    pub(super) fn add(&mut self, text: &str) {
        if self.0.len() < MAX_SAMPLES && !self.0.iter().any(|known| known == text) {
            self.0.push(text.to_owned());
        }
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_keys_stay_when_there_are_too_many() {
        let mut counter: Counter<u64, ()> = Counter::default();
        for key in 0..100_000 {
            counter.add(key, |()| {});
            counter.add(u64::MAX, |()| {});
        }
        assert!(counter.has_dropped && counter.counts.len() <= MAX_KEYS);
        assert_eq!(counter.count(&u64::MAX), 100_000);
        assert_eq!(counter.sorted().next().map(|(key, count, ())| (*key, count)), Some((u64::MAX, 100_000)));
    }
}
