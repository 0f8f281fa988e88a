//! Resumes a session after its reader was disconnected (docs/spec/streaming.md).

use std::{any::Any, collections::HashMap, sync::Arc};

use cog_json::Value;
use cog_spec::{Checkpoint, Code, Envelope, ErrorBody, ErrorCode};

use super::{
    After, RunSpec, SessionState, Sessions, Subscriber, checkpoint, finished, log::Log, shared::Shared,
};
use crate::{Budget, Cancellation, ChunkStream, RunInput, RunOptions, Runtime, error, tools::CallLog};

/// The position of a client in a stream: `_recovery`, or the equivalent headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeFrom {
    /// The `seq` of the last received chunk; 0 without one.
    pub last_seq: u64,
    /// The last received checkpoint, if the client reports one. It must be the last that was sent up to
    /// `last_seq`, or that of the field of `last_seq` up to there.
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
    pub fn code(&self) -> Code {
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
        let (code, message) = (self.code(), self.to_string());
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
    /// `slot` is held until a restarted run has ended, otherwise as long as the subscriber exists. The calls of a restarted run
    /// are counted in `budgets`.
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
        budgets: Vec<Budget>,
        slot: Box<dyn Any + Send>,
    ) -> Result<Subscriber, ResumeError> {
        if self.0.store.settings.recovery.is_none() {
            return Err(ResumeError::Disabled);
        }
        let session = self.0.store.find(id, owner).ok_or(ResumeError::Unknown)?;
        session.wait_for(|state| (!state.is_ending()).then_some(())).await;
        check(&session.lock().log, &from)?;
        let subscriber = Subscriber::new(Arc::clone(&session), After::Seq(from.last_seq));
        let slot = self.repeat(runtime, &session, budgets, slot).await?;
        Ok(subscriber.with_slot(slot))
    }

    /// Reads the past and future entries of a session, without starting its run again.
    ///
    /// # Errors
    /// [`ResumeError::Unknown`], and [`ResumeError::Ahead`] and [`ResumeError::Evicted`] for a number outside
    /// the log.
    pub fn follow(&self, id: &str, owner: &str, after: After) -> Result<Subscriber, ResumeError> {
        let session = self.0.store.find(id, owner).ok_or(ResumeError::Unknown)?;
        if let After::Seq(last_seq) = after {
            check(&session.lock().log, &ResumeFrom { last_seq, last_checkpoint: None })?;
        }
        Ok(Subscriber::new(session, after))
    }

    /// Starts an interrupted run again. Returns the slot when the run was not interrupted.
    async fn repeat(
        &self,
        runtime: &Runtime,
        session: &Arc<Shared>,
        budgets: Vec<Budget>,
        slot: Box<dyn Any + Send>,
    ) -> Result<Option<Box<dyn Any + Send>>, ResumeError> {
        let Some((mut spec, last_seq)) = interrupted(session) else { return Ok(Some(slot)) };
        spec.options.budgets = budgets;
        let cancellation = Cancellation::new();
        let chunks = self.start_again(runtime, session, spec, last_seq, &cancellation).await;
        let chunks = chunks.map_err(ResumeError::Refused)?;
        // Another client may have restarted the run already; then this one reads that run.
        if !self.0.store.reopen(session, cancellation) {
            return Ok(Some(slot));
        }
        self.pump(session, chunks, slot);
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
        let module = runtime.load_name_async(&spec.module).await;
        let module = module.map_err(|error| Box::new(Envelope::failure(error)))?;
        let finished_parts = finished::from_log(&session.lock().log);
        let call_log = spec.options.call_log.map(CallLog::resumed);
        let media = match call_log.clone() {
            Some(log) => tokio::task::spawn_blocking(move || log.media()).await.unwrap_or_default(),
            None => HashMap::new(),
        };
        let input = RunInput::Json(spec.input);
        let options = RunOptions {
            call_log,
            stored_media: Arc::new(media),
            cancellation: cancellation.clone(),
            session_id: Some(session.id.clone()),
            resume_from: Some(last_seq),
            recovery: self.0.store.settings.recovery,
            finished_parts: Some(finished_parts),
            ..spec.options
        };
        // It reads the log of the tool calls.
        let runtime = runtime.clone();
        let started = tokio::task::spawn_blocking(move || runtime.execute_stream(&module, input, options));
        started.await.unwrap_or_else(|failed| Err(Box::new(Envelope::failure(error::from_task(&failed)))))
    }
}

fn check(log: &Log, from: &ResumeFrom) -> Result<(), ResumeError> {
    let (last_seq, first, last) = (from.last_seq, log.first_seq(), log.last_seq());
    if last_seq > last {
        return Err(ResumeError::Ahead { last_seq, last });
    }
    if last_seq < first {
        return Err(ResumeError::Evicted { last_seq, first });
    }
    match &from.last_checkpoint {
        Some(checkpoint) if !checkpoint::agrees(log, last_seq, checkpoint) => {
            Err(ResumeError::Checkpoint { last_seq })
        }
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
