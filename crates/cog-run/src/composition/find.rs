//! Finds the parts of a module that runs.

use std::sync::Arc;

use cog_module::{Module, PromptPart};
use cog_spec::{Code, ErrorBody};

use super::parts::{Composed, ComposedModule};
use crate::context::Shared;

/// Returns the parts of a module; none for a module that calls no other.
///
/// # Errors
/// Those of [`Composer::compose`](super::Composer::compose), and E4008 if the runtime has no composer.
pub(crate) fn composed_module(
    shared: &Shared,
    module: &Arc<Module>,
    composed: &Composed,
) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
    match composed {
        Composed::Loaded(composed) => Ok(Some(Arc::clone(composed))),
        Composed::OwnPrompt(_) => Ok(None),
        Composed::Unknown => match calls_modules(module) {
            None => Ok(None),
            Some(what) => match &shared.composer {
                Some(composer) => composer.compose(&shared.modules, module),
                None => Err(unsupported(module, &what)),
            },
        },
    }
}

/// Returns whether a module calls other modules.
pub fn is_composed(module: &Module) -> bool {
    calls_modules(module).is_some()
}

/// Returns how a module calls other modules; none if it does not.
fn calls_modules(module: &Module) -> Option<String> {
    let call = module.prompt.parts().iter().find_map(|part| match part {
        PromptPart::Call(call) => Some(call.raw.clone()),
        PromptPart::Reference { raw, .. } => Some(raw.clone()),
        _ => None,
    });
    call.or_else(|| module.manifest.composition.as_ref().map(|_| "composition".to_owned()))
}

fn unsupported(module: &Module, what: &str) -> ErrorBody {
    let message = format!("{} calls other modules ({what})", module.manifest.name);
    ErrorBody::new(Code::ModuleInvalid, message)
        .suggest("This program does not support composition; run the modules separately, or use `cog`.")
}
