//! The checks that may reject a run before the provider is called.

mod requirements;
mod window;

use std::{collections::VecDeque, sync::Arc};

use cog_module::Module;
use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, ErrorBody, Manifest, Modality, Warning, WarningCode};

pub(crate) use self::{
    requirements::{calls_model, requirements},
    window::{estimate, window},
};
use crate::{Budget, Caller, RunOptions};

/// Checks whether this caller may run the module (docs/spec/modules.md, `invocation`).
pub(crate) fn caller(manifest: &Manifest, caller: Caller) -> Result<(), ErrorBody> {
    let (is_allowed, key) = match caller {
        Caller::User => (manifest.invocation.user_invocable, "user_invocable"),
        Caller::Agent => (manifest.invocation.agent_invocable, "agent_invocable"),
    };
    if is_allowed {
        return Ok(());
    }
    let message = format!("`invocation.{key}: false` in the manifest of {} forbids this run", manifest.name);
    Err(ErrorBody::new(Code::PermissionDenied, message))
}

/// Checks that the model can generate the required media of the answer (SPEC 4.1.2). Returns warnings for
/// optional media that it cannot generate. An empty model is the provider's default.
pub(crate) fn media_output(
    module: &Module,
    provider: &dyn Provider,
    model: &str,
    options: &RunOptions,
) -> Result<Vec<Warning>, ErrorBody> {
    let wanted = &module.manifest.modalities.output;
    let types: Vec<&str> = wanted.iter().flat_map(|kind| kind.output_types()).copied().collect();
    if types.is_empty() || !calls_model(provider) {
        return Ok(Vec::new());
    }
    let generated = provider.info().output_media(model);
    let kinds_of = |types: &[&str]| -> Vec<Modality> {
        let matches = |kind: &&Modality| kind.output_types().iter().any(|one| types.contains(one));
        wanted.iter().filter(matches).copied().collect()
    };
    let mut warnings = Vec::new();
    for slot in module.contract.named_media_outputs(&types, options.delivery.kind()) {
        let kinds = kinds_of(&slot.types);
        if kinds.is_empty() || kinds.iter().any(|kind| generated.contains(kind)) {
            continue;
        }
        let model = provider.info().model_or_default(model);
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let (provider, kinds) = (&provider.info().name, names.join(" or "));
        let message = format!("{provider}/{model} cannot generate {kinds} for {}", slot.path);
        if slot.is_required {
            return Err(ErrorBody::new(Code::MultimodalNotSupported, message).suggest(
                "Choose a model that can, such as gpt-image-1, gemini-2.5-flash-image or gpt-audio.",
            ));
        }
        warnings.push(Warning::new(WarningCode::MediaNotGenerated, message));
    }
    Ok(warnings)
}

/// Checks that no budget is spent, and that the price of each model is known if one limits the cost.
///
/// # Errors
/// E4002 for a budget that is spent, and for a price that is unknown.
pub(crate) fn budgets(
    budgets: &[Budget],
    (provider, model): (&dyn Provider, &str),
    others: &VecDeque<Arc<dyn Provider>>,
) -> Result<(), ErrorBody> {
    if provider.info().name == OFFLINE {
        return Ok(());
    }
    budgets.iter().try_for_each(Budget::check_room)?; // also for a composition, whose parts call models
    let others = others.iter().map(|other| (other.as_ref(), ""));
    let called = others.chain([(provider, model)]).filter(|(provider, _)| calls_model(*provider));
    for (provider, model) in called {
        budgets.iter().try_for_each(|budget| budget.check_price(provider, model))?;
    }
    Ok(())
}
