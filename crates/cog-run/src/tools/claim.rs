use cog_spec::ErrorBody;

use super::HaltedRuns;

/// The right to continue a halted run, taken when the run starts, so that a confirmation counts once.
pub(crate) struct Claim {
    pub(super) halted: HaltedRuns,
    pub(super) id: String,
}

impl Claim {
    /// Marks the halted run as used.
    ///
    /// # Errors
    /// E4014 if it has continued already.
    pub(crate) fn take(self) -> Result<(), ErrorBody> {
        self.halted.claim(&self.id)
    }
}
