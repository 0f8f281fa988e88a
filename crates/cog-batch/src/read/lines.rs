//! Lines of a limited length.

use std::io::{self, BufRead as _, BufReader, Read};

use crc32fast::Hasher;

use crate::RowHash;

/// The maximum length of a line or a CSV record, in bytes.
pub(super) const MAX_LINE: usize = 16 << 20;
/// The bytes that are read at once.
const BUFFER: usize = 64 << 10;
/// The bytes of the lines after which a group of rows ends, so that rows that are read ahead take little memory.
const GROUP: usize = 128 << 10;
/// The least that a line counts in a group.
const MIN_LINE: usize = 256;
/// The capacity that the buffer of a line keeps.
const KEPT: usize = 1 << 20;

/// Reads lines. Of a line that is too long, only the hash is kept.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    /// The bytes of the lines in the current group.
    group: usize,
}

/// A line without its end.
pub(super) enum Line<'a> {
    /// The bytes of the line.
    Text(&'a [u8]),
    /// The line is longer than [`MAX_LINE`].
    TooLarge(RowHash),
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(BUFFER, input), line: Vec::new(), number: 0, group: 0 }
    }

    /// Returns the bytes that were read and that no line contains yet.
    pub(super) fn buffered(&self) -> usize {
        self.input.buffer().len()
    }

    /// Returns the number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether a group of rows ends after the last line: the next one may need more input than was read, or the group is
    /// large.
    pub(super) fn ends_group(&mut self) -> bool {
        let is_end = self.input.buffer().is_empty() || self.group >= GROUP;
        if is_end {
            self.group = 0;
        }
        is_end
    }

    /// Returns the first bytes of the input, without taking them.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    /// Skips bytes that were peeked.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.input.consume(bytes);
    }

    /// Returns the next line; none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        self.line.shrink_to(KEPT);
        let mut hash = None;
        let mut is_empty = true;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            is_empty = false;
            let end = memchr::memchr(b'\n', buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let taken = part.len() + usize::from(end.is_some());
            match &mut hash {
                None if self.line.len() + part.len() > MAX_LINE => {
                    let hasher = hash.insert(Hasher::new());
                    hasher.update(&self.line);
                    hasher.update(part);
                    self.line = Vec::new();
                }
                None => self.line.extend_from_slice(part),
                Some(hasher) => hasher.update(part),
            }
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if is_empty {
            return Ok(None);
        }
        self.number += 1;
        self.group += self.line.len().max(MIN_LINE);
        if let Some(hash) = hash {
            return Ok(Some(Line::TooLarge(RowHash::from_u32(hash.finalize()))));
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(Line::Text(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of lines in the groups of this input.
    fn groups(input: &str) -> Vec<u64> {
        let mut lines = Lines::new(input.as_bytes());
        let (mut groups, mut before) = (Vec::new(), 0);
        while lines.next().unwrap().is_some() {
            if lines.ends_group() {
                groups.push(lines.number() - before);
                before = lines.number();
            }
        }
        groups
    }

    #[test]
    fn group_of_rows_that_are_read_ahead_is_small() {
        let line = format!("{}\n", "x".repeat(1_000));
        let found = groups(&line.repeat(2_000));
        assert!(found.iter().all(|lines| (1..=GROUP as u64 / 1_000 + 1).contains(lines)), "{found:?}");
        assert_eq!(found.iter().sum::<u64>(), 2_000);
        assert!(groups(&"\n".repeat(10_000)).iter().all(|lines| *lines <= 512), "empty lines count, too");
    }
}
