//! Subscribers: read a session's log, and wait for new entries.

use std::{any::Any, sync::Arc};

use cog_json::ToJson as _;

use super::{
    log::{Dropped, Event, Mark},
    shared::{Shared, State},
};

/// The maximum bytes of a batch with more than one entry, which limits the memory of a slow reader.
const MAX_BATCH: usize = 64 * 1024;

/// The position from which a reader reads a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// The meta chunk.
    Beginning,
    /// The entry after the chunk of this number, which the client has already. A meta chunk with `resumed`
    /// comes first (see docs/spec/streaming.md).
    Seq(u64),
}

/// A reader of one session's log. It waits without polling, and does not slow down other readers.
pub struct Subscriber {
    shared: Arc<Shared>,
    /// The position of the next entry.
    next: u64,
    /// The `seq` for the meta chunk of a resumed stream, until that is sent.
    resumed: Option<u64>,
    is_over: bool,
    /// Held as long as the subscriber exists.
    _permit: Option<Box<dyn Any + Send>>,
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
    /// The `seq` of the last numbered chunk up to this entry; 0 on `meta`.
    pub seq: u64,
    /// The chunk.
    pub json: &'a str,
}

impl Subscriber {
    pub(crate) fn new(shared: Arc<Shared>, from: StartFrom) -> Self {
        shared.subscribe();
        let (next, resumed) = match from {
            StartFrom::Beginning => (0, None),
            // Dropped entries are reported on reading.
            StartFrom::Seq(seq) => (shared.lock().log.after(seq).unwrap_or(1), Some(seq)),
        };
        Self { shared, next, resumed, is_over: false, _permit: None }
    }

    /// Holds a value until the subscriber is dropped.
    #[must_use]
    pub fn with_permit(mut self, permit: Option<Box<dyn Any + Send>>) -> Self {
        self._permit = permit;
        self
    }

    /// Returns the id of the session.
    pub fn session_id(&self) -> &str {
        &self.shared.id
    }

    /// Waits for new entries, and returns all of them up to 64 KiB, so that one write can send them. None
    /// after the last.
    ///
    /// A reader that is too slow may find that its next entry was dropped. Its last entry is then E2010 with
    /// `details.reason: left_behind`. Dropping the future while it waits loses no entry.
    pub async fn next(&mut self) -> Option<Batch> {
        if self.is_over {
            return None;
        }
        if let Some(seq) = self.resumed {
            let meta = self.shared.wait_for(|state| state.log.meta().map(|meta| resumed(meta, seq))).await;
            self.resumed = None;
            return Some(Batch::single(meta, Event::Meta, 0));
        }
        let next = self.next;
        let entries = self.shared.wait_for(|state| read(state, next)).await;
        Some(match entries {
            Ok((position, batch)) => self.advance(position, batch),
            Err(Dropped) => {
                self.is_over = true;
                Batch::single(self.shared.too_slow().to_json(), Event::Error, 0)
            }
        })
    }

    fn advance(&mut self, position: u64, batch: Batch) -> Batch {
        self.next = position + batch.marks.len() as u64;
        self.is_over = batch.marks.last().is_some_and(|mark| mark.event.is_end());
        batch
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.shared.unsubscribe();
    }
}

/// Returns the next entries for readers, and the position of the first one; none if there are none yet.
fn read(state: &mut State, next: u64) -> Option<Result<(u64, Batch), Dropped>> {
    let shown = state.shown();
    let next = state.log.skip_answers(next);
    let copied = (next < shown).then(|| state.log.copy(next, shown, MAX_BATCH))?;
    Some(copied.map(|(text, marks)| (next, Batch { text, marks }.up_to_answer())))
}

/// Returns the meta chunk of a stream that is resumed after this number, without the warning of a new stream.
fn resumed(meta: &str, seq: u64) -> String {
    match meta.split_once(r#""meta":"#) {
        Some((start, rest)) => {
            let start = start.split_once(r#""_warnings":"#).map_or(start, |(start, _)| start);
            format!(r#"{start}"resumed":true,"resume_from_seq":{seq},"meta":{rest}"#)
        }
        None => meta.to_owned(),
    }
}

impl Batch {
    fn single(mut line: String, event: Event, seq: u64) -> Self {
        line.push('\n');
        let end = u32::try_from(line.len()).unwrap_or(u32::MAX);
        Self { text: line, marks: vec![Mark { seq, end, event, has_checkpoint: false }] }
    }

    /// Returns the entries before the first answer of a part.
    fn up_to_answer(mut self) -> Self {
        if let Some(answer) = self.marks.iter().position(|mark| mark.event == Event::PartAnswer) {
            self.marks.truncate(answer);
            self.text.truncate(self.marks.last().map_or(0, |mark| mark.end as usize));
        }
        self
    }

    /// Returns the entries in order; at least one.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut from = 0;
        self.marks.iter().map(move |mark| {
            let line = self.text.get(from..mark.end as usize).unwrap_or_default();
            from = mark.end as usize;
            Entry { event: mark.event.as_str(), seq: mark.seq, json: line.trim_end() }
        })
    }

    /// Returns all entries as lines of JSON, each with its line break, as NDJSON sends them.
    pub fn lines(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_of_a_resumed_stream_contains_its_position() {
        for warnings in ["", r#""_warnings":[{"code":"W4013","message":"\"meta\":"}],"#] {
            let start = r#"{"ok":true,"streaming":true,"session_id":"sess_1","#;
            let rest = r#""meta":{"explain":"\"meta\":"}}"#;
            assert_eq!(
                resumed(&format!("{start}{warnings}{rest}"), 7),
                format!(r#"{start}"resumed":true,"resume_from_seq":7,{rest}"#)
            );
        }
    }
}
