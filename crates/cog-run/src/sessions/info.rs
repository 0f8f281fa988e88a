use cog_json::Node;
use cog_spec::Chunk;
use serde::Serialize;

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SessionState {
    /// The model is called.
    Running,
    /// The answer is complete.
    Finished,
    /// The run ended with an error that resuming cannot fix.
    Failed,
    /// The run was interrupted. When it is resumed, the model is called again (docs/spec/streaming.md).
    Interrupted,
    /// The run was cancelled on request. It cannot be resumed.
    Cancelled,
}

/// Information about a session for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id, which no other client can guess.
    #[serde(rename = "session_id")]
    pub id: String,
    /// The module that runs.
    pub module: String,
    /// The state of the session.
    pub state: SessionState,
    /// Whether the run continues without readers.
    pub detached: bool,
    /// The `seq` of the last numbered chunk; 0 before the first (ruling R41).
    pub last_seq: u64,
    /// The creation time in milliseconds since 1970.
    pub created_ms: u64,
}

impl SessionState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Failed, Self::Interrupted, Self::Cancelled];

    /// Returns the name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the state after this final event.
    pub(crate) fn after(end: &Chunk) -> Self {
        match end {
            Chunk::Final { .. } => Self::Finished,
            Chunk::Error { recovery: Some(_), .. } => Self::Interrupted,
            Chunk::Error { error, .. } => {
                Self::from_error(error.details.as_ref().map(|details| details.node()))
            }
            Chunk::Meta { .. } | Chunk::Delta { .. } | Chunk::Snapshot { .. } | Chunk::Progress(_) => {
                Self::Running
            }
        }
    }

    /// Returns the state after an error with these `details` that resuming cannot fix.
    pub(crate) fn from_error(details: Option<Node<'_>>) -> Self {
        let reason = details.and_then(|details| details.get("reason")?.as_str());
        if reason == Some("cancelled") { Self::Cancelled } else { Self::Failed }
    }
}
