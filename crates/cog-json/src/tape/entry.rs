//! One entry of the tape.

use std::ops::Range;

/// A key or a value, in 16 bytes.
///
/// | | `start` | `len` | `extra` | upper 24 bits of `meta` |
/// |---|---|---|---|---|
/// | key | offset of its text | bytes, decoded | place of the decoded text | fingerprint |
/// | string | offset of its text | bytes, decoded | place of the decoded text | – |
/// | number | offset | bytes | – | – |
/// | array, object | offset | children, earlier duplicates not counted | entry after it | key table |
/// | null, true, false | offset | – | – | – |
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    start: u32,
    len: u32,
    extra: u32,
    meta: u32,
}

/// What an entry is.
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

const TAG: u32 = 0b111;
const COMPLETE: u32 = 1 << 3;
const DECODED: u32 = 1 << 4;
const SHADOWED: u32 = 1 << 5;
const TABLE: u32 = 1 << 6;
const INTEGER: u32 = 1 << 7;
const UPPER: u32 = 8;

impl Entry {
    /// What stands for an entry that does not exist.
    pub(crate) const NONE: Entry = Entry { start: 0, len: 0, extra: 0, meta: Tag::Null as u32 };

    /// A value that has begun.
    pub(crate) const fn open(tag: Tag, start: usize) -> Self {
        Entry { start: start as u32, len: 0, extra: 0, meta: tag as u32 }
    }

    /// A value known as a whole: a literal, or a string without escapes.
    pub(crate) const fn scalar(tag: Tag, start: usize, len: usize) -> Self {
        Entry { start: start as u32, len: len as u32, extra: 0, meta: tag as u32 | COMPLETE }
    }

    pub(crate) const fn number(start: usize, len: usize, integer: bool) -> Self {
        let entry = Entry::scalar(Tag::Number, start, len);
        Entry { meta: entry.meta | if integer { INTEGER } else { 0 }, ..entry }
    }

    pub(crate) const fn with_key(self, print: u32) -> Self {
        Entry { meta: (self.meta & 0xff & !TAG) | Tag::Key as u32 | COMPLETE | (print << UPPER), ..self }
    }

    pub(crate) const fn tag(self) -> Tag {
        match self.meta & TAG {
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
        self.meta & COMPLETE != 0
    }

    pub(crate) const fn is_decoded(self) -> bool {
        self.meta & DECODED != 0
    }

    /// A later member of the same object has the same key.
    pub(crate) const fn is_shadowed(self) -> bool {
        self.meta & SHADOWED != 0
    }

    /// A number written without fraction and exponent.
    pub(crate) const fn is_integer(self) -> bool {
        self.meta & INTEGER != 0
    }

    /// Whether this is a key in force that may be the one with this fingerprint and length.
    pub(crate) const fn is_key(self, print: u32, len: usize) -> bool {
        self.meta >> UPPER == print && self.len as usize == len && self.meta & SHADOWED == 0
    }

    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    /// Children of a container.
    pub(crate) const fn count(self) -> usize {
        self.len as usize
    }

    /// The entry after a complete container.
    pub(crate) const fn next(self) -> u32 {
        self.extra
    }

    pub(crate) const fn string_range(self) -> Range<usize> {
        let start = if self.is_decoded() { self.extra } else { self.start } as usize;
        start..start + self.len as usize
    }

    pub(crate) const fn table(self) -> Option<u32> {
        if self.meta & TABLE != 0 { Some(self.meta >> UPPER) } else { None }
    }

    pub(crate) const fn set_table(&mut self, table: u32) {
        self.meta |= TABLE | (table << UPPER);
    }

    pub(crate) const fn set_len(&mut self, len: usize) {
        self.len = len as u32;
    }

    pub(crate) const fn add_child(&mut self) {
        self.len += 1;
    }

    /// From here on the text of this string stands decoded, at `place`.
    pub(crate) const fn set_decoded(&mut self, place: usize) {
        self.meta |= DECODED;
        self.extra = place as u32;
    }

    pub(crate) const fn set_shadowed(&mut self) {
        self.meta |= SHADOWED;
    }

    pub(crate) const fn set_complete(&mut self) {
        self.meta |= COMPLETE;
    }

    pub(crate) const fn close(&mut self, next: u32) {
        self.extra = next;
        self.meta |= COMPLETE;
    }
}
