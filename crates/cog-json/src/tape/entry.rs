//! One entry of the tape.

use std::ops::Range;

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
