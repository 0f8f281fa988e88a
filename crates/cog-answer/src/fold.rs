use cog_json::Value;
use cog_spec::{Chunk, Code, Envelope, ErrorBody, Meta, Outcome};

use crate::{accumulator::DataAccumulator, error, meta};

/// The envelope that a sequence of chunks gives: the sync answer of the same run (ruling R40).
///
/// A sequence without an end was cut: E2010, with what the chunks give as `partial_data`.
pub fn fold(chunks: impl IntoIterator<Item = Chunk>) -> Envelope {
    let mut directory = ChunkDirectory::new();
    chunks.into_iter().for_each(|chunk| directory.push(chunk));
    directory.finish()
}

/// Folds chunks one by one. Deltas and snapshots may come in any order; their numbers put them right (SPEC 3.2.3).
#[derive(Debug, Default)]
pub struct ChunkDirectory {
    numbered: Vec<Chunk>,
    end: Option<Chunk>,
}

impl ChunkDirectory {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// MediaCapabilities a chunk. What comes after the end is no part of the stream (checklist I09).
    pub fn push(&mut self, chunk: Chunk) {
        if self.end.is_some() {
            return;
        }
        if chunk.is_end() {
            self.end = Some(chunk);
        } else if chunk.seq().is_some() {
            self.numbered.push(chunk);
        }
    }

    /// Whether the end was there.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The envelope.
    pub fn finish(mut self) -> Envelope {
        match self.end.take() {
            Some(Chunk::Final { mut meta, data, usage, warnings, emitted_context }) => {
                meta.runtime.usage = usage.or(meta.runtime.usage);
                Envelope { meta: *meta, outcome: Outcome::Success { data }, warnings, emitted_context }
            }
            Some(Chunk::Error { error, partial_data, warnings, .. }) => {
                let error = of_sync(*error);
                Envelope { warnings, ..self.failure(error, partial_data) }
            }
            _ => {
                let image = self.image();
                let partial_data = image.into_data().map(Value::from);
                self.failure(error::interrupted(), partial_data)
            }
        }
    }

    fn failure(&mut self, error: ErrorBody, partial_data: Option<Value>) -> Envelope {
        let meta = self.last_meta().unwrap_or_else(|| Meta::of_failure(&error.message));
        let outcome = Outcome::Failure { error, partial_data };
        Envelope { meta, outcome, warnings: Vec::new(), emitted_context: None }
    }

    /// The last meta that a snapshot told (ruling R43).
    fn last_meta(&self) -> Option<Meta> {
        let metas = self.numbered.iter().filter_map(|chunk| match chunk {
            Chunk::Snapshot { seq, field: Some(field), data } if field == "meta" => Some((*seq, data)),
            _ => None,
        });
        meta::read(metas.max_by_key(|(seq, _)| *seq)?.1.node())
    }

    fn image(&mut self) -> DataAccumulator {
        self.numbered.sort_by_key(Chunk::seq);
        let mut image = DataAccumulator::default();
        for chunk in &self.numbered {
            image.apply(chunk);
        }
        image
    }
}

/// A deadline of a stream is E2011, that of a sync answer E2002 (ruling R40).
fn of_sync(mut error: ErrorBody) -> ErrorBody {
    if error.code == Code::StreamTimeout.into() {
        error.code = Code::Timeout.into();
    }
    error
}
