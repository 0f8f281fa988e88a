use std::collections::HashSet;

use cog_json::Value;
use cog_spec::{Checkpoint, Chunk, Progress, Recovery, ViolationNote};

use crate::{AnswerRules, RecoveryOffer};

/// More violations of one reply than this are not told while it arrives; the check at the end tells them all.
const MAX_TOLD: usize = 64;

/// How far a run is while the model speaks, for a progress chunk: nobody knows, so half way.
const UNDER_WAY: u8 = 50;

/// Chunks on their way out, numbered as ruling R41 says: deltas and snapshots from 1, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    chunks: Vec<Chunk>,
    /// Only what the envelope is made of leaves.
    is_silent: bool,
    /// Path and rule of the violations that were told of this attempt.
    told: HashSet<(String, String)>,
}

impl Outbox {
    /// The outbox of a run. That of a stream which is resumed takes back what was told before.
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        let mut outbox = Self { is_silent: !rules.watch, ..Self::default() };
        if let Some(last_seq) = rules.resume_from {
            outbox.last_seq = last_seq;
            outbox.take_back();
        }
        outbox
    }

    /// MediaCapabilities back all data that were told: they begin anew.
    pub(crate) fn take_back(&mut self) {
        self.last_checkpoint = None;
        self.told.clear();
        self.snapshot("data", Value::parse("{}").unwrap_or_default());
    }

    /// Where a stream that ends here can go on.
    pub(crate) fn recovery(&self, offer: RecoveryOffer) -> Recovery {
        Recovery {
            last_seq: self.last_seq,
            last_checkpoint: self.last_checkpoint.clone(),
            retry_after_ms: Some(offer.retry_after_ms),
            max_retries: Some(offer.max_retries),
        }
    }

    /// A piece of a string.
    pub(crate) fn delta(&mut self, field: &str, delta: String, checkpoint: Option<Checkpoint>) {
        let seq = self.next_seq();
        if checkpoint.is_some() {
            self.last_checkpoint.clone_from(&checkpoint);
        }
        self.chunks.push(Chunk::Delta { seq, field: field.to_owned(), delta, checkpoint });
    }

    /// A value that replaces what stood at `field`; `data` itself carries no field (SPEC 3.2.1).
    pub(crate) fn snapshot(&mut self, field: &str, data: Value) {
        if self.is_silent && field != "meta" {
            return;
        }
        let seq = self.next_seq();
        let field = (field != "data").then(|| field.to_owned());
        self.chunks.push(Chunk::Snapshot { seq, field, data });
    }

    /// A violation, once for its place and rule, and no more than [`MAX_TOLD`] of them (ruling R49).
    /// Whether it was told.
    pub(crate) fn violation(&mut self, violation: ViolationNote) -> bool {
        let is_new =
            self.told.len() < MAX_TOLD && self.told.insert((violation.path.clone(), violation.rule.clone()));
        if is_new && !self.is_silent {
            self.chunks.push(Chunk::Progress(progress(violation)));
        }
        is_new
    }

    /// A chunk without a number.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// What is to leave.
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
    Progress { percent: UNDER_WAY, stage, message: None, violation: Some(violation) }
}
