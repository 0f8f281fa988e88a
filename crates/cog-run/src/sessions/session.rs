//! The handle of a session for the caller that started it, and the readers of its log.

use std::{any::Any, path::PathBuf, sync::Arc, time::Duration};

use cog_json::{ToJson as _, Value};
use cog_spec::Envelope;

use super::{
    Sessions,
    file::Header,
    log::{Dropped, Event, Mark},
    shared::{Shared, State},
};
use crate::{ChunkStream, RecoveryOffer, RunContext, RunOptions, call_log::CallLog};

/// A started run and its log.
///
/// When it is dropped before any reader [follows](Session::follow) it, its run is cancelled, unless it is
/// detached.
pub struct Session(Arc<Shared>);

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Returns the session's id: `sess_` and 128 random bits in hexadecimal (SPEC 11.2).
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns a reader of the log from this position. Dropping the last reader cancels the run, unless it is
    /// detached.
    pub fn follow(&self, from: StartFrom) -> Subscriber {
        Subscriber::new(Arc::clone(&self.0), from)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.0.cancel_if_unread();
    }
}

/// A checked run that has no session yet.
#[must_use = "a run that is dropped does not start"]
pub struct NewSession {
    pub(super) sessions: Sessions,
    pub(super) chunks: ChunkStream,
    pub(super) header: Header,
    pub(super) permit: Box<dyn Any + Send>,
    pub(super) log: UnownedLog,
}

/// The log of a run without a session. It is removed with the media in it, unless a session owns it.
pub(super) struct UnownedLog(pub(super) Option<CallLog>);

impl Drop for UnownedLog {
    fn drop(&mut self) {
        if let Some(log) = &self.0 {
            log.remove();
        }
    }
}

impl NewSession {
    /// Starts the run at once. Must be called within a tokio runtime, which runs it.
    pub fn start(self) -> Session {
        let Self { sessions, chunks, header, permit, mut log } = self;
        log.0 = None; // it is in the header
        let session = Arc::new(Shared::new(header));
        sessions.0.store.add(&session);
        sessions.spawn_writer(&session, chunks, permit);
        Session::new(session)
    }

    /// Starts the run when the media of its input are ready. Dropping the future cancels it.
    ///
    /// # Errors
    /// Errors of the media, and all others before the provider is called (ruling R54).
    pub async fn open(mut self) -> Result<Session, Box<Envelope>> {
        self.chunks = self.chunks.prepared().await?;
        Ok(self.start())
    }
}

/// The specification of a run. It is stored, so that an interrupted run can start again.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The module's name. It is loaded again when the run starts again.
    pub module: String,
    /// The input.
    pub input: Value,
    /// The options of the run.
    pub options: RunOptions,
    /// What surrounds the run. Only its warnings are stored.
    pub context: RunContext,
}

/// The options of a new session.
pub struct SessionOptions {
    /// The owner of the session. Other owners cannot access it.
    pub owner: String,
    /// Whether the run continues without readers. Otherwise it is cancelled when its last reader disconnects.
    pub detached: bool,
    /// A value that is held until the run has ended, such as a semaphore permit; `Box::new(())` for none.
    pub permit: Box<dyn Any + Send>,
}

impl RunSpec {
    /// Returns the specification of a run with default options.
    pub fn new(module: impl Into<String>, input: Value) -> Self {
        Self { module: module.into(), input, options: RunOptions::default(), context: RunContext::default() }
    }
}

/// The limits and the directory of a store of sessions.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The time for which a finished session is stored: 15 minutes by default.
    pub ttl: Duration,
    /// The maximum number of finished sessions: 1,000 by default.
    pub max_sessions: usize,
    /// The maximum bytes of all logs together: 64 MiB by default.
    ///
    /// Over this limit, finished sessions are removed, the oldest first. Then the oldest entries of growing
    /// logs are dropped.
    pub max_total_bytes: usize,
    /// The maximum bytes of one log: 16 MiB by default, at most 1 GiB. Over this limit, its oldest entries
    /// are dropped, and its file is removed.
    pub max_session_bytes: usize,
    /// The directory that stores sessions; none stores them in memory only.
    pub state_dir: Option<PathBuf>,
    /// The recovery offer in the final event of an interrupted stream; none disables resuming (E4012).
    pub recovery: Option<RecoveryOffer>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15 * 60),
            max_sessions: 1000,
            max_total_bytes: 64 << 20,
            max_session_bytes: 16 << 20,
            state_dir: None,
            recovery: Some(RecoveryOffer { retry_after_ms: 1000, max_retries: 3 }),
        }
    }
}

// Subscribers: read a session's log, and wait for new entries.

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
        // Before anything is read, so that the run is not cancelled for want of a reader meanwhile.
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
