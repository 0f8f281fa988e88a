//! The policies of a module as hints for clients.

use cog_run::{Module, tools::ToolEffects};
use rmcp::model::ToolAnnotations;

/// Returns the hints of a module. The policies say nothing about repeated calls, so `idempotentHint` is absent.
pub(super) fn annotations(module: &Module) -> ToolAnnotations {
    let effects = ToolEffects::from(&*module.manifest);
    let changes = effects.changes_something();
    ToolAnnotations::new().read_only(!changes).destructive(changes).open_world(effects.network)
}
