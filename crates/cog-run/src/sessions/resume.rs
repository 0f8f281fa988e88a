//! Resumes a session after its reader was disconnected (docs/spec/streaming.md).

use std::{any::Any, collections::HashMap, sync::Arc};

use cog_json::{Node, Path, ToJson as _, Value};
use cog_spec::{Checkpoint, Code, Envelope, ErrorBody, ErrorCode};
use sha2::{Digest as _, Sha256};

use super::{
    RunSpec, SessionState, Sessions, StartFrom, Subscriber,
    log::{self, Event, Log, Mark},
    shared::Shared,
};
use crate::{
    Cancellation, ChunkStream, ModuleRef, RunContext, RunInput, RunOptions, Runtime, call_log::CallLog, error,
};

/// The position of a client in a stream: `_recovery`, or the equivalent headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeFrom {
    /// The `seq` of the last received chunk; 0 without one.
    pub last_seq: u64,
    /// The last received checkpoint, if the client reports one. It must be the last that was sent up to
    /// `last_seq`, or match the field of `last_seq` up to there.
    pub last_checkpoint: Option<Checkpoint>,
}

/// An error of resuming a session.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// E4012: this store does not resume sessions.
    #[error("resuming streams is disabled on this server")]
    Disabled,
    /// E4013: the session does not exist, has expired, or belongs to another owner.
    #[error("unknown session, or the session has expired")]
    Unknown,
    /// E4001: the log that several servers share cannot be read now.
    #[error("the sessions of other servers cannot be read now, so it is not known whether this one exists")]
    Unavailable,
    /// E4014: the client reports a `seq` that was never sent.
    #[error("last_seq {last_seq} is not valid: the last chunk of the session is {last}")]
    Ahead {
        /// The `seq` that the client reported.
        last_seq: u64,
        /// The `seq` of the last chunk.
        last: u64,
    },
    /// E4014: the next chunk was dropped from the log.
    #[error("the chunk after last_seq {last_seq} was removed from the log, which begins after {first}")]
    Evicted {
        /// The `seq` that the client reported.
        last_seq: u64,
        /// The lowest `seq` from which the session can be resumed.
        first: u64,
    },
    /// E4014: the checkpoint does not match this session.
    #[error("last_checkpoint does not match the session up to chunk {last_seq}")]
    Checkpoint {
        /// The `seq` that the client reported.
        last_seq: u64,
    },
    /// The run cannot be started again. The envelope contains the error.
    #[error("the run cannot be repeated")]
    Refused(Box<Envelope>),
}

impl ResumeError {
    /// Returns the code of the error. For a rejected run it is the envelope's code, when that is a standard
    /// one.
    fn code(&self) -> Code {
        match self {
            Self::Disabled => Code::RecoveryNotSupported,
            Self::Unknown => Code::SessionExpired,
            Self::Unavailable => Code::ProviderUnavailable,
            Self::Ahead { .. } | Self::Evicted { .. } | Self::Checkpoint { .. } => Code::CheckpointInvalid,
            Self::Refused(envelope) => match envelope.error().map(|error| &error.code) {
                Some(ErrorCode::Standard(code)) => *code,
                _ => Code::InternalError,
            },
        }
    }

    /// Returns the envelope for the client.
    pub fn into_envelope(self) -> Box<Envelope> {
        let code = self.code();
        let message = self.to_string();
        match self {
            Self::Refused(envelope) => envelope,
            Self::Unavailable => {
                let help = "Try again once the servers reach the log that they share.";
                let mut body = ErrorBody::new(code, message).suggest(help);
                body.details = Some(Value::from(serde_json::json!({ "retry_after_ms": 1_000 })));
                Box::new(Envelope::failure(body))
            }
            _ => Box::new(Envelope::failure(ErrorBody::new(code, message).suggest(code.advice()))),
        }
    }
}

impl Sessions {
    /// Resumes a session after the client's last chunk. The stream starts with a meta chunk with `resumed`,
    /// then continues after `last_seq`.
    ///
    /// An interrupted run starts again in the same session: it sends an empty snapshot, and `seq` continues.
    /// A run that is being cancelled is awaited first.
    ///
    /// `permit` is held until a restarted run has ended, otherwise as long as the subscriber exists. The budgets of a restarted run
    /// and the rules for its client come from `options`: they may have changed since the run began.
    ///
    /// # Errors
    /// See [`ResumeError`].
    #[expect(clippy::too_many_arguments, reason = "each is something else that the server has of a request")]
    pub async fn resume(
        &self,
        runtime: &Runtime,
        id: &str,
        owner: &str,
        from: ResumeFrom,
        options: RunOptions,
        permit: Box<dyn Any + Send>,
    ) -> Result<Subscriber, ResumeError> {
        if self.0.store.settings.recovery.is_none() {
            return Err(ResumeError::Disabled);
        }
        let session = self.0.store.find(id, owner).ok_or(ResumeError::Unknown)?;
        // Its last chunk decides whether there is anything to resume.
        session.wait_for(|state| (!state.is_ending()).then_some(())).await;
        check(&session.lock().log, &from)?;
        let subscriber = Subscriber::new(Arc::clone(&session), StartFrom::Seq(from.last_seq));
        let permit = self.repeat(runtime, &session, options, permit).await?;
        Ok(subscriber.with_permit(permit))
    }

    /// Reads the past and future entries of a session, without starting its run again.
    ///
    /// # Errors
    /// [`ResumeError::Unknown`], and [`ResumeError::Ahead`] and [`ResumeError::Evicted`] for a number outside
    /// the log.
    pub fn follow(&self, id: &str, owner: &str, from: StartFrom) -> Result<Subscriber, ResumeError> {
        let session = self.0.store.find(id, owner).ok_or(ResumeError::Unknown)?;
        if let StartFrom::Seq(last_seq) = from {
            check(&session.lock().log, &ResumeFrom { last_seq, last_checkpoint: None })?;
        }
        Ok(Subscriber::new(session, from))
    }

    /// Starts an interrupted run again. Returns the permit when the run was not interrupted.
    async fn repeat(
        &self,
        runtime: &Runtime,
        session: &Arc<Shared>,
        options: RunOptions,
        permit: Box<dyn Any + Send>,
    ) -> Result<Option<Box<dyn Any + Send>>, ResumeError> {
        let Some((mut spec, last_seq)) = interrupted(session) else { return Ok(Some(permit)) };
        // Budgets are not stored with a session: without these, a run that starts again would be free.
        spec.options.budgets = options.budgets;
        spec.options.client = options.client;
        // The operator may have lowered the limit since the run began.
        spec.options.timeout = spec.options.timeout.map(|timeout| timeout.min(runtime.timeout()));
        let cancellation = Cancellation::default();
        let chunks = self.start_again(runtime, session, spec, last_seq, &cancellation).await;
        let chunks = chunks.map_err(ResumeError::Refused)?;
        // Another client may have restarted the run already; then this one reads that run.
        if !self.0.store.reopen(session, cancellation) {
            return Ok(Some(permit));
        }
        self.spawn_writer(session, chunks, permit);
        Ok(None)
    }

    async fn start_again(
        &self,
        runtime: &Runtime,
        session: &Shared,
        spec: RunSpec,
        last_seq: u64,
        cancellation: &Cancellation,
    ) -> Result<ChunkStream, Box<Envelope>> {
        let module = runtime.load_async(ModuleRef::Name(&spec.module)).await;
        let module = module.map_err(|error| Box::new(Envelope::failure(error)))?;
        let finished_parts = log::finished_parts(&session.lock().log);
        let call_log = spec.context.call_log.map(CallLog::resumed);
        let media = match call_log.clone() {
            Some(log) => tokio::task::spawn_blocking(move || log.media()).await.unwrap_or_default(),
            None => HashMap::new(),
        };
        let input = RunInput::Json(spec.input);
        let options = RunOptions { cancellation: cancellation.clone(), ..spec.options };
        let context = RunContext {
            call_log,
            stored_media: Arc::new(media),
            session_id: Some(session.id.clone()),
            resume_from: Some(last_seq),
            recovery: self.0.store.settings.recovery,
            finished_parts: Some(finished_parts),
            ..spec.context
        };
        // It reads the log of the tool calls.
        let runtime = runtime.clone();
        let started = tokio::task::spawn_blocking(move || runtime.prepare(&module, input, options, context));
        started.await.unwrap_or_else(|failed| Err(Box::new(Envelope::failure(error::from_task(&failed)))))
    }
}

fn check(log: &Log, from: &ResumeFrom) -> Result<(), ResumeError> {
    let last_seq = from.last_seq;
    let first = log.first_seq();
    let last = log.last_seq();
    if last_seq > last {
        return Err(ResumeError::Ahead { last_seq, last });
    }
    if last_seq < first {
        return Err(ResumeError::Evicted { last_seq, first });
    }
    match &from.last_checkpoint {
        Some(checkpoint) if !agrees(log, last_seq, checkpoint) => Err(ResumeError::Checkpoint { last_seq }),
        _ => Ok(()),
    }
}

/// Returns the run to start again, and the last `seq` of its log.
fn interrupted(session: &Shared) -> Option<(RunSpec, u64)> {
    let state = session.lock();
    let is_interrupted = state.stage == SessionState::Interrupted;
    let spec = state.spec.clone().filter(|_| is_interrupted)?;
    Some((spec, state.log.last_seq()))
}

// Checks that a client and a log refer to the same stream (ruling R52, docs/spec/streaming.md).

/// The maximum bytes of a text whose checkpoint is computed again.
const MAX_TEXT: u64 = 64 * 1024;

/// Returns whether a checkpoint is valid for a client whose last chunk is this one.
///
/// It must be the last checkpoint sent up to that chunk, or match the text of the chunk's string up to there.
pub(crate) fn agrees(log: &Log, last_seq: u64, checkpoint: &Checkpoint) -> bool {
    newest(log, last_seq).as_ref() == Some(checkpoint)
        || from_text(log, last_seq, checkpoint.offset).as_ref() == Some(checkpoint)
}

/// Returns the last checkpoint that was sent up to this chunk.
pub(crate) fn newest(log: &Log, last_seq: u64) -> Option<Checkpoint> {
    let (_, line) = up_to(log, last_seq).find(|(mark, _)| mark.has_checkpoint)?;
    let value = Value::parse(line).ok()?;
    let checkpoint = value.get("chunk")?.get("checkpoint")?;
    let hash = checkpoint.get("hash")?.as_str()?.to_owned();
    Some(Checkpoint { offset: checkpoint.get("offset")?.as_u64()?, hash })
}

/// Computes the checkpoint of the string that this chunk extends.
///
/// None when the string is longer than `max_bytes` bytes, or the chunk is not a delta. The stream of a longer text
/// contains enough checkpoints.
fn from_text(log: &Log, last_seq: u64, max_bytes: u64) -> Option<Checkpoint> {
    let max_bytes = max_bytes.min(MAX_TEXT);
    let last = Value::parse(chunks(log, last_seq).next()?).ok()?;
    let field = last.get("chunk").filter(|chunk| chunk.get("delta").is_some())?.get("field")?.as_str()?;
    let path: Path = field.parse().ok()?;
    let key = format!(r#""field":{}"#, field.to_json());
    let mut parts = Vec::new();
    let mut offset = 0;
    for line in chunks(log, last_seq) {
        if line.contains(r#""type":"snapshot""#) {
            let value = Value::parse(line).ok()?;
            if value.get("chunk").is_some_and(|chunk| replaces(chunk, &path)) {
                break;
            }
        } else if line.contains(&key) {
            let value = Value::parse(line).ok()?;
            let part = value.get("chunk")?.get("delta")?.as_str()?.to_owned();
            offset += part.len() as u64;
            parts.push(part);
        }
        if offset > max_bytes {
            return None;
        }
    }
    Some(Checkpoint { offset, hash: hash(parts.iter().rev()) })
}

/// Returns the numbered chunks up to this one, newest first.
fn chunks(log: &Log, last_seq: u64) -> impl Iterator<Item = &str> {
    up_to(log, last_seq).filter(|(mark, _)| mark.event == Event::Chunk).map(|(_, line)| line)
}

/// Returns the entries up to this number, newest first.
fn up_to(log: &Log, last_seq: u64) -> impl Iterator<Item = (Mark, &str)> {
    log.entries().rev().skip_while(move |(mark, _)| mark.seq > last_seq)
}

/// Returns whether a snapshot replaces the value at this path.
fn replaces(snapshot: Node<'_>, path: &Path) -> bool {
    match snapshot.get("field").and_then(|field| field.as_str()) {
        None => true,
        Some(field) => field.parse().is_ok_and(|field: Path| path.starts_with(&field)),
    }
}

/// Returns the first six hexadecimal digits of the SHA-256 of a text.
fn hash<'a>(parts: impl Iterator<Item = &'a String>) -> String {
    let digest = parts.fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize();
    digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use cog_spec::Chunk;

    use super::*;

    fn delta(seq: u64, field: &str, delta: &str) -> Chunk {
        Chunk::Delta { seq, field: field.to_owned(), delta: delta.to_owned(), checkpoint: None }
    }

    fn snapshot(seq: u64, field: Option<&str>) -> Chunk {
        Chunk::Snapshot { seq, field: field.map(str::to_owned), data: Value::parse("{}").unwrap() }
    }

    fn log(chunks: &[Chunk]) -> Log {
        let mut log = Log::default();
        chunks.iter().for_each(|chunk| log.push(chunk));
        log
    }

    fn checkpoint(text: &str) -> Checkpoint {
        Checkpoint { offset: text.len() as u64, hash: hash([text.to_owned()].iter()) }
    }

    #[test]
    fn checkpoint_matches_the_deltas_of_its_field() {
        let log = log(&[
            delta(1, "data.a", "one"),
            delta(2, "data.b", "\"field\":\"data.a\""),
            delta(3, "data.a", " two"),
            delta(4, "data.a", " three"),
        ]);
        assert!(agrees(&log, 1, &checkpoint("one")));
        assert!(agrees(&log, 3, &checkpoint("one two")));
        assert!(agrees(&log, 4, &checkpoint("one two three")));
        assert!(!agrees(&log, 4, &checkpoint("one two")));
        assert!(!agrees(&log, 3, &checkpoint("one-two")));
        assert!(!agrees(&log, 2, &checkpoint("one")));
    }

    #[test]
    fn replaced_text_is_not_counted() {
        for field in [None, Some("data"), Some("data.a")] {
            let log = log(&[delta(1, "data.a", "gone"), snapshot(2, field), delta(3, "data.a", "new")]);
            assert!(agrees(&log, 3, &checkpoint("new")), "{field:?}");
        }
        let log = log(&[delta(1, "data.a", "one"), snapshot(2, Some("data.b")), delta(3, "data.a", "two")]);
        assert!(agrees(&log, 3, &checkpoint("onetwo")));
        assert!(!agrees(&log, 2, &checkpoint("one")));
    }

    #[test]
    fn last_sent_checkpoint_is_valid() {
        let sent = Checkpoint { offset: 5, hash: "abc123".to_owned() };
        let first = Chunk::Delta {
            seq: 1,
            field: "data.a".to_owned(),
            delta: "12345".to_owned(),
            checkpoint: Some(sent.clone()),
        };
        let log = log(&[first, snapshot(2, Some("data.n")), delta(3, "data.b", "x")]);
        assert_eq!(newest(&log, 3), Some(sent.clone()));
        assert!(agrees(&log, 2, &sent) && agrees(&log, 3, &sent));
        assert!(!agrees(&log, 0, &sent));
    }
}
