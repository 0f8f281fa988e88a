use cog_json::{Node, ToJson, Writer};
use cog_spec::Chunk;

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// The model is asked.
    Running,
    /// The answer is there.
    Finished,
    /// The run ended with an error that resuming does not mend.
    Failed,
    /// The run was cut: resumed, it is asked again (docs/spec/streaming.md).
    Interrupted,
    /// Somebody cancelled the run. It is over.
    Cancelled,
}

/// What can be told of a session to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id, which nobody can guess.
    pub id: String,
    /// The module that runs.
    pub module: String,
    /// How far it is.
    pub state: SessionState,
    /// Whether the run goes on when nobody reads it.
    pub detached: bool,
    /// The number of the last numbered chunk; 0 before the first (ruling R41).
    pub last_seq: u64,
    /// When it began: milliseconds since 1970.
    pub created_ms: u64,
}

impl SessionState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Failed, Self::Interrupted, Self::Cancelled];

    /// The state in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state after this end.
    pub(crate) fn after(end: &Chunk) -> Self {
        match end {
            Chunk::Final { .. } => Self::Finished,
            Chunk::Error { recovery: Some(_), .. } => Self::Interrupted,
            Chunk::Error { error, .. } => {
                Self::of_error(error.details.as_ref().map(|details| details.node()))
            }
            Chunk::Meta { .. } | Chunk::Delta { .. } | Chunk::Snapshot { .. } | Chunk::Progress(_) => {
                Self::Running
            }
        }
    }

    /// The state after an error that no resuming mends, with these `details`.
    pub(crate) fn of_error(details: Option<Node<'_>>) -> Self {
        let reason = details.and_then(|details| details.get("reason")?.as_str());
        if reason == Some("cancelled") { Self::Cancelled } else { Self::Failed }
    }
}

impl ToJson for SessionInfo {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("session_id", &self.id);
            w.field("module", &self.module);
            w.field("state", self.state.as_str());
            w.field("detached", &self.detached);
            w.field("last_seq", &self.last_seq);
            w.field("created_ms", &self.created_ms);
        });
    }
}
