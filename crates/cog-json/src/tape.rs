//! The tree: 16-byte entries in the order of the source, over the text they were read from.

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
};

/// The text of a document and one entry for each key and value in it.
///
/// A member is two entries, the key and then the value; an array or object is followed by its contents. An entry never
/// moves. Nothing before a complete entry changes, except that a duplicate key marks the earlier one as shadowed.
#[derive(Default)]
pub(crate) struct Tape {
    /// The parsed text. Strings without escapes and numbers point into it.
    pub(crate) text: String,
    /// The decoded text of strings with escapes, and of numbers that JSON writes in another form.
    pub(crate) decoded: String,
    pub(crate) entries: Vec<Entry>,
    /// For objects of more than [`SMALL`] keys.
    pub(crate) tables: Vec<KeyTable>,
}

/// The maximum number of keys for which a linear search is faster than a table.
pub(crate) const SMALL: u32 = 16;

impl Tape {
    /// Forgets everything. The memory stays, except what is beyond `retained` bytes of text.
    pub(crate) fn clear(&mut self, retained: usize) {
        if self.text.capacity() > retained || self.entries.capacity() > retained {
            *self = Self::default();
        }
        self.text.clear();
        self.decoded.clear();
        self.entries.clear();
        self.tables.clear();
    }

    /// Returns the entry at `index`; an unknown index reads as an open `null`.
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Entry {
        self.entries.get(index as usize).copied().unwrap_or(Entry::NONE)
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        // The limits keep the tape far below 2^32 entries.
        self.entries.len() as u32
    }

    /// Changes the entry at `index`.
    #[inline]
    pub(crate) fn update(&mut self, index: u32, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            change(entry);
        }
    }

    /// Adds `key`, the last entry so far, to an object, and shadows the `earlier` entry of that key (0: none). `keys` is
    /// the number of key entries of the object, this one included.
    #[inline]
    pub(crate) fn add_member(&mut self, object: u32, key: u32, earlier: u32, keys: u32) {
        if earlier != 0 {
            self.update(earlier, Entry::set_shadowed);
        }
        if keys > SMALL {
            self.add_to_table(object, key);
        }
    }

    /// The decoded text of a key or string.
    #[inline]
    pub(crate) fn string(&self, entry: Entry) -> &str {
        let source = if entry.is_decoded() { &self.decoded } else { &self.text };
        source.get(entry.string_range()).unwrap_or_default()
    }

    /// The literal of a number; it is decoded if JSON writes it in another form.
    #[inline]
    pub(crate) fn literal(&self, entry: Entry) -> &str {
        self.string(entry)
    }

    /// Returns the index after a value and its contents.
    #[inline]
    pub(crate) fn after(&self, index: u32) -> u32 {
        let entry = self.entry(index);
        match entry.is_container() {
            false => index + 1,
            true if entry.is_complete() => entry.next(),
            true => self.len(),
        }
    }

    /// The key entry at `index`, and the index after its value.
    #[inline]
    pub(crate) fn member(&self, index: u32) -> (Entry, u32) {
        // Most values are scalars, which are one entry long.
        match self.entries.get(index as usize..) {
            Some([key, value, ..]) if !value.is_container() => (*key, index + 2),
            _ => (self.entry(index), self.after(index + 1)),
        }
    }

    /// The key entry of the last member called `key`, its fingerprint being `print`.
    #[inline]
    pub(crate) fn find(&self, object: u32, key: &str, print: u32) -> Option<u32> {
        let entry = self.entry(object);
        match entry.table().and_then(|table| self.tables.get(table as usize)) {
            Some(table) => table.find(self, key),
            None => self.walk(object, key, print),
        }
    }

    #[cold]
    fn add_to_table(&mut self, object: u32, key: u32) {
        // The table is taken out, because it reads the keys on this tape.
        let known = self.entry(object).table();
        let taken = known.and_then(|table| self.tables.get_mut(table as usize)).map(std::mem::take);
        let table = match taken {
            Some(mut table) => {
                table.insert(self, key);
                table
            }
            None => KeyTable::from_object(self, object),
        };
        match known.and_then(|table| self.tables.get_mut(table as usize)) {
            Some(place) => *place = table,
            None => {
                let place = self.tables.len() as u32;
                self.update(object, |entry| entry.set_table(place));
                self.tables.push(table);
            }
        }
    }

    #[inline]
    fn walk(&self, object: u32, key: &str, print: u32) -> Option<u32> {
        let end = self.after(object);
        let mut at = object + 1;
        while at < end {
            let (entry, after) = self.member(at);
            if entry.is_key(print, key.len()) && self.string(entry) == key {
                return Some(at);
            }
            at = after;
        }
        None
    }
}

// One entry of the tape.

/// A key or a value, in 16 bytes.
///
/// Two 64-bit integers of two halves each, so that an entry fits in two registers.
///
/// | | `start` | `len` | `extra` | upper 24 bits of `meta` |
/// |---|---|---|---|---|
/// | key | offset of its text | bytes, decoded | offset of the decoded text | fingerprint |
/// | string | offset of its text | bytes, decoded | offset of the decoded text | – |
/// | number | offset | bytes | – | – |
/// | array, object | offset | children, earlier duplicates not counted | entry after it | key table |
/// | null, true, false | offset | – | – | – |
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// `start` below, `len` above.
    text: u64,
    /// `meta` below, `extra` above.
    state: u64,
}

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tag {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
    Key,
}

const TAG: u64 = 0b111;
const COMPLETE: u64 = 1 << 3;
const DECODED: u64 = 1 << 4;
const SHADOWED: u64 = 1 << 5;
const TABLE: u64 = 1 << 6;
const INTEGER: u64 = 1 << 7;
const UPPER: u32 = 8;
const HALF: u32 = 32;

impl Entry {
    /// Replaces an entry that does not exist.
    pub(crate) const NONE: Entry = Entry { text: 0, state: Tag::Null as u64 };

    /// Creates an incomplete value.
    pub(crate) const fn open(tag: Tag, start: usize) -> Self {
        Entry { text: start as u64, state: tag as u64 }
    }

    /// Creates a complete value: a literal, or a string without escapes.
    pub(crate) const fn scalar(tag: Tag, start: usize, len: usize) -> Self {
        Entry { text: start as u64 | (len as u64) << HALF, state: tag as u64 | COMPLETE }
    }

    pub(crate) const fn number(start: usize, len: usize, integer: bool) -> Self {
        let entry = Entry::scalar(Tag::Number, start, len);
        Entry { state: entry.state | if integer { INTEGER } else { 0 }, ..entry }
    }

    /// Converts a string into a key with its fingerprint.
    pub(crate) const fn with_key(self, print: u32) -> Self {
        Entry { state: self.state | Tag::Key as u64 | COMPLETE | (print as u64) << UPPER, ..self }
    }

    pub(crate) const fn tag(self) -> Tag {
        match self.state & TAG {
            0 => Tag::Null,
            1 => Tag::False,
            2 => Tag::True,
            3 => Tag::Number,
            4 => Tag::String,
            5 => Tag::Array,
            6 => Tag::Object,
            _ => Tag::Key,
        }
    }

    pub(crate) const fn is_container(self) -> bool {
        matches!(self.tag(), Tag::Array | Tag::Object)
    }

    pub(crate) const fn is_complete(self) -> bool {
        self.state & COMPLETE != 0
    }

    pub(crate) const fn is_decoded(self) -> bool {
        self.state & DECODED != 0
    }

    /// Whether a later member of the object has this key.
    pub(crate) const fn is_shadowed(self) -> bool {
        self.state & SHADOWED != 0
    }

    /// Whether a number was written without fraction and exponent.
    pub(crate) const fn is_integer(self) -> bool {
        self.state & INTEGER != 0
    }

    /// Whether this is a key with this fingerprint and length that is not shadowed.
    pub(crate) const fn is_key(self, print: u32, len: usize) -> bool {
        self.upper() == print && self.count() == len && !self.is_shadowed()
    }

    pub(crate) const fn start(self) -> usize {
        self.text as u32 as usize
    }

    /// Returns the number of children of a container, otherwise the number of bytes.
    pub(crate) const fn count(self) -> usize {
        (self.text >> HALF) as usize
    }

    /// The entry after a complete container.
    pub(crate) const fn next(self) -> u32 {
        (self.state >> HALF) as u32
    }

    pub(crate) const fn string_range(self) -> Range<usize> {
        let start = if self.is_decoded() { self.next() as usize } else { self.start() };
        start..start + self.count()
    }

    pub(crate) const fn table(self) -> Option<u32> {
        if self.state & TABLE != 0 { Some(self.upper()) } else { None }
    }

    const fn upper(self) -> u32 {
        self.state as u32 >> UPPER
    }

    pub(crate) const fn set_table(&mut self, table: u32) {
        self.state |= TABLE | (table as u64) << UPPER;
    }

    pub(crate) const fn set_len(&mut self, len: usize) {
        self.text = self.start() as u64 | (len as u64) << HALF;
    }

    /// Marks the text of this string as decoded, at the offset `place`.
    pub(crate) const fn set_decoded(&mut self, place: usize) {
        self.state |= DECODED | (place as u64) << HALF;
    }

    pub(crate) const fn set_shadowed(&mut self) {
        self.state |= SHADOWED;
    }

    pub(crate) const fn set_complete(&mut self) {
        self.state |= COMPLETE;
    }

    pub(crate) const fn close(&mut self, next: u32) {
        self.state |= COMPLETE | (next as u64) << HALF;
    }
}

// Finding keys: a fingerprint in each key entry, and a table for objects with many keys.

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
    fn cleared_tape_has_the_memory_that_it_may_retain() {
        for (text, entries, retained, is_kept) in [
            (100, 0, 100, true),
            (100, 0, 101, true),
            (100, 0, 99, false),
            (0, 100, 100, true),
            (0, 100, 101, true),
            (0, 100, 99, false),
        ] {
            let text = String::with_capacity(text);
            let entries = Vec::with_capacity(entries);
            let before = text.capacity() + entries.capacity();
            let mut tape = Tape { text, entries, ..Tape::default() };
            tape.clear(retained);
            let after = tape.text.capacity() + tape.entries.capacity();
            assert_eq!(after, if is_kept { before } else { 0 }, "{before} {retained}");
        }
    }

    #[test]
    fn only_an_object_of_many_keys_has_a_table() {
        for (keys, tables) in [(SMALL, 0), (SMALL + 1, 1)] {
            let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
            let value = Value::parse(&format!("{{{}}}", members.join(","))).unwrap();
            assert_eq!(value.node().tape.tables.len(), tables, "{keys}");
        }
    }
}

#[cfg(test)]
mod keys_tests {
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
