use std::collections::BTreeMap;

use cog_json::{Path, Segment, Value};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, Meta, Outcome};

use crate::error;

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
            // Deltas append, so a chunk that overtook another one must wait for it.
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

    /// Returns whether the final chunk was added.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the data so far, without the data of the final chunk. None before the first chunk of data.
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
                // No chunk will fill the gaps any more, and partial data with gaps are better than none.
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

/// A stream reports a timeout as E2011, a sync answer as E2002 (ruling R40).
fn sync_error(mut error: ErrorBody) -> ErrorBody {
    if error.has_failed_with(Code::StreamTimeout) {
        error.code = Code::Timeout.into();
    }
    error
}

// The data that the chunks of a stream add up to.

/// The `data` to which the chunks of a stream add up. Paths create the containers (ruling R44).
#[derive(Debug, Clone, Default)]
pub struct DataAccumulator {
    data: Option<serde_json::Value>,
}

impl DataAccumulator {
    /// Applies a delta or a snapshot; other chunks, and fields outside `data`, change nothing.
    pub fn apply(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Delta { field, delta, .. } => self.append(field, delta),
            Chunk::Snapshot { field: None, data, .. } => self.data = Some(data.to_serde()),
            Chunk::Snapshot { field: Some(field), data, .. } => self.replace(field, data.to_serde()),
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
    }

    /// Returns the data so far; none before the first chunk of data.
    pub fn data(&self) -> Option<&serde_json::Value> {
        self.data.as_ref()
    }

    /// Converts it to the data.
    pub(crate) fn into_data(self) -> Option<serde_json::Value> {
        self.data
    }

    /// Returns the value of a field.
    pub fn at(&self, field: &str) -> Option<&serde_json::Value> {
        let path: Path = field.parse().ok()?;
        self.data.as_ref()?.pointer(path.pointer().strip_prefix("/data")?)
    }

    /// Appends to a string.
    pub(crate) fn append(&mut self, field: &str, delta: &str) {
        match self.place(field) {
            Some(serde_json::Value::String(text)) => text.push_str(delta),
            Some(place) => *place = serde_json::Value::from(delta),
            None => {}
        }
    }

    /// Replaces a value.
    pub(crate) fn replace(&mut self, field: &str, value: serde_json::Value) {
        if let Some(place) = self.place(field) {
            *place = value;
        }
    }

    /// Returns the value of a field of `data`, which is created if it is absent.
    fn place(&mut self, field: &str) -> Option<&mut serde_json::Value> {
        let path: Path = field.parse().ok()?;
        let mut steps = path.segments();
        if steps.next() != Some(Segment::Key("data")) {
            return None;
        }
        let root = self.data.get_or_insert(serde_json::Value::Null);
        steps.try_fold(root, step_into)
    }
}

fn step_into<'a>(place: &'a mut serde_json::Value, step: Segment<'_>) -> Option<&'a mut serde_json::Value> {
    match step {
        Segment::Key(key) => {
            if !place.is_object() {
                *place = serde_json::Value::Object(serde_json::Map::new());
            }
            Some(place.as_object_mut()?.entry(key).or_insert(serde_json::Value::Null))
        }
        Segment::Index(index) => {
            if !place.is_array() {
                *place = serde_json::Value::Array(Vec::new());
            }
            let elements = place.as_array_mut()?;
            // Arrays grow by one element. An index beyond that is invalid.
            if index == elements.len() {
                elements.push(serde_json::Value::Null);
            }
            elements.get_mut(index)
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::Risk;
    use serde_json::json;

    use super::*;

    fn delta(seq: u64, delta: &str) -> Chunk {
        Chunk::Delta { seq, field: "data.a".to_owned(), delta: delta.to_owned(), checkpoint: None }
    }

    fn meta(seq: u64, explain: &str) -> Chunk {
        let meta = Value::from(json!({ "confidence": 0.5, "risk": "low", "explain": explain }));
        Chunk::Snapshot { seq, field: Some("meta".to_owned()), data: meta }
    }

    #[test]
    fn data_are_those_of_the_chunks_without_a_gap() {
        let mut builder = EnvelopeBuilder::new();
        let mut pushed = |chunk| {
            builder.push(chunk);
            builder.data().map(|data| data["a"].clone())
        };
        assert_eq!(pushed(delta(2, "y")), None);
        assert_eq!(pushed(delta(1, "x")), Some(json!("xy")));
        assert_eq!(pushed(delta(1, "x")), Some(json!("xy")), "a repeated chunk counts once");
        assert_eq!(pushed(delta(3, "z")), Some(json!("xyz")));
    }

    #[test]
    fn envelope_is_over_after_its_last_chunk() {
        let mut builder = EnvelopeBuilder::new();
        builder.push(delta(1, "x"));
        assert!(!builder.is_over());
        builder.push(Chunk::Final {
            meta: Box::new(Meta::new(None, Risk::Low, "Done.")),
            data: Value::from(json!({ "a": "x" })),
            usage: None,
            warnings: Vec::new(),
            emitted_context: None,
            handoff: None,
        });
        assert!(builder.is_over());
    }

    #[test]
    fn meta_is_that_of_the_highest_number_and_a_repeated_one_counts_once() {
        let explain = |chunks: Vec<Chunk>| fold(chunks).meta.explain;
        assert_eq!(explain(vec![meta(2, "later"), meta(1, "first")]), "later");
        assert_eq!(explain(vec![meta(1, "first"), meta(1, "repeated")]), "first");
    }
}
