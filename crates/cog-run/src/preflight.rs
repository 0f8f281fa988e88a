//! The checks that may reject a run before the provider is called.

use std::{collections::VecDeque, sync::Arc};

use cog_json::Value;
use cog_media::Delivery;
use cog_module::Module;
use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, Dialect, ErrorBody, Manifest, Modality, Warning, WarningCode};

use crate::{Budget, Caller, media::MissingMedia, provider};

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

/// Checks that the model can generate the required media of the answer (SPEC 4.1.2). Returns the optional media that it cannot
/// generate. An empty model is the provider's default.
pub(crate) fn media_output(
    module: &Module,
    provider: &dyn Provider,
    model: &str,
    delivery: &Delivery,
) -> Result<Vec<MissingMedia>, ErrorBody> {
    let wanted = &module.manifest.modalities.output;
    let types: Vec<&str> = wanted.iter().flat_map(|kind| kind.output_types()).copied().collect();
    if types.is_empty() || !provider::calls_model(provider) {
        return Ok(Vec::new());
    }
    let generated = provider.info().output_media(model);
    let mut missing = Vec::new();
    for slot in module.contract.named_media_outputs(&types, delivery.kind()) {
        let kinds: Vec<Modality> = wanted
            .iter()
            .filter(|kind| kind.output_types().iter().any(|one| slot.types.contains(one)))
            .copied()
            .collect();
        if kinds.is_empty() || kinds.iter().any(|kind| generated.contains(kind)) {
            continue;
        }
        let model = provider.info().model_or_default(model);
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let provider = &provider.info().name;
        let kinds = names.join(" or ");
        let message = format!("{provider}/{model} cannot generate {kinds} for {}", slot.path);
        if slot.is_required {
            return Err(ErrorBody::new(Code::MultimodalNotSupported, message).suggest(
                "Choose a model that can, such as gpt-image-1, gemini-2.5-flash-image or gpt-audio.",
            ));
        }
        let warning = Warning::new(WarningCode::MediaNotGenerated, message);
        missing.push(MissingMedia { path: slot.path, warning });
    }
    Ok(missing)
}

/// Checks that no budget is spent, and that the price of each model is known if one limits the cost.
///
/// # Errors
/// E4002 for a budget that is spent, and for a price that is unknown.
pub(crate) fn budgets(
    budgets: &[Budget],
    provider: &dyn Provider,
    model: &str,
    others: &VecDeque<Arc<dyn Provider>>,
) -> Result<(), ErrorBody> {
    if provider.info().name == OFFLINE {
        return Ok(());
    }
    budgets.iter().try_for_each(Budget::check_room)?; // also for a composition, whose parts call models
    let others = others.iter().map(|other| (other.as_ref(), ""));
    let called = others.chain([(provider, model)]).filter(|(provider, _)| provider::calls_model(*provider));
    for (provider, model) in called {
        budgets.iter().try_for_each(|budget| budget.check_price(provider, model))?;
    }
    Ok(())
}

// `runtime_requirements`: what a module requires and prefers of a model.

/// Checks the requirements of a module for a model, and returns a warning for each capability that it prefers and the model
/// does not have. An empty model is the provider's default.
///
/// # Errors
/// E4003 if the context window of the model is smaller than the inputs that the module accepts; E4001 if the module requires
/// structured output, and the model accepts no schema.
pub(crate) fn requirements(
    manifest: &Manifest,
    provider: &dyn Provider,
    model: &str,
    has_tools: bool,
) -> Result<Vec<Warning>, ErrorBody> {
    if !provider::calls_model(provider) {
        return Ok(Vec::new());
    }
    check_window(manifest, provider, model)?;
    if manifest.requirements.structured_output && !accepts_schema(provider, model, has_tools) {
        return Err(no_schema(manifest, provider, model, has_tools));
    }
    let preferred = manifest.requirements.preferred_capabilities.iter();
    let missing = preferred.filter(|name| has_capability(name, provider, model, has_tools) == Some(false));
    Ok(missing.map(|name| capability_missing(manifest, provider, model, name)).collect())
}

/// Checks that the context window of a model, if it is known, has room for the largest input that the module accepts.
fn check_window(manifest: &Manifest, provider: &dyn Provider, model: &str) -> Result<(), ErrorBody> {
    let info = provider.info();
    // The window is looked up for modules that require one only: the lookup takes as long as parsing an answer.
    let Some(required) = manifest.requirements.max_input_tokens else { return Ok(()) };
    let Some(window) = info.context_window(model) else { return Ok(()) };
    if required <= window {
        return Ok(());
    }
    let message = format!(
        "{} accepts inputs of {required} tokens (`runtime_requirements.max_input_tokens`), and the context window of {}/{} has \
         {window}",
        manifest.name,
        info.name,
        info.model_or_default(model)
    );
    let details = serde_json::json!({ "max_input_tokens": required, "context_window": window });
    Err(ErrorBody::new(Code::ContextOverflow, message)
        .with_recoverable(false)
        .suggest("Choose a model with a larger context window, or lower the limit in the manifest.")
        .with_details(Value::from(details)))
}

/// Returns whether a model has a capability; none if the name is not known.
fn has_capability(name: &str, provider: &dyn Provider, model: &str, has_tools: bool) -> Option<bool> {
    let info = provider.info();
    let media = info.input_media(model);
    Some(match name {
        "structured_output" => accepts_schema(provider, model, has_tools),
        "json_output" => info.dialect != Dialect::Prompt,
        "tools" | "tool_use" => info.tool_settings(model).supported,
        "vision" | "image" => media.contains(&Modality::Image),
        "audio" => media.contains(&Modality::Audio),
        "video" => media.contains(&Modality::Video),
        "document" | "pdf" => media.contains(&Modality::Document),
        _ => return None,
    })
}

fn accepts_schema(provider: &dyn Provider, model: &str, has_tools: bool) -> bool {
    let info = provider.info();
    let has_dialect = !matches!(info.dialect, Dialect::JsonObject | Dialect::Prompt);
    has_dialect && info.has_schema(model) && !loses_schema(provider, model, has_tools)
}

/// Whether a model accepts no schema together with tools.
fn loses_schema(provider: &dyn Provider, model: &str, has_tools: bool) -> bool {
    let tools = provider.info().tool_settings(model);
    has_tools && tools.supported && !tools.with_schema
}

fn no_schema(manifest: &Manifest, provider: &dyn Provider, model: &str, has_tools: bool) -> ErrorBody {
    let message = format!(
        "{} requires structured output (`runtime_requirements.structured_output`), but {} accepts no schema{}",
        manifest.name,
        provider.info().name,
        if loses_schema(provider, model, has_tools) { " together with tools" } else { "" }
    );
    ErrorBody::new(Code::ProviderUnavailable, message)
        .with_recoverable(false)
        .suggest("Choose a provider that accepts a schema; `cog doctor` shows which do.")
}

fn capability_missing(manifest: &Manifest, provider: &dyn Provider, model: &str, name: &str) -> Warning {
    let info = provider.info();
    let message = format!(
        "{} prefers `{name}` (`runtime_requirements.preferred_capabilities`), which {}/{} does not have.",
        manifest.name,
        info.name,
        info.model_or_default(model)
    );
    Warning::new(WarningCode::CapabilityMissing, message)
}

// The size of a request, compared with the context window of its model.
