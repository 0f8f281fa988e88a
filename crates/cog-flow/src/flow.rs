//! A checked composition: the plans of all modules that take part.

use std::sync::Arc;

use cog_module::{Finder, Module, load};
use thiserror::Error;

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

    /// Returns the id of the root's plan.
    pub fn root_id(&self) -> PlanId {
        PlanId(0)
    }

    /// Returns the plan of the module that was checked.
    pub fn root(&self) -> &Plan {
        self.plan(self.root_id())
    }

    /// Returns a plan.
    #[expect(
        clippy::indexing_slicing,
        reason = "only the flow creates the ids of its plans, and it has a root"
    )]
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

// Finds the modules that a composition calls.

/// Finds modules by name. Paths are refused: a module calls others by name only.
pub trait Lookup {
    /// Loads a module by name.
    ///
    /// # Errors
    /// [`LookupError`] if no module has the name, or it does not load.
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError>;

    /// Returns the names of all modules, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// Why a module cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LookupError {
    /// No module has this name (E4006).
    #[error("no module has this name")]
    NotFound,
    /// It exists, but does not load (E4008); the message says why.
    #[error("{0}")]
    Invalid(String),
}

impl Lookup for Finder {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        let origin = self.find_name(name).map_err(|_| LookupError::NotFound)?;
        let module = load(&origin).map_err(|error| LookupError::Invalid(error.to_string()))?;
        Ok(Arc::new(Module { trust: self.trust(&origin), ..module }))
    }

    fn names(&self) -> Vec<String> {
        self.origins().into_iter().map(|(name, _)| name).collect()
    }
}
