//! A composed module that is ready to run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::sync::Semaphore;

use super::key::Digest;
use crate::{Flow, Part, Plan, PlanId};

/// The composition of one module of a [`Flow`].
pub(super) struct Composed {
    flow: Arc<Flow>,
    /// The plan of the module; none for the root.
    plan: Option<PlanId>,
    max_parallel: usize,
    /// The slots of the run; none for the root, each of whose runs has its own.
    slots: Option<Arc<Semaphore>>,
    /// The digest of the module and of all modules below it, computed when it is needed.
    digest: OnceLock<Digest>,
    /// The digests of its parts.
    part_digests: OnceLock<Vec<Option<Digest>>>,
    /// Whether one of the modules may call tools.
    may_call_tools: OnceLock<bool>,
}

impl Composed {
    /// Returns the composition of the root of a flow.
    pub(super) fn new(flow: Arc<Flow>, max_parallel: usize) -> Self {
        Self {
            flow,
            plan: None,
            max_parallel,
            slots: None,
            digest: OnceLock::new(),
            part_digests: OnceLock::new(),
            may_call_tools: OnceLock::new(),
        }
    }

    /// Returns the composition of a part; none if the part calls no modules.
    pub(super) fn part(&self, plan: PlanId, slots: &Arc<Semaphore>) -> Option<Arc<Self>> {
        if !self.flow.plan(plan).is_composed() {
            return None;
        }
        let (plan, slots) = (Some(plan), Some(Arc::clone(slots)));
        Some(Arc::new(Self { plan, slots, ..Self::new(Arc::clone(&self.flow), self.max_parallel) }))
    }

    /// Returns the slots of a run.
    pub(super) fn slots(&self) -> Arc<Semaphore> {
        self.slots.clone().unwrap_or_else(|| Arc::new(Semaphore::new(self.max_parallel)))
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(super) fn plan(&self) -> &Plan {
        self.plan.map_or_else(|| self.flow.root(), |plan| self.flow.plan(plan))
    }

    pub(super) const fn max_parallel(&self) -> usize {
        self.max_parallel
    }

    /// Returns whether one of the modules of the flow may call tools.
    pub(super) fn may_call_tools(&self) -> bool {
        let may_call = |plan: &Plan| plan.module.manifest.policies.tools_allowed;
        *self.may_call_tools.get_or_init(|| self.flow.plans().any(|(_, plan)| may_call(plan)))
    }

    /// Returns the digest of this module and of all modules that it calls.
    pub(super) fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| Digest::new(&self.flow, self.plan()))
    }

    /// Returns the digest of a part; none if the part is missing.
    pub(super) fn part_digest(&self, part: usize) -> Option<&Digest> {
        let digest = |part: &Part| part.plan.map(|plan| Digest::new(&self.flow, self.flow.plan(plan)));
        let digests = self.part_digests.get_or_init(|| self.plan().parts.iter().map(digest).collect());
        digests.get(part)?.as_ref()
    }
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Composed").field(&self.plan().module.manifest.name).finish()
    }
}
