use super::{
    chain,
    draft::Draft,
    packet::{self, Handoff},
};
use crate::Finding;

impl Handoff {
    /// Creates a packet with its hashes from a draft. `parent` is the packet that the sender received.
    ///
    /// # Errors
    /// Every rule that the packet violates, alone and as the successor of its parent.
    pub fn seal(draft: &Draft, parent: Option<&Handoff>) -> Result<Self, Vec<Finding>> {
        let unsealed = draft.write(parent.map(Handoff::hash), None);
        let hash = packet::hash(unsealed.node());
        let packet = Self::read(draft.write(parent.map(Handoff::hash), Some(&hash)))?;
        let findings = parent.map(|parent| chain::follow(parent, &packet)).unwrap_or_default();
        if findings.is_empty() { Ok(packet) } else { Err(findings) }
    }
}
