//! The parts of a composition that wait for a confirmation.

use serde::{Deserialize, Serialize};

use super::finished::FinishedParts;

/// A part that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HaltedPart {
    /// The path of the part in its composition.
    pub path: String,
    /// The hash of the module, its input and its settings. Only an equal call continues.
    pub key: String,
    /// The identifier of the part's own halted run.
    pub id: String,
}

/// The state from which a halted composition continues.
#[derive(Debug, Clone, Default)]
pub struct PartsState {
    /// The answers of the parts that are done.
    pub finished: FinishedParts,
    /// The parts that wait for a confirmation, in the order in which they were halted.
    pub halted: Vec<HaltedPart>,
}
