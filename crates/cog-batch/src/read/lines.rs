//! Lines of a limited length.

use std::io::{self, BufRead as _, BufReader, Read};

use bytes::{Buf as _, Bytes, BytesMut};

use crate::{
    RowHash,
    row::{MAX_LINE, RowHasher},
};

/// The bytes that are read at once, and of the lines after which a group of rows ends, so that rows that are read ahead take little
/// memory.
const GROUP: usize = 128 << 10;
/// The least that a line counts in a group.
const MIN_LINE: usize = 256;

/// Reads lines. Of a line that is too long, only the hash is kept.
///
/// The lines of a group share memory, so that the thread that uses them does not free each one: memory that one thread allocates
/// and another frees takes a lock.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    /// What was read and is in no line yet.
    block: BytesMut,
    /// The bytes of the block that contain no line break.
    searched: usize,
    number: u64,
    /// The bytes of the lines in the current group.
    group: usize,
}

/// A line without its end.
pub(super) enum Line {
    /// The bytes of the line.
    Text(Bytes),
    /// The line is longer than [`MAX_LINE`].
    TooLarge(RowHash),
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        let input = BufReader::with_capacity(GROUP, input);
        Self { input, block: BytesMut::new(), searched: 0, number: 0, group: 0 }
    }

    /// Returns the bytes that were read and that no line contains yet.
    pub(super) fn buffered(&self) -> usize {
        self.block.len() + self.input.buffer().len()
    }

    /// Returns the number of the last line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether a group of rows ends after the last line: the next one needs more input than was read, or the group is
    /// large.
    pub(super) fn ends_group(&mut self) -> bool {
        let is_end = self.group >= GROUP || self.line_end().is_none();
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
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(end) = self.line_end() {
                let line = self.block.split_to(end).freeze();
                self.block.advance(1);
                return Ok(Some(self.line(line)));
            }
            if self.block.len() > MAX_LINE {
                return self.skip_line().map(Some);
            }
            if !self.fill()? {
                let last = self.block.split().freeze();
                self.searched = 0;
                return Ok((!last.is_empty()).then(|| self.line(last)));
            }
        }
    }

    /// Returns where the first line of the block ends.
    fn line_end(&mut self) -> Option<usize> {
        let rest = self.block.get(self.searched..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).map(|at| self.searched + at);
        self.searched = end.unwrap_or(self.block.len());
        end
    }

    /// Adds what is read at once to the block. Returns false at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        let read = self.input.fill_buf()?;
        let length = read.len();
        if length > self.block.capacity() - self.block.len() {
            self.block.reserve(GROUP); // copies the beginning of a line, if lines share the memory before it
        }
        self.block.extend_from_slice(read);
        self.input.consume(length);
        Ok(length > 0)
    }

    fn line(&mut self, mut line: Bytes) -> Line {
        self.searched = 0;
        self.count(line.len());
        if line.len() > MAX_LINE {
            return Line::TooLarge(RowHash::from_bytes(&line));
        }
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Line::Text(line)
    }

    fn count(&mut self, length: usize) {
        self.number += 1;
        self.group += length.max(MIN_LINE);
    }

    /// Reads a line that is too long.
    fn skip_line(&mut self) -> io::Result<Line> {
        let mut hash = RowHasher::new();
        loop {
            let end = self.line_end();
            let part = self.block.split_to(end.unwrap_or(self.block.len()));
            hash.add(&part);
            self.searched = 0;
            if end.is_some() {
                self.block.advance(1);
                break;
            }
            if !self.fill()? {
                break;
            }
        }
        self.block = BytesMut::from(&*self.block); // the memory of the line is not kept
        self.count(MAX_LINE);
        Ok(Line::TooLarge(hash.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of lines in the groups of this input.
    fn groups(input: &str) -> Vec<u64> {
        let mut lines = Lines::new(input.as_bytes());
        let mut groups = Vec::new();
        let mut before = 0;
        while lines.next().unwrap().is_some() {
            if lines.ends_group() {
                groups.push(lines.number() - before);
                before = lines.number();
            }
        }
        groups
    }

    /// Returns the lines of an input that is read in these parts: their texts, and the hashes of those that are too long.
    fn lines(parts: &[&[u8]]) -> Vec<String> {
        let parts = parts
            .iter()
            .fold(Box::new(io::empty()) as Box<dyn Read>, |all, part| Box::new(Read::chain(all, *part)));
        let mut lines = Lines::new(parts);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => String::from_utf8(text.into()).unwrap(),
                Line::TooLarge(hash) => format!("{:08x}", hash.to_u32()),
            });
        }
        found
    }

    #[test]
    fn lines_are_the_same_in_any_parts() {
        let text = "one\n\ntwo\r\n\r\n é \r\nlast";
        let expected = ["one", "", "two", "", " é ", "last"];
        assert_eq!(lines(&[text.as_bytes()]), expected);
        assert_eq!(lines(&text.as_bytes().chunks(1).collect::<Vec<_>>()), expected);
        assert_eq!(lines(&[]), Vec::<String>::new());
    }

    #[test]
    fn line_that_is_too_long_has_the_hash_of_its_bytes() {
        let long = "x".repeat(MAX_LINE + 1);
        let hash = format!("{:08x}", RowHash::from_bytes(long.as_bytes()).to_u32());
        let (begin, end) = long.as_bytes().split_at(MAX_LINE / 3);
        assert_eq!(lines(&[b"a\n", begin, end, b"\nb"]), ["a", &hash, "b"]);
        assert_eq!(lines(&[begin, end]), [hash]);
        assert_eq!(lines(&[&long.as_bytes()[1..]])[0].len(), MAX_LINE);
    }

    #[test]
    fn line_that_has_not_arrived_does_not_delay_the_lines_before_it() {
        let mut lines = Lines::new(Read::chain(&b"1\n2\n3"[..], &b"\n4\n"[..]));
        let mut next = || (lines.next().unwrap().is_some(), lines.ends_group(), lines.number());
        assert_eq!(
            [next(), next(), next(), next()],
            [(true, false, 1), (true, true, 2), (true, false, 3), (true, true, 4)]
        );
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
