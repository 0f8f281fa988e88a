//! What a session has told, as it told it.

use cog_json::{ToJson as _, Writer};
use cog_spec::Chunk;

/// How many bytes only an entry has that holds a medium.
const MEDIUM: usize = 1 << 20;
/// How many entries a medium and the end that tells it again lie apart at most.
const NEWEST: usize = 32;

/// The chunks of one session as lines of JSON: one buffer, and a small mark at the end of each.
///
/// A *place* is the number of an entry, the meta chunk being 0. Places stay what they are when the oldest entries
/// leave; the meta chunk never leaves, because every resumed stream begins with it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every entry with its line break.
    text: String,
    marks: Vec<Mark>,
    /// How many entries have left, from place 1 on.
    left: u64,
    /// The `seq` of the last that left.
    floor: u64,
}

/// Where an entry ends, and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Of the last numbered chunk up to here; 0 on meta.
    pub(crate) seq: u64,
    /// Where its line ends, from the beginning of the text that it marks.
    pub(crate) end: u32,
    pub(crate) event: Event,
    /// It carries a checkpoint (ruling R52).
    pub(crate) has_checkpoint: bool,
}

/// What an entry is: the name of its server-sent event (ruling R51).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Meta,
    Chunk,
    Progress,
    Final,
    Error,
}

/// Entries that were asked for have left the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left;

impl Log {
    /// Writes a chunk.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        chunk.write_json(&mut Writer::compact(&mut self.text));
        let has_checkpoint = matches!(chunk, Chunk::Delta { checkpoint: Some(_), .. });
        self.mark(Event::of(chunk), chunk.seq(), has_checkpoint);
    }

    /// MediaCapabilities in a chunk that was written before: one line, without its break.
    pub(crate) fn push_line(&mut self, line: &str, event: Event, seq: Option<u64>, has_checkpoint: bool) {
        self.text.push_str(line);
        self.mark(event, seq, has_checkpoint);
    }

    fn mark(&mut self, event: Event, seq: Option<u64>, has_checkpoint: bool) {
        self.text.push('\n');
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.marks.push(Mark { seq: seq.unwrap_or(self.last_seq()), end, event, has_checkpoint });
    }

    /// The number of the last numbered chunk; 0 before the first.
    pub(crate) fn last_seq(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.seq)
    }

    /// The lowest `last_seq` that can be gone on from.
    pub(crate) fn first_seq(&self) -> u64 {
        self.floor
    }

    /// The place after the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.left + self.marks.len() as u64
    }

    /// The place after the chunk of this number, or after the last entry where it is still to come.
    pub(crate) fn after(&self, seq: u64) -> Result<u64, Left> {
        if seq < self.floor {
            return Err(Left);
        }
        if seq == self.floor && self.left > 0 {
            return Ok(self.left + 1);
        }
        let before = self.marks.partition_point(|mark| mark.seq < seq);
        Ok((self.left + before as u64 + 1).min(self.end()))
    }

    /// The entries of places from `from` up to `to`, copied: as many as `limit` bytes hold, and one at least where
    /// there is one.
    pub(crate) fn copy(&self, from: u64, to: u64, limit: usize) -> Result<(String, Vec<Mark>), Left> {
        let first = self.index(from)?;
        let last = if from == 0 && self.left > 0 { 1 } else { self.index(to.min(self.end()))? };
        let begin = self.end_before(first);
        let marks = self.marks.get(first..last.max(first)).unwrap_or_default();
        let fitting = marks.partition_point(|mark| mark.end as usize <= begin + limit).max(1);
        let marks = marks.get(..fitting).unwrap_or(marks);
        let end = marks.last().map_or(begin, |mark| mark.end as usize);
        let text = self.text.get(begin..end).unwrap_or_default();
        let moved = |mark: &Mark| Mark { end: mark.end.saturating_sub(u32_of(begin)), ..*mark };
        Ok((text.to_owned(), marks.iter().map(moved).collect()))
    }

    fn index(&self, place: u64) -> Result<usize, Left> {
        match place {
            0 => Ok(0),
            _ if place > self.left => Ok(usize::try_from(place - self.left).unwrap_or(usize::MAX)),
            _ => Err(Left),
        }
    }

    fn end_before(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.marks.get(before)).map_or(0, |mark| mark.end as usize)
    }

    /// The entries still there, each with its mark.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (Mark, &str)> {
        self.marks.iter().enumerate().map(|(index, mark)| {
            let line = self.text.get(self.end_before(index)..mark.end as usize).unwrap_or_default();
            (*mark, line.trim_end())
        })
    }

    /// The meta chunk, as it was told.
    pub(crate) fn meta(&self) -> Option<&str> {
        let end = self.marks.first()?.end as usize;
        self.text.get(..end).map(str::trim_end)
    }

    /// Whether the last entry is an end.
    pub(crate) fn is_over(&self) -> bool {
        self.marks.last().is_some_and(|mark| mark.event.is_end())
    }

    /// MediaCapabilities back the end, where there is one: the session goes on.
    pub(crate) fn reopen(&mut self) {
        if self.is_over() {
            self.marks.pop();
            self.text.truncate(self.end_before(self.marks.len()));
        }
    }

    /// The bytes it takes up.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(self.marks.as_slice())
    }

    /// Lets the oldest entries leave where it is over `limit` bytes: a quarter more than needed, so that this stays
    /// rare. The meta chunk and the newest entry stay.
    ///
    /// A medium in an answer is told twice within a moment, in its place and at the end. So that its readers need not be
    /// faster than that, what is as large leaves room for as much again.
    pub(crate) fn bound(&mut self, limit: usize) {
        if self.bytes() <= limit || self.marks.len() < 3 {
            return;
        }
        let limit = limit + self.newest_medium() * 4;
        if self.bytes() <= limit {
            return;
        }
        let meta = self.end_before(1);
        let surplus = self.bytes() - (limit - limit / 4);
        let freed =
            |(before, mark): (usize, &Mark)| mark.end as usize - meta + (before + 1) * size_of::<Mark>();
        let within = self.marks.iter().skip(1).enumerate().map(freed).take_while(|freed| *freed < surplus);
        let leaving = (within.count() + 1).min(self.marks.len() - 2);
        let Some(last) = self.marks.get(leaving).copied() else { return };
        let gone = last.end - u32_of(meta);
        self.text.replace_range(meta..last.end as usize, "");
        self.marks.drain(1..=leaving);
        self.marks.iter_mut().skip(1).for_each(|mark| mark.end -= gone);
        self.left += leaving as u64;
        self.floor = last.seq;
    }

    /// The bytes of the largest of the newest entries, where only a medium is so large.
    fn newest_medium(&self) -> usize {
        let newest = self.marks.len().saturating_sub(NEWEST)..self.marks.len();
        let bytes = newest.map(|index| self.end_before(index + 1) - self.end_before(index));
        bytes.max().filter(|bytes| *bytes >= MEDIUM).unwrap_or_default()
    }

    /// Gives back what it took in advance.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.marks.shrink_to_fit();
    }
}

fn u32_of(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Event {
    fn of(chunk: &Chunk) -> Self {
        match chunk {
            Chunk::Meta { .. } => Self::Meta,
            Chunk::Progress(_) => Self::Progress,
            Chunk::Final { .. } => Self::Final,
            Chunk::Error { .. } => Self::Error,
            Chunk::Delta { .. } | Chunk::Snapshot { .. } => Self::Chunk,
        }
    }

    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::Final | Self::Error)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Chunk => "chunk",
            Self::Progress => "progress",
            Self::Final => "final",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests;
