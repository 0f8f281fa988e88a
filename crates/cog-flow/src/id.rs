//! The names of plans and callees inside a composition.

/// The index of a plan in its [`Flow`](crate::Flow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanId(pub(crate) u32);

/// What a step, a route or a prompt calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Callee {
    /// The module's own prompt.
    Own,
    /// A part, by its index in [`Plan::parts`](crate::Plan::parts).
    Part(usize),
}

impl PlanId {
    /// Returns the index, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Callee {
    /// Returns its index among the envelopes.
    pub(crate) const fn slot(self) -> usize {
        match self {
            Callee::Own => 0,
            Callee::Part(index) => index + 1,
        }
    }
}
