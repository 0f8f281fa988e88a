//! The end of the first run of a collection, which is held back until the answers are compared.

use cog_answer::EnvelopeBuilder;
use cog_json::{ToJson as _, Value};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, Outcome, Recovery};

use crate::stream::ChunkQueue;

/// The end of the first run.
#[derive(Default)]
pub(super) struct Held {
    envelope: EnvelopeBuilder,
    /// The last meta. If it is immediately before an error, it is a part of the end.
    meta: Option<Chunk>,
    session_id: String,
    /// The number of the last chunk that was passed on.
    last_seq: u64,
    /// The number of the last chunk before the run whose chunks are passed on now; none in the first round.
    before: Option<u64>,
    has_data: bool,
    /// The error as a stream reports it. An envelope may have another code.
    error: Option<Box<ErrorBody>>,
    recovery: Option<Recovery>,
}

impl Held {
    /// Passes a chunk on, unless it belongs to the end.
    pub(super) fn pass(&mut self, mut chunk: Chunk, out: &ChunkQueue) {
        let before = self.before.unwrap_or_default();
        match &mut chunk {
            Chunk::Meta { .. } if self.before.is_some() => return, // a stream begins once
            Chunk::Delta { seq, .. } | Chunk::Snapshot { seq, .. } => *seq += before,
            Chunk::Error { recovery: Some(recovery), .. } => recovery.last_seq += before,
            _ => {}
        }
        match &chunk {
            Chunk::Meta { session_id, .. } => self.session_id.clone_from(session_id),
            Chunk::Error { error, recovery, .. } => {
                self.error = Some(error.clone());
                self.recovery.clone_from(recovery);
            }
            _ => {}
        }
        if chunk.is_end() {
            self.meta.take().into_iter().chain([chunk]).for_each(|chunk| self.envelope.push(chunk));
            return;
        }
        if let Some(meta) = self.meta.take() {
            self.push(meta, out);
        }
        match &chunk {
            Chunk::Snapshot { field: Some(field), .. } if field == "meta" => self.meta = Some(chunk),
            _ => self.push(chunk, out),
        }
    }

    fn push(&mut self, chunk: Chunk, out: &ChunkQueue) {
        if let Some(seq) = chunk.seq() {
            self.last_seq = seq;
            self.has_data |= !matches!(&chunk, Chunk::Snapshot { field: Some(field), .. } if field == "meta");
        }
        out.push(chunk);
    }

    /// Takes back what was passed on, so that the chunks of another run can follow.
    pub(super) fn restart(mut self, is_streamed: bool, out: &ChunkQueue) -> Self {
        if is_streamed && self.has_data {
            self.snapshot(None, Value::parse("{}").unwrap_or_default(), out);
        }
        let Self { session_id, last_seq, .. } = self;
        Self { session_id, last_seq, before: Some(last_seq), ..Self::default() }
    }

    /// Returns the envelope of the first run.
    pub(super) fn take_envelope(&mut self) -> Envelope {
        std::mem::take(&mut self.envelope).finish()
    }

    /// Ends the stream with this envelope, of the first run or of another. The data of another one replace what was passed on.
    pub(super) fn end(mut self, envelope: Envelope, is_first: bool, is_streamed: bool, out: &ChunkQueue) {
        if !is_first && is_streamed && self.has_data {
            self.snapshot(None, Value::parse("{}").unwrap_or_default(), out);
            if let Some(data) = envelope.data() {
                self.snapshot(None, data.clone(), out);
            }
        }
        let Envelope { mut meta, outcome, warnings, emitted_context, handoff, .. } = envelope;
        match outcome {
            Outcome::Success { data, .. } => {
                // The final chunk has usage next to meta.
                let usage = meta.runtime.usage.take();
                let meta = Box::new(meta);
                out.push(Chunk::Final { meta, data, usage, warnings, emitted_context, handoff });
            }
            Outcome::Failure { error, partial_data } => {
                let meta = Value::parse(&meta.to_json()).unwrap_or_default();
                self.snapshot(Some("meta".to_owned()), meta, out);
                let own = self.error.take();
                let recovery = self.recovery.take().filter(|_| is_first && own.is_some());
                let mut error = Box::new(error);
                match own {
                    Some(own) if is_first => error = own,
                    // A stream has its own code for a timeout (ruling R40).
                    Some(own)
                        if own.has_failed_with(Code::StreamTimeout)
                            && error.has_failed_with(Code::Timeout) =>
                    {
                        error.code = own.code;
                    }
                    _ => {}
                }
                let session_id = self.session_id;
                out.push(Chunk::Error { session_id, error, recovery, partial_data, warnings });
            }
        }
    }

    fn snapshot(&mut self, field: Option<String>, data: Value, out: &ChunkQueue) {
        self.last_seq += 1;
        out.push(Chunk::Snapshot { seq: self.last_seq, field, data });
    }
}
