//! Finding keys: a fingerprint in each key entry, and a table for objects with many keys.

use std::hash::{BuildHasher, RandomState};

use super::Tape;

/// 24 bits of a key, from its length and its first and last eight bytes. Two different keys may have equal fingerprints.
#[inline]
pub(crate) fn fingerprint(key: &[u8]) -> u32 {
    let (head, tail) = ends(key);
    let mixed =
        (head ^ tail.rotate_left(23) ^ ((key.len() as u64) << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as u32
}

/// Returns the first and the last eight bytes of a key; in a short key they overlap.
fn ends(key: &[u8]) -> (u64, u64) {
    if let (Some(head), Some(tail)) = (key.first_chunk(), key.last_chunk()) {
        return (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
    }
    if let (Some(head), Some(tail)) = (key.first_chunk(), key.last_chunk()) {
        return (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into());
    }
    (key.iter().fold(0, |word, &byte| word * 256 + u64::from(byte)), 0)
}

/// The keys of one large object: open addressing over the indexes of their entries, at most half full. The hash
/// has a random seed, so that an input cannot choose keys that collide.
#[derive(Default)]
pub(crate) struct KeyTable {
    /// Index of a key's entry; 0 is free, since the first entry of a tape is never a key.
    slots: Vec<u32>,
    used: usize,
    seed: RandomState,
}

impl KeyTable {
    /// Creates a table of the keys that `object` has so far.
    pub(crate) fn from_object(tape: &Tape, object: u32) -> Self {
        let mut table = KeyTable { slots: vec![0; 64], used: 0, seed: RandomState::new() };
        let mut at = object + 1;
        while let Some(key) = tape.entries.get(at as usize) {
            if !key.is_shadowed() {
                table.insert(tape, at);
            }
            at = tape.after(at + 1);
        }
        table
    }

    pub(crate) fn find(&self, tape: &Tape, key: &str) -> Option<u32> {
        self.slots.get(self.slot(tape, key)).copied().filter(|&index| index != 0)
    }

    /// Adds the key at `index`; it replaces an equal key.
    pub(crate) fn insert(&mut self, tape: &Tape, index: u32) {
        if self.used * 2 >= self.slots.len() {
            self.grow(tape);
        }
        let slot = self.slot(tape, tape.string(tape.entry(index)));
        if let Some(place) = self.slots.get_mut(slot) {
            self.used += usize::from(*place == 0);
            *place = index;
        }
    }

    /// Returns the slot that contains `key`, or the free one for it.
    fn slot(&self, tape: &Tape, key: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.seed.hash_one(key) as usize & mask;
        while let Some(&index) = self.slots.get(slot) {
            if index == 0 || tape.string(tape.entry(index)) == key {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self, tape: &Tape) {
        let larger = vec![0; self.slots.len() * 2];
        for index in std::mem::replace(&mut self.slots, larger) {
            if index != 0 {
                let slot = self.slot(tape, tape.string(tape.entry(index)));
                if let Some(place) = self.slots.get_mut(slot) {
                    *place = index;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn fingerprints_of_common_keys_differ() {
        let keys = ["id", "name", "text", "label", "labels", "confidence", "rationale", "risk", "explain"];
        for (at, key) in keys.iter().enumerate() {
            for other in keys.iter().skip(at + 1) {
                assert_ne!(fingerprint(key.as_bytes()), fingerprint(other.as_bytes()), "{key} {other}");
            }
        }
    }

    #[test]
    fn fingerprint_depends_on_the_length_and_on_both_ends() {
        let key = |head: u8, tail: u8, len: usize| [vec![head; 8], vec![0; len - 16], vec![tail; 8]].concat();
        for (one, other) in [
            (key(0, 0xff, 16), key(0, 0xff, 17)),
            (key(1, 0xff, 16), key(2, 0xff, 16)),
            (key(1, 0, 16), key(2, 0, 16)),
            (key(0, 1, 16), key(0, 2, 16)),
            (b"ab".to_vec(), b"ba".to_vec()),
            (b"ab".to_vec(), b"cb".to_vec()),
            (b"a".to_vec(), b"b".to_vec()),
        ] {
            assert_ne!(fingerprint(&one), fingerprint(&other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn table_is_at_most_half_full() {
        for keys in [17, 33, 64, 100, 129] {
            let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
            let value = Value::parse(&format!("{{{}}}", members.join(","))).unwrap();
            let table = &value.node().tape.tables[0];
            assert!(table.used == keys && table.slots.len() >= 2 * keys, "{keys}");
        }
    }
}
