use cog_json::Value;
use cog_spec::{Checkpoint, Chunk, Recovery};

use crate::RecoveryOffer;

/// Chunks on their way out, numbered as supplement R41 says: deltas and snapshots from 1, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    chunks: Vec<Chunk>,
}

impl Outbox {
    /// The outbox of a stream that goes on after `last_seq`: what was told before is taken back.
    pub(crate) fn resumed(last_seq: u64) -> Self {
        let mut outbox = Self { last_seq, ..Self::default() };
        outbox.take_back();
        outbox
    }

    /// Takes back all data that were told: they begin anew.
    pub(crate) fn take_back(&mut self) {
        self.last_checkpoint = None;
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
        let seq = self.next_seq();
        let field = (field != "data").then(|| field.to_owned());
        self.chunks.push(Chunk::Snapshot { seq, field, data });
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
