//! The log of a session: its chunks as they were sent.

use cog_answer::DataAccumulator;
use cog_json::{Node, Path, ToJson as _, Value, Writer};
use cog_spec::{Chunk, PartAnswer, PartProgress, Progress};
use serde::Deserialize as _;
use serde_json::Value as Json;

use crate::parts_state::FinishedParts;

/// The minimum bytes of an entry that is treated as a media item.
const MIN_MEDIA: usize = 1 << 20;
/// The maximum number of entries between a media item and the final event that repeats it.
const NEWEST: usize = 32;

/// The chunks of one session as lines of JSON: one buffer, and a small mark at the end of each line.
///
/// The *position* of an entry is its number; the meta chunk has position 0. Positions do not change when the
/// oldest entries are dropped. The meta chunk is never dropped, because every resumed stream begins with it.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Every entry with its line break.
    text: String,
    marks: Vec<Mark>,
    /// The number of dropped entries, from position 1 on.
    dropped: u64,
    /// The `seq` of the last dropped entry.
    dropped_seq: u64,
}

/// The end of an entry and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// The `seq` of the last numbered chunk up to this entry; 0 on meta.
    pub(crate) seq: u64,
    /// The end of its line, from the beginning of the marked text.
    pub(crate) end: u32,
    pub(crate) event: Event,
    /// Whether the entry has a checkpoint (ruling R52).
    pub(crate) has_checkpoint: bool,
}

/// The type of an entry: the name of its server-sent event (ruling R51).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Meta,
    Chunk,
    Progress,
    Final,
    Error,
    /// The answer of a part of a composition, which readers do not receive.
    PartAnswer,
}

/// The requested entries were dropped from the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dropped;

impl Log {
    /// Appends a chunk, after the answer of the part that it reports.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        self.push_answer(chunk);
        chunk.write_json(&mut Writer::compact(&mut self.text));
        let has_checkpoint = matches!(chunk, Chunk::Delta { checkpoint: Some(_), .. });
        self.mark(Event::from_chunk(chunk), chunk.seq(), has_checkpoint);
    }

    fn push_answer(&mut self, chunk: &Chunk) {
        let Chunk::Progress(Progress { part: Some(part), .. }) = chunk else { return };
        if write_part_answer(part, &mut self.text) {
            self.mark(Event::PartAnswer, None, false);
        }
    }

    /// Appends a serialized chunk: one line, without its line break.
    pub(crate) fn push_line(&mut self, line: &str, event: Event, seq: Option<u64>, has_checkpoint: bool) {
        self.text.push_str(line);
        self.mark(event, seq, has_checkpoint);
    }

    fn mark(&mut self, event: Event, seq: Option<u64>, has_checkpoint: bool) {
        self.text.push('\n');
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.marks.push(Mark { seq: seq.unwrap_or(self.last_seq()), end, event, has_checkpoint });
    }

    /// Returns the `seq` of the last numbered chunk; 0 before the first.
    pub(crate) fn last_seq(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.seq)
    }

    /// Returns the lowest `last_seq` from which a client can resume.
    pub(crate) fn first_seq(&self) -> u64 {
        self.dropped_seq
    }

    /// Returns the position after the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.marks.len() as u64
    }

    /// Returns the position after the chunk of this number, or after the last entry when there is no such
    /// chunk yet.
    pub(crate) fn after(&self, seq: u64) -> Result<u64, Dropped> {
        if seq < self.dropped_seq {
            return Err(Dropped);
        }
        if seq == self.dropped_seq && self.dropped > 0 {
            return Ok(self.dropped + 1);
        }
        let before = self.marks.partition_point(|mark| mark.seq < seq);
        Ok((self.dropped + before as u64 + 1).min(self.end()))
    }

    /// Copies the entries from position `from` up to `to`. Returns as many as fit in `limit` bytes, but at
    /// least one if available.
    pub(crate) fn copy(&self, from: u64, to: u64, limit: usize) -> Result<(String, Vec<Mark>), Dropped> {
        let first = self.index(from)?;
        // After the meta chunk there is a gap if entries were dropped: it is copied alone, and the next read reports the gap.
        let last = if from == 0 && self.dropped > 0 { 1 } else { self.index(to.min(self.end()))? };
        let begin = self.end_before(first);
        let marks = self.marks.get(first..last.max(first)).unwrap_or_default();
        let fitting = marks.partition_point(|mark| mark.end as usize <= begin + limit).max(1);
        let marks = marks.get(..fitting).unwrap_or(marks);
        let end = marks.last().map_or(begin, |mark| mark.end as usize);
        let text = self.text.get(begin..end).unwrap_or_default();
        let mut marks = marks.to_vec();
        marks.iter_mut().for_each(|mark| mark.end = mark.end.saturating_sub(u32_of(begin)));
        Ok((text.to_owned(), marks))
    }

    /// Returns the position of the first entry from this position on that readers receive.
    pub(crate) fn skip_answers(&self, position: u64) -> u64 {
        let Ok(index) = self.index(position) else { return position };
        let marks = self.marks.iter().skip(index);
        position + marks.take_while(|mark| mark.event == Event::PartAnswer).count() as u64
    }

    fn index(&self, position: u64) -> Result<usize, Dropped> {
        match position {
            0 => Ok(0),
            _ if position > self.dropped => {
                Ok(usize::try_from(position - self.dropped).unwrap_or(usize::MAX))
            }
            _ => Err(Dropped),
        }
    }

    fn end_before(&self, index: usize) -> usize {
        index.checked_sub(1).and_then(|before| self.marks.get(before)).map_or(0, |mark| mark.end as usize)
    }

    /// Returns the entries in the log, each with its mark.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (Mark, &str)> {
        self.marks.iter().enumerate().map(|(index, mark)| {
            let line = self.text.get(self.end_before(index)..mark.end as usize).unwrap_or_default();
            (*mark, line.trim_end())
        })
    }

    /// Returns the meta chunk as it was sent.
    pub(crate) fn meta(&self) -> Option<&str> {
        let end = self.marks.first()?.end as usize;
        self.text.get(..end).map(str::trim_end)
    }

    /// Returns whether the last entry is a final event.
    pub(crate) fn is_over(&self) -> bool {
        self.marks.last().is_some_and(|mark| mark.event.is_end())
    }

    /// Removes the final event, if any, so that the session can continue.
    pub(crate) fn reopen(&mut self) {
        if self.is_over() {
            self.marks.pop();
            self.text.truncate(self.end_before(self.marks.len()));
        }
    }

    /// Returns the bytes that the log occupies.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(self.marks.as_slice())
    }

    /// Drops the oldest entries when the log exceeds `limit` bytes. It drops a quarter more than needed, so
    /// that this is rare. The meta chunk and the newest entry are retained.
    ///
    /// A media item in an answer is sent twice within a moment: in its field and in the final event. The
    /// limit grows with such entries, so that readers have time for both.
    pub(crate) fn bound(&mut self, limit: usize) {
        if self.bytes() <= limit || self.marks.len() < 3 {
            return;
        }
        let limit = limit + self.newest_media() * 4;
        if self.bytes() <= limit {
            return;
        }
        let meta = self.end_before(1);
        let surplus = self.bytes() - (limit - limit / 4);
        let freed =
            |(before, mark): (usize, &Mark)| mark.end as usize - meta + (before + 1) * size_of::<Mark>();
        let within = self.marks.iter().skip(1).enumerate().map(freed).take_while(|freed| *freed < surplus);
        let count = (within.count() + 1).min(self.marks.len() - 2);
        let Some(last) = self.marks.get(count).copied() else { return };
        let removed = last.end - u32_of(meta);
        self.text.replace_range(meta..last.end as usize, "");
        self.marks.drain(1..=count);
        self.marks.iter_mut().skip(1).for_each(|mark| mark.end -= removed);
        self.dropped += count as u64;
        self.dropped_seq = last.seq;
    }

    /// Returns the bytes of the largest of the newest entries, when it is as large as a media item.
    fn newest_media(&self) -> usize {
        let newest = self.marks.len().saturating_sub(NEWEST)..self.marks.len();
        let bytes = newest.map(|index| self.end_before(index + 1) - self.end_before(index));
        bytes.max().filter(|bytes| *bytes >= MIN_MEDIA).unwrap_or_default()
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.marks.shrink_to_fit();
    }
}

fn u32_of(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Event {
    fn from_chunk(chunk: &Chunk) -> Self {
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
            Self::PartAnswer => "part_answer",
        }
    }
}

// The answers of the parts of a composition, each as a line of the log.

/// Writes the answer that the progress of a part contains, as a line without its line break. Returns whether it has one.
pub(crate) fn write_part_answer(part: &PartProgress, text: &mut String) -> bool {
    let Some(answer) = &part.answer else { return false };
    Writer::compact(text).object(|w| {
        w.field("part", &part.path);
        w.field("part_answer", answer);
    });
    true
}

/// Reads the path of a part and its answer from a line; none if the line has another form.
pub(crate) fn read_part_answer(line: &str) -> Option<(String, PartAnswer)> {
    let value = Value::parse(line).ok()?;
    let answer = PartAnswer::deserialize(value.get("part_answer")?).ok()?;
    Some((value.get("part")?.as_str()?.to_owned(), answer))
}

/// Returns the answers of the parts that were done. An answer that was dropped from the log is absent.
pub(crate) fn finished_parts(log: &Log) -> FinishedParts {
    let answers = log.entries().filter(|(mark, _)| mark.event == Event::PartAnswer);
    answers.filter_map(|(_, line)| read_part_answer(line)).collect()
}

// The partial answer of an interrupted run (ruling R43).

/// Returns the `partial_data` of a stream that its store ends.
///
/// It comes from the last final event, otherwise the data of the chunks without the fields that were reported
/// as violations. None without data, and when the oldest chunks were dropped.
pub(crate) fn from_log(log: &Log) -> Option<Value> {
    match log.entries().next_back() {
        Some((mark, line)) if mark.event == Event::Error => {
            let end = Value::parse(line).ok()?;
            end.get("partial_data").filter(|data| data.is_object()).map(|data| end.child(data))
        }
        _ if log.first_seq() > 0 => None,
        _ => applied(log),
    }
}

fn applied(log: &Log) -> Option<Value> {
    let mut accumulator = DataAccumulator::default();
    let mut violating: Vec<Path> = Vec::new();
    for (mark, line) in log.entries() {
        let value = Value::parse(line).ok()?;
        match mark.event {
            Event::Chunk => {
                let chunk = chunk(&value, value.get("chunk")?)?;
                if matches!(chunk, Chunk::Snapshot { field: None, .. }) {
                    violating.clear(); // the snapshot replaces all data
                }
                accumulator.apply(&chunk);
            }
            Event::Progress => violating.extend(violation(&value)),
            Event::Meta | Event::Final | Event::Error | Event::PartAnswer => {}
        }
    }
    let mut data = accumulator.data()?.clone();
    // The last first, so that the indexes of earlier elements do not change.
    violating.iter().rev().for_each(|path| remove(&mut data, path));
    data.as_object().filter(|members| !members.is_empty())?;
    Some(Value::from(data))
}

/// Reads a delta or a snapshot.
fn chunk(line: &Value, chunk: Node<'_>) -> Option<Chunk> {
    let seq = chunk.get("seq")?.as_u64()?;
    let field = chunk.get("field").and_then(|field| field.as_str()).map(str::to_owned);
    Some(match chunk.get("delta") {
        Some(delta) => {
            Chunk::Delta { seq, field: field?, delta: delta.as_str()?.to_owned(), checkpoint: None }
        }
        None => Chunk::Snapshot { seq, field, data: line.child(chunk.get("data")?) },
    })
}

/// Returns the field that a progress chunk reports as a violation.
fn violation(progress: &Value) -> Option<Path> {
    progress.get("progress")?.get("violation")?.get("path")?.as_str()?.parse().ok()
}

/// Removes a field from the data. An absent field is skipped.
fn remove(data: &mut Json, path: &Path) {
    let pointer = path.pointer();
    let Some((parent, key)) = pointer.strip_prefix("/data").and_then(|inner| inner.rsplit_once('/')) else {
        return;
    };
    match data.pointer_mut(parent) {
        Some(Json::Object(members)) => drop(members.remove(&key.replace("~1", "/").replace("~0", "~"))),
        Some(Json::Array(elements)) => {
            if let Some(index) = key.parse().ok().filter(|index| *index < elements.len()) {
                elements.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod part_answer_tests {
    use cog_json::Value;
    use cog_spec::{Chunk, PartAnswer, PartProgress, Progress};

    use super::*;

    #[test]
    fn finds_the_answers_of_parts() {
        let part = |path: &str, envelope: Option<&str>| {
            let answer = envelope.map(|envelope| PartAnswer {
                key: "k".to_owned(),
                envelope: Value::parse(envelope).unwrap(),
            });
            let part = PartProgress { path: path.to_owned(), answer, ..PartProgress::default() };
            Chunk::Progress(Progress { part: Some(Box::new(part)), ..Progress::default() })
        };
        let mut log = Log::default();
        log.push(&part("a", None));
        log.push(&part("a", Some(r#"{"ok":true,"data":{"n":1.50}}"#)));
        let found = finished_parts(&log);
        assert_eq!(found.get("a", "k").unwrap().to_string(), r#"{"ok":true,"data":{"n":1.50}}"#);
        assert!(found.get("b", "k").is_none());
    }
}

#[cfg(test)]
mod tests;
