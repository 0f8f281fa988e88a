//! The tree: 16-byte entries in the order of the source, over the text they were read from.

mod keys;

use std::ops::Range;

pub(crate) use self::keys::{KeyTable, fingerprint};

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
