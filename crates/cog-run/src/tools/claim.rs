use cog_spec::ErrorBody;

use super::{HaltedRuns, logged};
use crate::call_log::CallLog;

/// The right to continue a halted run, taken before its calls, so that a confirmation counts once.
pub(crate) struct Claim {
    pub(super) halted: HaltedRuns,
    pub(super) id: String,
    pub(super) owner: Option<String>,
    pub(super) log: Option<CallLog>,
    /// The entry of the decision; none if the log has it.
    pub(super) decision: Option<String>,
}

impl Claim {
    /// Logs the decision, so that a run that starts again continues after it, and marks the halted run as used. The media of
    /// its input are removed with it: they must be in the log before.
    ///
    /// # Errors
    /// E4014 if it has continued already.
    pub(crate) async fn take(self) -> Result<(), ErrorBody> {
        // A run that is dropped meanwhile does not separate the entries from what they are about.
        let taken = tokio::task::spawn_blocking(move || self.take_now()).await;
        taken.unwrap_or_else(|error| Err(crate::error::from_task(&error)))
    }

    fn take_now(&self) -> Result<(), ErrorBody> {
        if let Some(decision) = &self.decision {
            self.append(decision);
        }
        self.halted.claim(&self.id, self.owner.as_deref(), || self.append(&logged::claimed()))
    }

    fn append(&self, entry: &str) {
        if let Some(Err(error)) = self.log.as_ref().map(|log| log.append_now(entry)) {
            tracing::warn!(%error, "cannot write the log of tool calls");
        }
    }
}
