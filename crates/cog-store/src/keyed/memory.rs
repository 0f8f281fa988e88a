use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::{
    Key, Limits, Lookup, OwnerLimits, StoreError, StoreSize,
    eviction::{Group, Item},
};

/// Values in memory.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Values>);

#[derive(Debug, Default)]
struct Values {
    by_key: HashMap<Key, Stored>,
    /// The number of the next value: a clock may stand still between two.
    next: u64,
}

#[derive(Debug)]
struct Stored {
    number: u64,
    at: SystemTime,
    /// None once it was claimed.
    value: Option<Vec<u8>>,
}

impl Stored {
    fn bytes(&self) -> u64 {
        self.value.as_ref().map_or(0, |value| value.len() as u64)
    }
}

impl Memory {
    pub(super) fn insert(
        &self,
        key: &Key,
        value: &[u8],
        owner_limits: Option<OwnerLimits>,
        limits: &Limits,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        let mut values = self.lock();
        if let Some(owner_limits) = owner_limits {
            let others = values.by_key.iter().filter(|(other, _)| other.owner == key.owner && *other != key);
            owner_limits.check(others.map(|(_, stored)| stored.bytes()), value.len() as u64)?;
        }
        let stored = Stored { number: values.next, at: now, value: Some(value.to_vec()) };
        values.next += 1;
        values.by_key.insert(key.clone(), stored);
        for key in values.group(key.owner.is_some()).surplus(limits) {
            values.by_key.remove(&key);
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &Key) -> Lookup {
        match self.lock().by_key.get(key).map(|stored| stored.value.clone()) {
            Some(Some(value)) => Lookup::Value(value),
            Some(None) => Lookup::Claimed,
            None => Lookup::Missing,
        }
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.lock().by_key.get(key).is_some_and(|stored| stored.value.is_some())
    }

    pub(super) fn claim(&self, key: &Key) -> bool {
        self.lock().by_key.get_mut(key).is_some_and(|stored| stored.value.take().is_some())
    }

    pub(super) fn remove(&self, key: &Key) {
        self.lock().by_key.remove(key);
    }

    pub(super) fn sweep(&self, owner: Option<&str>, is_current: impl Fn(&[u8]) -> bool) {
        self.lock().by_key.retain(|key, stored| {
            let is_meant = owner.is_none() || key.owner.as_deref() == owner;
            !is_meant || stored.value.as_ref().is_none_or(|value| is_current(value))
        });
    }

    pub(super) fn remove_oldest(&self, owner: Option<&str>) -> bool {
        let mut values = self.lock();
        let oldest = values.group(owner.is_some()).into_oldest();
        oldest.is_some_and(|key| values.by_key.remove(&key).is_some())
    }

    pub(super) fn size(&self) -> StoreSize {
        let values = self.lock();
        StoreSize {
            entries: values.by_key.len(),
            bytes: values.by_key.values().map(Stored::bytes).sum(),
            oldest: values.by_key.values().map(|stored| stored.at).min(),
        }
    }

    pub(super) fn clear(&self) -> usize {
        std::mem::take(&mut self.lock().by_key).len()
    }

    /// Locks the values, which are consistent between any two statements.
    fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Values {
    fn group(&self, have_owner: bool) -> Group<Key> {
        let mut values: Vec<_> = self.by_key.iter().collect();
        values.sort_unstable_by_key(|(_, stored)| stored.number);
        let items = values.into_iter().map(|(key, stored)| Item {
            owner: key.owner.clone(),
            bytes: stored.bytes(),
            handle: key.clone(),
        });
        Group::new(items, have_owner)
    }
}
