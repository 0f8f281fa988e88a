//! A checked composition: the plans of all modules that take part.

use crate::{Plan, PlanId};

/// A module and all modules that it calls, directly or not. Each has one plan, however many modules call it.
///
/// The plans own their modules, so that a run uses what was checked, even if files change in the meantime.
#[derive(Debug)]
pub struct Flow {
    /// The plans; the first is the root.
    plans: Vec<Plan>,
}

impl Flow {
    pub(crate) fn new(plans: Vec<Plan>) -> Self {
        Self { plans }
    }

    /// Returns the plan of the module that was checked.
    #[expect(clippy::indexing_slicing, reason = "a flow has at least the plan of its root")]
    pub fn root(&self) -> &Plan {
        &self.plans[0]
    }

    /// Returns a plan.
    #[expect(clippy::indexing_slicing, reason = "only the flow creates the ids of its plans")]
    pub fn plan(&self, id: PlanId) -> &Plan {
        &self.plans[id.index()]
    }

    /// Returns all plans with their ids, the root first.
    pub fn plans(&self) -> impl Iterator<Item = (PlanId, &Plan)> {
        (0..).map(PlanId).zip(&self.plans)
    }

    /// Returns whether the root calls other modules. A module that does not is run by the runtime alone.
    pub fn is_composed(&self) -> bool {
        self.root().is_composed()
    }
}
