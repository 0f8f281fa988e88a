use cog_spec::ErrorBody;

use super::{CallLog, HaltedRuns};

/// The right to continue a halted run, taken when the run starts, so that a confirmation counts once.
pub(crate) struct Claim {
    pub(super) halted: HaltedRuns,
    pub(super) id: String,
    /// The log of the run, and the entry of the decision.
    pub(super) entry: Option<(CallLog, String)>,
}

impl Claim {
    /// Logs the decision, so that a run that starts again continues after it, and marks the halted run as used.
    ///
    /// # Errors
    /// E4014 if it has continued already.
    pub(crate) fn take(self) -> Result<(), ErrorBody> {
        let logged = self.entry.as_ref().map_or(Ok(()), |(log, entry)| log.append_now(entry));
        if let Err(error) = logged {
            tracing::warn!(%error, "cannot write the log of tool calls");
        }
        self.halted.claim(&self.id)
    }
}
