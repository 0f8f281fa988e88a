//! What a streamed answer consists of (SPEC 3.2, rulings R41–R52).

use cog_json::{ToJson, Value, Writer};

use crate::{
    ErrorBody, Meta, Usage, Warning,
    envelope::{write_error_fields, write_extras},
};

/// One chunk of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// The first chunk: `{ok: true, streaming: true, session_id, meta}`.
    Meta {
        /// The session.
        session_id: String,
        /// What is known before the model speaks (ruling R42).
        meta: Box<Meta>,
        /// Where a resumed stream goes on: the last `seq` that the client has.
        resume_from_seq: Option<u64>,
    },
    /// A piece of a string.
    Delta {
        /// Its number: 1, 2, 3 … over deltas and snapshots (ruling R41).
        seq: u64,
        /// Which string, from the envelope: `data.rationale` (ruling R44).
        field: String,
        /// The piece.
        delta: String,
        /// How much of the string there is now (ruling R52).
        checkpoint: Option<Checkpoint>,
    },
    /// A value that replaces what stood there.
    Snapshot {
        /// Its number, counted with the deltas.
        seq: u64,
        /// Which value; none for the whole of `data`.
        field: Option<String>,
        /// The value.
        data: Value,
    },
    /// How far the run is. Carries no `seq`.
    Progress(Progress),
    /// The end of a success.
    Final {
        /// The control plane.
        meta: Box<Meta>,
        /// The checked answer.
        data: Value,
        /// The tokens of all attempts.
        usage: Option<Usage>,
        /// As in an envelope.
        warnings: Vec<Warning>,
        /// As in an envelope.
        emitted_context: Option<Value>,
    },
    /// The end of a failure.
    Error {
        /// The session.
        session_id: String,
        /// What went wrong.
        error: Box<ErrorBody>,
        /// How to go on, where that is possible.
        recovery: Option<Recovery>,
        /// What the chunks so far give, without a violating field (ruling R43).
        partial_data: Option<Value>,
        /// For the envelope that the chunks give; the chunk itself does not write them (ruling R43).
        warnings: Vec<Warning>,
    },
}

/// How much of a string has been sent: docs/spec/streaming.md, recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Bytes of the field so far.
    pub offset: u64,
    /// The first six hexadecimal digits of the SHA-256 of its text so far.
    pub hash: String,
}

/// A progress chunk's content.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// What is being done, a word.
    pub stage: Option<String>,
    /// What is being done, for a person.
    pub message: Option<String>,
    /// A violation of the contract, told while the answer arrives (ruling R49).
    pub violation: Option<ViolationNote>,
}

/// A violation as it stands in a progress chunk: `{path, rule, message}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViolationNote {
    /// Where, from the envelope.
    pub path: String,
    /// Which rule, a word: `type`, `required`.
    pub rule: String,
    /// What is wrong, for a person.
    pub message: String,
}

/// How a broken stream can go on (docs/spec/streaming.md).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// The last `seq` that was sent.
    pub last_seq: u64,
    /// The last checkpoint that was sent.
    pub last_checkpoint: Option<Checkpoint>,
    /// How long to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// How often to try.
    pub max_retries: Option<u32>,
}

impl Chunk {
    /// The chunk's number; none for chunks that carry none (ruling R41).
    pub fn seq(&self) -> Option<u64> {
        match self {
            Chunk::Delta { seq, .. } | Chunk::Snapshot { seq, .. } => Some(*seq),
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => None,
        }
    }

    /// Whether nothing follows it.
    pub fn is_end(&self) -> bool {
        matches!(self, Chunk::Final { .. } | Chunk::Error { .. })
    }

    /// The name of its server-sent event (ruling R51).
    pub fn event_name(&self) -> &'static str {
        match self {
            Chunk::Meta { .. } => "meta",
            Chunk::Delta { .. } | Chunk::Snapshot { .. } => "chunk",
            Chunk::Progress(_) => "progress",
            Chunk::Final { .. } => "final",
            Chunk::Error { .. } => "error",
        }
    }
}

impl ToJson for Chunk {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| match self {
            Chunk::Meta { session_id, meta, resume_from_seq } => {
                w.field("ok", &true);
                w.field("streaming", &true);
                w.field("session_id", session_id);
                if let Some(seq) = resume_from_seq {
                    w.field("resumed", &true);
                    w.field("resume_from_seq", seq);
                }
                w.field("meta", &**meta);
            }
            Chunk::Delta { .. } | Chunk::Snapshot { .. } => {
                w.field("chunk", &Numbered(self));
            }
            Chunk::Progress(progress) => {
                w.field("progress", progress);
            }
            Chunk::Final { meta, data, usage, warnings, emitted_context } => {
                w.field("final", &true);
                w.field("meta", &**meta);
                w.field("data", data);
                w.optional("usage", usage);
                write_extras(w, warnings, emitted_context.as_ref());
            }
            Chunk::Error { session_id, error, recovery, partial_data, .. } => {
                w.field("ok", &false);
                w.field("streaming", &true);
                w.field("session_id", session_id);
                w.field("error", &StreamError(error, recovery.as_ref()));
                w.optional("partial_data", partial_data);
            }
        });
    }
}

/// The inner object of a delta or a snapshot.
struct Numbered<'a>(&'a Chunk);

impl ToJson for Numbered<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| match self.0 {
            Chunk::Delta { seq, field, delta, checkpoint } => {
                w.field("seq", seq);
                w.field("type", "delta");
                w.field("field", field);
                w.field("delta", delta);
                w.optional("checkpoint", checkpoint);
            }
            Chunk::Snapshot { seq, field, data } => {
                w.field("seq", seq);
                w.field("type", "snapshot");
                w.optional("field", field);
                w.field("data", data);
            }
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        });
    }
}

/// `error` with `recovery` inside it.
struct StreamError<'a>(&'a ErrorBody, Option<&'a Recovery>);

impl ToJson for StreamError<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            write_error_fields(w, self.0);
            w.optional("recovery", &self.1);
        });
    }
}

impl ToJson for Checkpoint {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("offset", &self.offset);
            w.field("hash", &self.hash);
        });
    }
}

impl ToJson for Progress {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("percent", &self.percent);
            w.optional("stage", &self.stage);
            w.optional("message", &self.message);
            w.optional("violation", &self.violation);
        });
    }
}

impl ToJson for ViolationNote {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("path", &self.path);
            w.field("rule", &self.rule);
            w.field("message", &self.message);
        });
    }
}

impl ToJson for Recovery {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("last_seq", &self.last_seq);
            w.optional("last_checkpoint", &self.last_checkpoint);
            w.optional("retry_after_ms", &self.retry_after_ms);
            w.optional("max_retries", &self.max_retries);
        });
    }
}
