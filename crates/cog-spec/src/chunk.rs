//! The chunks of a streamed answer (SPEC 3.2, rulings R41–R52).

use cog_json::Value;
use serde::{Deserialize, Serialize, Serializer};

use crate::{ErrorBody, Meta, PartProgress, Usage, Warning};

/// One chunk of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// The first chunk: `{ok: true, streaming: true, session_id, meta}`.
    Meta {
        /// The session ID.
        session_id: String,
        /// The meta that is known before the reply (ruling R42).
        meta: Box<Meta>,
        /// For a resumed stream, the last `seq` that the client has.
        resume_from_seq: Option<u64>,
        /// The warning that the stream is not the one to resume (ruling R71).
        warnings: Vec<Warning>,
    },
    /// A part of a string.
    Delta {
        /// The sequence number: 1, 2, 3 … over deltas and snapshots (ruling R41).
        seq: u64,
        /// The path of the string from the envelope, such as `data.rationale` (ruling R44).
        field: String,
        /// The text to append.
        delta: String,
        /// The length and hash of the string so far (ruling R52).
        checkpoint: Option<Checkpoint>,
    },
    /// A value that replaces the previous one at its path.
    Snapshot {
        /// The sequence number, counted with the deltas.
        seq: u64,
        /// The path of the value; none for all `data`.
        field: Option<String>,
        /// The value.
        data: Value,
    },
    /// The progress of the run. Has no `seq`.
    Progress(Progress),
    /// The end of a successful run.
    Final {
        /// The control plane.
        meta: Box<Meta>,
        /// The checked answer.
        data: Value,
        /// The tokens of all attempts.
        usage: Option<Usage>,
        /// The warnings of the run.
        warnings: Vec<Warning>,
        /// The context that the module emits.
        emitted_context: Option<Value>,
        /// The packet for the agent that the run hands over to.
        handoff: Option<Value>,
    },
    /// The end of a failed run.
    Error {
        /// The session ID.
        session_id: String,
        /// The error.
        error: Box<ErrorBody>,
        /// How the stream can be resumed, if it can.
        recovery: Option<Recovery>,
        /// The data of the chunks so far, without an invalid field (ruling R43).
        partial_data: Option<Value>,
        /// The warnings of the run.
        warnings: Vec<Warning>,
    },
}

/// The length and hash of a string so far (docs/spec/streaming.md, recovery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "checkpoint"))]
pub struct Checkpoint {
    /// The length of the string so far, in bytes.
    pub offset: u64,
    /// The first six hexadecimal digits of the SHA-256 of the string so far.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]{6}$")))]
    pub hash: String,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "progress"))]
pub struct Progress {
    /// The progress in percent, from 0 to 100.
    #[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0, max = 100)))]
    pub percent: u8,
    /// The name of the current step, such as `checking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// A description of the current step for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool that is called (`stage: tool_call`), or whose result is known (`stage: tool_result`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A violation of the contract that was found while the answer arrives (ruling R49).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<ViolationNote>,
    /// The part of a composition that the progress is about (`stage: part`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Box<PartProgress>>,
}

impl Progress {
    /// Returns a description of the current step for people; none for a violation.
    pub fn description(&self) -> Option<String> {
        match (&self.tool, &self.message) {
            (Some(tool), Some(status)) => Some(format!("{tool}: {status}")),
            (Some(tool), None) => Some(format!("calling {tool}")),
            (None, message) => message.clone().or_else(|| self.stage.clone()),
        }
        .filter(|_| self.violation.is_none())
    }
}

/// A violation in a progress chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "violation"))]
pub struct ViolationNote {
    /// The path from the envelope.
    pub path: String,
    /// The name of the violated rule, such as `type` or `required`.
    pub rule: String,
    /// A description of the violation for people.
    pub message: String,
}

/// How an interrupted stream can be resumed (docs/spec/streaming.md).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "recovery"))]
pub struct Recovery {
    /// The last `seq` that was sent.
    pub last_seq: u64,
    /// The last checkpoint that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    /// The time to wait before a retry, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The maximum number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
}

impl Chunk {
    /// Returns the sequence number; none for chunks that have no number (ruling R41).
    pub fn seq(&self) -> Option<u64> {
        match self {
            Chunk::Delta { seq, .. } | Chunk::Snapshot { seq, .. } => Some(*seq),
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => None,
        }
    }

    /// Returns whether this is the last chunk of a stream.
    pub fn is_end(&self) -> bool {
        matches!(self, Chunk::Final { .. } | Chunk::Error { .. })
    }

    /// Returns the name of its server-sent event (ruling R51).
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

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ChunkForm::new(self).serialize(serializer)
    }
}

// The chunks of a stream as they are written.

/// One chunk of a streamed answer (SPEC 3.2).
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Chunk", transform = crate::schema::one_of, extend("type" = "object"))
)]
#[serde(untagged)]
pub(crate) enum ChunkForm<'a> {
    Meta(MetaForm<'a>),
    Numbered(NumberedForm<'a>),
    Progress(ProgressForm<'a>),
    Final(FinalForm<'a>),
    Error(ErrorForm<'a>),
}

/// The first chunk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "metaChunk"))]
pub(crate) struct MetaForm<'a> {
    /// True: the run has started.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    ok: bool,
    /// True: chunks follow.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    streaming: bool,
    /// The session ID.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    session_id: &'a str,
    /// True if the stream was resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    resumed: Option<bool>,
    /// The last `seq` that the client has.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_from_seq: Option<u64>,
    /// The warning that this is a new stream instead of the one to resume.
    #[serde(rename = "_warnings", skip_serializing_if = "<[Warning]>::is_empty")]
    warnings: &'a [Warning],
    /// The meta that is known before the reply.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::FirstMeta"))]
    meta: &'a Meta,
}

/// A part of the answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "numberedChunk"))]
pub(crate) struct NumberedForm<'a> {
    /// The part of the answer.
    chunk: ContentForm<'a>,
}

/// A part of a string, or a value.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, transform = crate::schema::one_of)
)]
#[serde(untagged)]
enum ContentForm<'a> {
    Delta(DeltaForm<'a>),
    Snapshot(SnapshotForm<'a>),
}

/// A part of a string.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "delta"))]
struct DeltaForm<'a> {
    /// The sequence number: 1, 2, 3 … over deltas and snapshots.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    seq: u64,
    /// The type of the content.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "delta")))]
    r#type: &'static str,
    /// The path of the string from the envelope, such as `data.rationale`.
    field: &'a str,
    /// The text to append.
    delta: &'a str,
    /// The length and hash of the string so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a Checkpoint>,
}

/// A value that replaces the previous one at its path.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "snapshot"))]
struct SnapshotForm<'a> {
    /// The sequence number, counted with the deltas.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    seq: u64,
    /// The type of the content.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "snapshot")))]
    r#type: &'static str,
    /// The path of the value from the envelope; absent for all `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// The value.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    data: &'a Value,
}

/// The progress of the run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "progressChunk"))]
pub(crate) struct ProgressForm<'a> {
    /// The progress of the run.
    progress: &'a Progress,
}

/// The end of a successful run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "finalChunk"))]
pub(crate) struct FinalForm<'a> {
    /// True: the stream is complete.
    #[serde(rename = "final")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    is_final: bool,
    /// The control plane.
    meta: &'a Meta,
    /// The checked answer.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Object"))]
    data: &'a Value,
    /// The tokens of all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    /// The warnings of the run.
    #[serde(rename = "_warnings", skip_serializing_if = "<[Warning]>::is_empty")]
    warnings: &'a [Warning],
    /// The context that the module emits.
    #[serde(rename = "_emitted_context", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    emitted_context: Option<&'a Value>,
    /// The packet for the agent that the run hands over to.
    #[serde(rename = "_handoff", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Object"))]
    handoff: Option<&'a Value>,
}

/// The end of a failed run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "errorChunk"))]
pub(crate) struct ErrorForm<'a> {
    /// False: the run failed.
    #[cfg_attr(feature = "schema", schemars(extend("const" = false)))]
    ok: bool,
    /// True: the chunk is part of a stream.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    streaming: bool,
    /// The session ID.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    session_id: &'a str,
    /// The error.
    error: StreamError<'a>,
    /// The data of the chunks so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::ObjectOrNull"))]
    partial_data: Option<&'a Value>,
    /// The warnings of the run.
    #[serde(rename = "_warnings", skip_serializing_if = "<[Warning]>::is_empty")]
    warnings: &'a [Warning],
}

/// The error of a stream, with the way to resume it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "streamError"))]
struct StreamError<'a> {
    #[serde(flatten)]
    error: &'a ErrorBody,
    /// How the stream can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<&'a Recovery>,
}

impl<'a> ChunkForm<'a> {
    fn new(chunk: &'a Chunk) -> Self {
        match chunk {
            Chunk::Meta { session_id, meta, resume_from_seq, warnings } => Self::Meta(MetaForm {
                ok: true,
                streaming: true,
                session_id,
                resumed: resume_from_seq.map(|_| true),
                resume_from_seq: *resume_from_seq,
                warnings,
                meta,
            }),
            Chunk::Delta { seq, field, delta, checkpoint } => {
                let checkpoint = checkpoint.as_ref();
                let delta = DeltaForm { seq: *seq, r#type: "delta", field, delta, checkpoint };
                Self::Numbered(NumberedForm { chunk: ContentForm::Delta(delta) })
            }
            Chunk::Snapshot { seq, field, data } => {
                let snapshot = SnapshotForm { seq: *seq, r#type: "snapshot", field: field.as_deref(), data };
                Self::Numbered(NumberedForm { chunk: ContentForm::Snapshot(snapshot) })
            }
            Chunk::Progress(progress) => Self::Progress(ProgressForm { progress }),
            Chunk::Final { meta, data, usage, warnings, emitted_context, handoff } => {
                Self::Final(FinalForm {
                    is_final: true,
                    meta,
                    data,
                    usage: usage.as_ref(),
                    warnings,
                    emitted_context: emitted_context.as_ref(),
                    handoff: handoff.as_ref(),
                })
            }
            Chunk::Error { session_id, error, recovery, partial_data, warnings } => Self::Error(ErrorForm {
                ok: false,
                streaming: true,
                session_id,
                error: StreamError { error, recovery: recovery.as_ref() },
                partial_data: partial_data.as_ref(),
                warnings,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Risk};

    fn chunks() -> [Chunk; 6] {
        let meta = Box::new(Meta::new(None, Risk::Low, "Running a"));
        [
            Chunk::Meta {
                session_id: "s".to_owned(),
                meta: meta.clone(),
                resume_from_seq: Some(6),
                warnings: Vec::new(),
            },
            Chunk::Delta { seq: 7, field: "data.a".to_owned(), delta: "b".to_owned(), checkpoint: None },
            Chunk::Snapshot { seq: 8, field: None, data: Value::default() },
            Chunk::Progress(Progress::default()),
            Chunk::Final {
                meta,
                data: Value::default(),
                usage: None,
                warnings: Vec::new(),
                emitted_context: None,
                handoff: None,
            },
            Chunk::Error {
                session_id: "s".to_owned(),
                error: Box::new(ErrorBody::new(Code::ParseError, "no JSON")),
                recovery: None,
                partial_data: None,
                warnings: Vec::new(),
            },
        ]
    }

    #[test]
    fn each_chunk_has_its_event_and_only_content_has_a_number() {
        let found = chunks().map(|chunk| (chunk.event_name(), chunk.seq(), chunk.is_end()));
        let expected = [
            ("meta", None, false),
            ("chunk", Some(7), false),
            ("chunk", Some(8), false),
            ("progress", None, false),
            ("final", None, true),
            ("error", None, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn description_of_a_progress_names_the_tool_or_the_step() {
        let describe = |stage: Option<&str>, message: Option<&str>, tool: Option<&str>| {
            let [stage, message, tool] = [stage, message, tool].map(|text| text.map(str::to_owned));
            Progress { stage, message, tool, ..Progress::default() }
        };
        let cases = [
            (describe(Some("tool_call"), None, Some("search")), Some("calling search")),
            (describe(Some("tool_result"), Some("done"), Some("search")), Some("search: done")),
            (describe(Some("checking"), Some("Checking the answer"), None), Some("Checking the answer")),
            (describe(Some("checking"), None, None), Some("checking")),
            (describe(None, None, None), None),
        ];
        for (progress, expected) in cases {
            assert_eq!(progress.description().as_deref(), expected);
            let [path, rule, message] = ["data.a", "type", "not a string"].map(str::to_owned);
            let violation = Some(ViolationNote { path, rule, message });
            assert_eq!(Progress { violation, ..progress }.description(), None);
        }
    }
}
