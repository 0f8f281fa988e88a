//! The tree: 16-byte entries in the order of the source, over the text they were read from.

mod entry;
mod keys;

pub(crate) use self::entry::{Entry, Tag};
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
            let (text, entries) = (String::with_capacity(text), Vec::with_capacity(entries));
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
