use cog_json::Value;
use cog_spec::{Checkpoint, Chunk};

/// Chunks on their way out, numbered as supplement R41 says: deltas and snapshots from 1, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last_seq: u64,
    chunks: Vec<Chunk>,
}

impl Outbox {
    /// A piece of a string.
    pub(crate) fn delta(&mut self, field: &str, delta: String, checkpoint: Option<Checkpoint>) {
        let seq = self.next_seq();
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
