//! The result of one request of a job.

use cog_spec::Code;

use crate::ProviderError;

/// The result of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// The ID of the entry.
    pub id: String,
    /// What became of it.
    pub outcome: BatchOutcome,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It was answered, or rejected.
    Replied(BatchReply),
    /// The job ended before its turn.
    Expired,
    /// The job was cancelled before its turn.
    Cancelled,
    /// The job ended without a result for it, with the vendor's reason.
    Missing(String),
}

/// The reply that a live call would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchReply {
    /// The HTTP status.
    pub status: u16,
    /// The body, as JSON.
    pub body: String,
}

impl BatchOutcome {
    /// Returns the reply, which may be an error of the vendor.
    ///
    /// # Errors
    /// The request has no reply. Each of these can be sent again.
    pub fn reply(self) -> Result<BatchReply, ProviderError> {
        let (code, message) = match self {
            Self::Replied(reply) => return Ok(reply),
            Self::Expired => (Code::Timeout, "the batch job expired before it answered the row".to_owned()),
            Self::Cancelled => {
                (Code::StreamInterrupted, "the batch job was cancelled before it answered the row".to_owned())
            }
            Self::Missing(reason) => {
                (Code::StreamInterrupted, format!("the batch job has no answer for the row: {reason}"))
            }
        };
        Err(ProviderError::Other { code, message })
    }
}
