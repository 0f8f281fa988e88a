use std::collections::BTreeMap;

use cog_json::Value;
use cog_spec::{Chunk, Code, Envelope, ErrorBody, Meta, Outcome};

use crate::{accumulator::DataAccumulator, error};

/// Combines the chunks of a stream into the envelope: the sync answer of the same run (ruling R40).
///
/// A stream without a final chunk was interrupted: E2010, with the data so far as `partial_data`.
pub fn fold(chunks: impl IntoIterator<Item = Chunk>) -> Envelope {
    let mut directory = EnvelopeBuilder::new();
    chunks.into_iter().for_each(|chunk| directory.push(chunk));
    directory.finish()
}

/// Combines chunks into an envelope. Deltas and snapshots may arrive in any order, because they are numbered
/// (SPEC 3.2.3). A repeated chunk counts once.
#[derive(Debug, Default)]
pub struct EnvelopeBuilder {
    /// The data of the chunks up to `applied`.
    image: DataAccumulator,
    /// The number of the last chunk that was applied.
    applied: u64,
    /// Chunks that arrived before one with a lower number.
    early: BTreeMap<u64, Chunk>,
    /// The meta snapshot with the highest number.
    meta: Option<(u64, Value)>,
    end: Option<Chunk>,
}

impl EnvelopeBuilder {
    /// Creates a builder without chunks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a chunk. Chunks after the final one are ignored (checklist I09).
    pub fn push(&mut self, chunk: Chunk) {
        if self.end.is_some() {
            return;
        }
        match chunk.seq() {
            _ if chunk.is_end() => self.end = Some(chunk),
            Some(seq) => self.add(seq, chunk),
            None => {
                if let Chunk::Meta { resume_from_seq: Some(seq), .. } = chunk {
                    self.applied = self.applied.max(seq);
                }
            }
        }
    }

    /// Adds a numbered chunk. It is applied once those before it are.
    fn add(&mut self, seq: u64, chunk: Chunk) {
        if let Chunk::Snapshot { field: Some(field), data, .. } = &chunk
            && field == "meta"
            && self.meta.as_ref().is_none_or(|(before, _)| *before < seq)
        {
            self.meta = Some((seq, data.clone()));
        }
        if seq > self.applied + 1 {
            self.early.entry(seq).or_insert(chunk);
        } else if seq == self.applied + 1 {
            self.apply(seq, &chunk);
            while let Some(next) = self.early.remove(&(self.applied + 1)) {
                self.apply(self.applied + 1, &next);
            }
        }
    }

    fn apply(&mut self, seq: u64, chunk: &Chunk) {
        self.image.apply(chunk);
        self.applied = seq;
    }

    /// Whether the final chunk was added.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the data so far, without those of the final chunk. None before the first chunk of data.
    pub fn data(&self) -> Option<&serde_json::Value> {
        self.image.data()
    }

    /// Returns the envelope.
    pub fn finish(mut self) -> Envelope {
        match self.end.take() {
            Some(Chunk::Final { mut meta, data, usage, warnings, emitted_context, handoff }) => {
                meta.runtime.usage = usage.or(meta.runtime.usage);
                let mut envelope = Envelope::success(*meta, data);
                (envelope.warnings, envelope.emitted_context) = (warnings, emitted_context);
                envelope.handoff = handoff;
                envelope
            }
            Some(Chunk::Error { error, partial_data, warnings, .. }) => {
                let error = sync_error(*error);
                let mut envelope = self.failure(error, partial_data);
                envelope.warnings = warnings;
                envelope
            }
            _ => {
                for (seq, chunk) in std::mem::take(&mut self.early) {
                    self.apply(seq, &chunk);
                }
                let partial_data = std::mem::take(&mut self.image).into_data().map(Value::from);
                self.failure(error::interrupted(), partial_data)
            }
        }
    }

    fn failure(&mut self, error: ErrorBody, partial_data: Option<Value>) -> Envelope {
        let meta = self.meta.take().and_then(|(_, meta)| Meta::read(meta.node()));
        let meta = meta.unwrap_or_else(|| Meta::for_failure(&error.message));
        Envelope::new(meta, Outcome::Failure { error, partial_data })
    }
}

/// The timeout of a stream is E2011, that of a sync answer E2002 (ruling R40).
fn sync_error(mut error: ErrorBody) -> ErrorBody {
    if error.code == Code::StreamTimeout.into() {
        error.code = Code::Timeout.into();
    }
    error
}
