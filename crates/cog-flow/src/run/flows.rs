//! The composer of a runtime.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use cog_module::Module;
use cog_run::composition::{ComposedModule, Composer, Modules};
use cog_spec::ErrorBody;

use super::{composed::Composed, error};
use crate::{Flow, Part, check};

/// Finds, checks and runs the parts of composed modules. Each composition is checked once, and again when one of its
/// modules has changed.
///
/// ```
/// use std::sync::Arc;
///
/// use cog_flow::Flows;
/// use cog_run::Runtime;
///
/// let runtime = Runtime::builder().composer(Arc::new(Flows::new())).build();
/// # let _ = runtime;
/// ```
#[derive(Debug, Default)]
pub struct Flows {
    max_parallel: Option<usize>,
    /// The last check of the module in each directory.
    checked: Mutex<HashMap<PathBuf, Arc<Composed>>>,
}

impl Flows {
    /// The default maximum number of parts of one run that call a model at the same time, at all depths together.
    pub const MAX_PARALLEL: usize = 128;

    /// Returns a composer with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of parts of one run that call a model at the same time, at least 1. Parts of parts count, and a part
    /// that waits for its own parts does not. So many parts of one composition run at the same time at most. A composition that is called
    /// as a tool has its own limit: the part that calls it keeps its place, so with one limit both could wait for each other.
    #[must_use]
    pub fn max_parallel(self, parts: usize) -> Self {
        Self { max_parallel: Some(parts.max(1)), ..self }
    }

    /// Returns the composition of this module, if none of its modules has changed since it was checked.
    fn known(&self, modules: &Modules, module: &Arc<Module>) -> Option<Arc<Composed>> {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let composed = Arc::clone(checked.get(&module.origin.path_of(""))?);
        drop(checked);
        is_current(modules, module, composed.flow()).then_some(composed)
    }

    fn remember(&self, module: &Module, composed: &Arc<Composed>) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.insert(module.origin.path_of(""), Arc::clone(composed));
    }
}

impl Composer for Flows {
    fn compose(
        &self,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
        if let Some(known) = self.known(modules, module) {
            return Ok(Some(known));
        }
        let flow = check(Arc::clone(module), modules)
            .into_flow()
            .map_err(|found| error::from_check(module, &found))?;
        if !flow.is_composed() {
            return Ok(None);
        }
        let max_parallel = self.max_parallel.unwrap_or(Self::MAX_PARALLEL);
        let composed = Arc::new(Composed::new(Arc::new(flow), max_parallel));
        self.remember(module, &composed);
        Ok(Some(composed))
    }
}

/// Returns whether the runtime would load the same modules again.
fn is_current(modules: &Modules, module: &Arc<Module>, flow: &Flow) -> bool {
    let is_same = |part: &Part| {
        let loaded = modules.load_name(&part.module);
        match part.plan {
            Some(id) => loaded.is_ok_and(|module| Arc::ptr_eq(&module, &flow.plan(id).module)),
            None => loaded.is_err(),
        }
    };
    Arc::ptr_eq(module, &flow.root().module) && flow.plans().flat_map(|(_, plan)| &plan.parts).all(is_same)
}
