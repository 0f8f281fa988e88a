//! `runtime_requirements`: what a module requires and prefers of a model.

use cog_json::Value;
use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, Dialect, ErrorBody, Manifest, Modality, Warning, WarningCode};

use crate::composition::COMPOSITION;

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
    if !calls_model(provider) {
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

/// Returns whether a provider calls a model.
pub(crate) fn calls_model(provider: &dyn Provider) -> bool {
    !matches!(&*provider.info().name, OFFLINE | COMPOSITION)
}

/// Returns whether a model has a capability; none if the name is not known.
fn has_capability(name: &str, provider: &dyn Provider, model: &str, has_tools: bool) -> Option<bool> {
    let info = provider.info();
    let reads = |kind| info.input_media(model).contains(&kind);
    Some(match name {
        "structured_output" => accepts_schema(provider, model, has_tools),
        "json_output" => info.dialect != Dialect::Prompt,
        "tools" | "tool_use" => info.tool_settings(model).supported,
        "vision" | "image" => reads(Modality::Image),
        "audio" => reads(Modality::Audio),
        "video" => reads(Modality::Video),
        "document" | "pdf" => reads(Modality::Document),
        _ => return None,
    })
}

fn accepts_schema(provider: &dyn Provider, model: &str, has_tools: bool) -> bool {
    let info = provider.info();
    let has_dialect = !matches!(info.dialect, Dialect::JsonObject | Dialect::Prompt);
    has_dialect && info.has_schema(model) && !loses_schema(provider, model, has_tools)
}

/// Whether a model accepts no schema beside tools.
fn loses_schema(provider: &dyn Provider, model: &str, has_tools: bool) -> bool {
    let tools = provider.info().tool_settings(model);
    has_tools && tools.supported && !tools.with_schema
}

fn no_schema(manifest: &Manifest, provider: &dyn Provider, model: &str, has_tools: bool) -> ErrorBody {
    let message = format!(
        "{} requires structured output (`runtime_requirements.structured_output`), but {} accepts no schema{}",
        manifest.name,
        provider.info().name,
        if loses_schema(provider, model, has_tools) { " beside tools" } else { "" }
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
