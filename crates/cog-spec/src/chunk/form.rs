//! The chunks of a stream as they are written.

use cog_json::Value;
use serde::Serialize;

use crate::{Checkpoint, Chunk, ErrorBody, Meta, Progress, Recovery, Usage, Warning};

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
    pub(super) fn new(chunk: &'a Chunk) -> Self {
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
