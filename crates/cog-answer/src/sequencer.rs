use std::collections::HashSet;

use cog_json::Value;
use cog_spec::{Checkpoint, Chunk, Progress, Recovery, ViolationNote};

use crate::{AnswerRules, RecoveryOffer};

/// The maximum number of violations that are emitted while a reply arrives. The final check reports all of them.
const MAX_REPORTED: usize = 64;

/// The percentage of progress chunks during a reply, whose length is unknown.
const PERCENT_DURING_REPLY: u8 = 50;

/// Chunks that are ready to be sent. Deltas and snapshots are numbered from 1 without gaps (ruling R41).
#[derive(Debug, Default)]
pub(crate) struct ChunkSequencer {
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    chunks: Vec<Chunk>,
    /// Data were emitted since the last retraction.
    has_data: bool,
    /// Only chunks that the envelope needs are emitted.
    is_silent: bool,
    /// The path and rule of each violation that this attempt reported.
    reported: HashSet<(String, String)>,
}

impl ChunkSequencer {
    /// Creates the sequencer of a run. A resumed stream retracts the data that were sent before.
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        let mut sequencer = Self { is_silent: !rules.is_streamed, ..Self::default() };
        if let Some(last_seq) = rules.resume_from {
            sequencer.last_seq = last_seq;
            sequencer.retract();
        }
        sequencer
    }

    /// Retracts all data that were emitted.
    pub(crate) fn retract(&mut self) {
        // The numbers go on: a client that resumes must not confuse the retracted chunks with the new ones.
        self.last_checkpoint = None;
        self.reported.clear();
        self.snapshot("data", Value::parse("{}").unwrap_or_default());
        self.has_data = false;
    }

    /// Returns whether data were emitted that were not retracted.
    pub(crate) fn has_data(&self) -> bool {
        self.has_data
    }

    /// Returns how a stream that ends now can be resumed.
    pub(crate) fn recovery(&self, offer: RecoveryOffer) -> Recovery {
        Recovery {
            last_seq: self.last_seq,
            last_checkpoint: self.last_checkpoint.clone(),
            retry_after_ms: Some(offer.retry_after_ms),
            max_retries: Some(offer.max_retries),
        }
    }

    /// Emits a part of a string.
    pub(crate) fn delta(&mut self, field: &str, delta: String, checkpoint: Option<Checkpoint>) {
        let seq = self.next_seq();
        self.has_data = true;
        if checkpoint.is_some() {
            self.last_checkpoint.clone_from(&checkpoint);
        }
        self.chunks.push(Chunk::Delta { seq, field: field.to_owned(), delta, checkpoint });
    }

    /// Emits a value that replaces the one at `field`; a chunk of all `data` has no field (SPEC 3.2.1).
    pub(crate) fn snapshot(&mut self, field: &str, data: Value) {
        // Without a reader the data come with the final chunk, but the meta of a failure is only in a snapshot.
        if self.is_silent && field != "meta" {
            return;
        }
        let seq = self.next_seq();
        self.has_data |= field != "meta";
        let field = (field != "data").then(|| field.to_owned());
        self.chunks.push(Chunk::Snapshot { seq, field, data });
    }

    /// Reports a violation once for its path and rule, at most [`MAX_REPORTED`] of them (ruling R49). Returns whether
    /// it is new.
    pub(crate) fn violation(&mut self, violation: ViolationNote) -> bool {
        let is_new = self.reported.len() < MAX_REPORTED
            && self.reported.insert((violation.path.clone(), violation.rule.clone()));
        if is_new && !self.is_silent {
            self.chunks.push(Chunk::Progress(progress(violation)));
        }
        is_new
    }

    /// Emits a chunk that has no number.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// Takes the chunks that are ready.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.chunks.drain(..)
    }

    fn next_seq(&mut self) -> u64 {
        self.last_seq += 1;
        self.last_seq
    }
}

fn progress(violation: ViolationNote) -> Progress {
    let stage = Some("checking".to_owned());
    Progress { percent: PERCENT_DURING_REPLY, stage, violation: Some(violation), ..Progress::default() }
}
