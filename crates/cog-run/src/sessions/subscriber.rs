//! Reading a session's log, and waiting for more.

use std::{any::Any, sync::Arc};

use cog_json::ToJson as _;

use super::{
    log::{Event, Left, Mark},
    shared::{Shared, State},
};

/// How much a batch holds at most where it holds more than one entry, in bytes: what a reader that is slow keeps
/// in memory.
const BATCH: usize = 64 * 1024;

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// With the meta chunk.
    Start,
    /// After the chunk of this number, which the reader has; a meta chunk that says so comes first (see
    /// docs/spec/streaming.md).
    Seq(u64),
}

/// A reader of one session's log. It waits without polling, and costs other readers nothing.
pub struct Subscriber {
    shared: Arc<Shared>,
    /// The place of the entry that is next.
    next: u64,
    /// The `seq` that the meta chunk of a resumed stream names, until that was given.
    resumed: Option<u64>,
    is_over: bool,
    /// Held as long as this reader reads.
    _slot: Option<Box<dyn Any + Send>>,
}

/// Entries of a log, in order.
#[derive(Debug, Clone)]
pub struct Batch {
    text: String,
    marks: Vec<Mark>,
}

/// One chunk of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name of its server-sent event: `meta`, `chunk`, `progress`, `final`, `error` (ruling R51).
    pub event: &'static str,
    /// The number of the last numbered chunk up to here; 0 on `meta`.
    pub seq: u64,
    /// The chunk.
    pub json: &'a str,
}

impl Subscriber {
    pub(crate) fn new(shared: Arc<Shared>, after: After) -> Self {
        shared.enter();
        let (next, resumed) = match after {
            After::Start => (0, None),
            // What has left is told as such when it is read.
            After::Seq(seq) => (shared.lock().log.after(seq).unwrap_or(1), Some(seq)),
        };
        Self { shared, next, resumed, is_over: false, _slot: None }
    }

    /// The same, holding something until it is dropped.
    #[must_use]
    pub fn holding(mut self, slot: Option<Box<dyn Any + Send>>) -> Self {
        self._slot = slot;
        self
    }

    /// The session that is read.
    pub fn session_id(&self) -> &str {
        &self.shared.id
    }

    /// What there is to read, as soon as there is something: all of it, up to 64 KiB, so that one write can carry it.
    /// None after the end.
    ///
    /// A reader so slow that its next entry has left the log gets an error entry of its own, E2010 with
    /// `details.reason: left_behind`, as its end. Nothing is lost where the future is dropped while it waits.
    pub async fn next(&mut self) -> Option<Batch> {
        if self.is_over {
            return None;
        }
        if let Some(seq) = self.resumed {
            let meta = self.shared.when(|state| state.log.meta().map(|meta| resumed(meta, seq))).await;
            self.resumed = None;
            return Some(Batch::of(meta, Event::Meta, 0));
        }
        let next = self.next;
        let read = self.shared.when(|state| look(state, next)).await;
        Some(match read {
            Ok(batch) => self.passed(batch),
            Err(Left) => {
                self.is_over = true;
                Batch::of(self.shared.left_behind().to_json(), Event::Error, 0)
            }
        })
    }

    fn passed(&mut self, batch: Batch) -> Batch {
        self.next += batch.marks.len() as u64;
        self.is_over = batch.marks.last().is_some_and(|mark| mark.event.is_end());
        batch
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

fn look(state: &mut State, next: u64) -> Option<Result<Batch, Left>> {
    let shown = state.shown();
    (next < shown).then(|| state.log.copy(next, shown, BATCH).map(|(text, marks)| Batch { text, marks }))
}

/// The meta chunk of a stream that goes on after this number.
fn resumed(meta: &str, seq: u64) -> String {
    match meta.split_once(r#""meta":"#) {
        Some((head, tail)) => format!(r#"{head}"resumed":true,"resume_from_seq":{seq},"meta":{tail}"#),
        None => meta.to_owned(),
    }
}

impl Batch {
    fn of(mut line: String, event: Event, seq: u64) -> Self {
        line.push('\n');
        let end = u32::try_from(line.len()).unwrap_or(u32::MAX);
        Self { text: line, marks: vec![Mark { seq, end, event, has_checkpoint: false }] }
    }

    /// The entries, in order; at least one.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut from = 0;
        self.marks.iter().map(move |mark| {
            let line = self.text.get(from..mark.end as usize).unwrap_or_default();
            from = mark.end as usize;
            Entry { event: mark.event.as_str(), seq: mark.seq, json: line.trim_end() }
        })
    }

    /// All entries as lines of JSON, each with its line break: what NDJSON sends.
    pub fn lines(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_stream_says_where_it_goes_on() {
        let meta = r#"{"ok":true,"streaming":true,"session_id":"sess_1","meta":{"explain":"\"meta\":"}}"#;
        assert_eq!(
            resumed(meta, 7),
            r#"{"ok":true,"streaming":true,"session_id":"sess_1","resumed":true,"resume_from_seq":7,"meta":{"explain":"\"meta\":"}}"#
        );
    }
}
