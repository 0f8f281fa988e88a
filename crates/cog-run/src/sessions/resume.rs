//! Going on with a session after its reader was cut off (docs/spec/streaming.md).

use std::{any::Any, sync::Arc};

use cog_spec::{Checkpoint, Code, Envelope, ErrorBody, ErrorCode};

use super::{After, RunSpec, SessionState, Sessions, Subscriber, checkpoint, log::Log, shared::Shared};
use crate::{Cancellation, ChunkStream, RunInput, RunOptions, Runtime};

/// What a client has of a stream: `_recovery`, or the headers that say the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeFrom {
    /// The number of the last chunk it has; 0 where it has none.
    pub last_seq: u64,
    /// The last checkpoint it has; none where it does not say. It is right where it is the last that was told up to
    /// `last_seq`, or that of the field of `last_seq` up to there.
    pub last_checkpoint: Option<Checkpoint>,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// E4012: this store resumes nothing.
    #[error("recovery of streams is switched off")]
    Off,
    /// E4013: there is no such session, or it is another's, or it has left.
    #[error("there is no such session any more")]
    Unknown,
    /// E4014: the client says to have what was never sent.
    #[error("last_seq is {asked}, and the last chunk of the session is {last}")]
    Ahead {
        /// What the client says.
        asked: u64,
        /// The number of the last chunk.
        last: u64,
    },
    /// E4014: what comes next has left the log.
    #[error("last_seq is {asked}, and the log of the session begins after {first}")]
    Left {
        /// What the client says.
        asked: u64,
        /// The lowest that can be gone on from.
        first: u64,
    },
    /// E4014: the checkpoint is not that of this session.
    #[error("last_checkpoint is not what the session told up to chunk {last_seq}")]
    Checkpoint {
        /// What the client says to have.
        last_seq: u64,
    },
    /// The run cannot be asked again; the envelope says why.
    #[error("the run cannot be asked again")]
    Refused(Box<Envelope>),
}

impl ResumeError {
    /// The code of the error; that of the envelope where asking again was refused and its code is a standard one.
    pub fn code(&self) -> Code {
        match self {
            Self::Off => Code::RecoveryNotSupported,
            Self::Unknown => Code::SessionExpired,
            Self::Ahead { .. } | Self::Left { .. } | Self::Checkpoint { .. } => Code::CheckpointInvalid,
            Self::Refused(envelope) => match envelope.error().map(|error| &error.code) {
                Some(ErrorCode::Standard(code)) => *code,
                _ => Code::InternalError,
            },
        }
    }

    /// The answer to who wanted to resume.
    pub fn into_envelope(self) -> Box<Envelope> {
        let (code, message) = (self.code(), self.to_string());
        match self {
            Self::Refused(envelope) => envelope,
            _ => Box::new(Envelope::failure(ErrorBody::new(code, message).suggest(code.advice()))),
        }
    }
}

impl Sessions {
    /// Goes on reading a session after what the client has: first the meta chunk, which says `resumed`, then what
    /// comes after `last_seq`. A run that was interrupted is asked again, in the same session: a snapshot of no
    /// data, and `seq` goes on. A run that was told to stop is waited for first.
    ///
    /// `slot` is held until the run has ended where it is asked again, else as long as the follower reads.
    ///
    /// # Errors
    /// See [`ResumeError`].
    pub async fn resume(
        &self,
        runtime: &Runtime,
        id: &str,
        owner: &str,
        from: ResumeFrom,
        slot: Box<dyn Any + Send>,
    ) -> Result<Subscriber, ResumeError> {
        if self.0.shelf.settings.recovery.is_none() {
            return Err(ResumeError::Off);
        }
        let session = self.0.shelf.find(id, owner).ok_or(ResumeError::Unknown)?;
        session.when(|state| (!state.is_ending()).then_some(())).await;
        check(&session.lock().log, &from)?;
        let follower = Subscriber::new(Arc::clone(&session), After::Seq(from.last_seq));
        let slot = self.go_on(runtime, &session, slot).await?;
        Ok(follower.holding(slot))
    }

    /// Reads what a session has told and will tell, without asking again.
    ///
    /// # Errors
    /// [`ResumeError::Unknown`], and [`ResumeError::Ahead`] and [`ResumeError::Left`] for a number out of the log.
    pub fn follow(&self, id: &str, owner: &str, after: After) -> Result<Subscriber, ResumeError> {
        let session = self.0.shelf.find(id, owner).ok_or(ResumeError::Unknown)?;
        if let After::Seq(last_seq) = after {
            check(&session.lock().log, &ResumeFrom { last_seq, last_checkpoint: None })?;
        }
        Ok(Subscriber::new(session, after))
    }

    /// Asks again where the run was interrupted; gives the slot back where it was not.
    async fn go_on(
        &self,
        runtime: &Runtime,
        session: &Arc<Shared>,
        slot: Box<dyn Any + Send>,
    ) -> Result<Option<Box<dyn Any + Send>>, ResumeError> {
        let Some((spec, last_seq)) = interrupted(session) else { return Ok(Some(slot)) };
        let stop = Cancellation::new();
        let chunks = self.ask_again(runtime, session, spec, last_seq, &stop).await;
        let chunks = chunks.map_err(ResumeError::Refused)?;
        // Another client may have been faster; then its run is read.
        if !self.0.shelf.reopen(session, stop) {
            return Ok(Some(slot));
        }
        self.pump(session, chunks, slot);
        Ok(None)
    }

    async fn ask_again(
        &self,
        runtime: &Runtime,
        session: &Shared,
        spec: RunSpec,
        last_seq: u64,
        stop: &Cancellation,
    ) -> Result<ChunkStream, Box<Envelope>> {
        let module = runtime.load_name_async(&spec.module).await;
        let module = module.map_err(|error| Box::new(Envelope::failure(error)))?;
        let options = RunOptions {
            stop: stop.clone(),
            session_id: Some(session.id.clone()),
            resume_from: Some(last_seq),
            recovery: self.0.shelf.settings.recovery,
            ..spec.options
        };
        runtime.execute_stream(&module, RunInput::Json(spec.input), options)
    }
}

fn check(log: &Log, from: &ResumeFrom) -> Result<(), ResumeError> {
    let (asked, first, last) = (from.last_seq, log.first_seq(), log.last_seq());
    if asked > last {
        return Err(ResumeError::Ahead { asked, last });
    }
    if asked < first {
        return Err(ResumeError::Left { asked, first });
    }
    match &from.last_checkpoint {
        Some(checkpoint) if !checkpoint::agrees(log, asked, checkpoint) => {
            Err(ResumeError::Checkpoint { last_seq: asked })
        }
        _ => Ok(()),
    }
}

/// What to ask again, and after which number.
fn interrupted(session: &Shared) -> Option<(RunSpec, u64)> {
    let state = session.lock();
    let is_interrupted = state.stage == SessionState::Interrupted;
    let spec = state.spec.clone().filter(|_| is_interrupted)?;
    Some((spec, state.log.last_seq()))
}
