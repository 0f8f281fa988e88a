//! The interface that finds the parts of composed modules.

use std::sync::Arc;

use cog_module::Module;
use cog_spec::ErrorBody;

use super::parts::ComposedModule;
use crate::modules::Modules;

/// Finds the parts of composed modules. [`RuntimeBuilder::composer`](crate::RuntimeBuilder::composer) registers one.
pub trait Composer: Send + Sync {
    /// Loads the parts of a module with their own parts, and checks their graph. `modules` are those of the runtime. Returns none
    /// for a module without parts.
    ///
    /// # Errors
    /// E4004 for a cycle, E4005 for a graph that is too deep, E4006 for a missing part, E4008 for an invalid composition.
    fn compose(
        &self,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody>;
}
