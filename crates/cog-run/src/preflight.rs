//! The checks that may reject a run before the provider is called.

use std::{collections::VecDeque, sync::Arc};

use cog_harmony::{Message, Part, Role, TokenCounter, ToolDefinition};
use cog_json::{ToJson as _, Value};
use cog_media::Delivery;
use cog_module::Module;
use cog_provider::{ModelRequest, OFFLINE, Provider, ToolRequest};
use cog_spec::{Code, Dialect, ErrorBody, Manifest, Modality, Warning, WarningCode};

use crate::{Budget, Caller, budget::InputTokens, media::MissingMedia, provider::COMPOSITION};

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
    if types.is_empty() || !calls_model(provider) {
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
    let called = others.chain([(provider, model)]).filter(|(provider, _)| calls_model(*provider));
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

/// The tokens that fit into the context window of every model. Larger requests are compared with the window.
const FITS_EVERY_WINDOW: u64 = 4000;

/// Checks that the messages and the definitions of the tools fit into the context window of the model, if the window is known.
/// Texts are counted only if they have more bytes than the window has tokens, since a token has at least one byte. A
/// tokenizer that is not published may count fewer tokens than any other, so only the smallest count of all refuses a run.
///
/// # Errors
/// E1005 with the counts.
pub(crate) fn window(provider: &dyn Provider, request: &ModelRequest) -> Result<(), ErrorBody> {
    let model = provider.info().model_or_default(&request.model);
    let counter = TokenCounter::at_least(model);
    let messages = request.messages.messages();
    let tools = request.tools.as_deref();
    let largest = messages.iter().map(|message| largest(message, &counter)).sum::<u64>()
        + tools.map_or(0, definition_bytes);
    if largest <= FITS_EVERY_WINDOW {
        return Ok(());
    }
    let Some(window) = provider.info().context_window(model).filter(|window| *window < largest) else {
        return Ok(());
    };
    let size = Size::new(&counter, messages, tools);
    if size.total() <= window { Ok(()) } else { Err(size.error(provider, model, window, &counter, messages)) }
}

/// Returns the input tokens of a request. The most that there can be is only counted for a budget that reserves it.
pub(crate) fn input_tokens(request: &ModelRequest, model: &str, budgets: &[Budget]) -> InputTokens {
    let at_most = if budgets.iter().any(Budget::is_capped) { at_most(request, model) } else { 0 };
    InputTokens { expected: estimate(request, model), at_most }
}

/// Returns an estimate of the tokens of a request: four bytes of text are a token.
pub(crate) fn estimate(request: &ModelRequest, model: &str) -> u64 {
    let counter = TokenCounter::at_least(model);
    let messages = request.messages.messages();
    let texts = messages.iter().map(text_bytes).sum::<u64>();
    let media = messages.iter().map(|message| media_tokens(message, &counter)).sum::<u64>();
    (texts + request.tools.as_deref().map_or(0, definition_bytes)).div_ceil(4) + media
}

/// The tokens that the template of a model adds to a message, and to a request, at most.
const TEMPLATE_TOKENS: u64 = 64;

/// Returns a number of input tokens that a request does not exceed: a token has at least one byte.
pub(crate) fn at_most(request: &ModelRequest, model: &str) -> u64 {
    let counter = TokenCounter::at_least(model);
    let messages = request.messages.messages().iter().map(|one| largest(one, &counter) + TEMPLATE_TOKENS);
    let tools = request.tools.as_deref().map_or(0, definition_bytes);
    let schema = request.output.as_ref().and_then(|output| output.schema.as_ref());
    let schema = schema.map_or(0, |schema| schema.to_json().len() as u64);
    messages.sum::<u64>() + tools + schema + TEMPLATE_TOKENS
}

/// Returns a number of tokens that the message does not exceed, without a tokenizer: a byte for each token.
fn largest(message: &Message, counter: &TokenCounter) -> u64 {
    text_bytes(message) + media_tokens(message, counter)
}

fn text_bytes(message: &Message) -> u64 {
    let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
    let texts = message.content.iter().filter_map(Part::as_text).map(str::len);
    calls.chain(texts).sum::<usize>() as u64
}

fn media_tokens(message: &Message, counter: &TokenCounter) -> u64 {
    let media = message.content.iter().filter(|part| part.as_text().is_none());
    media.map(|part| counter.part(part).tokens).sum()
}

fn definition_bytes(tools: &ToolRequest) -> u64 {
    let bytes =
        |tool: &ToolDefinition| tool.name.len() + tool.description.len() + tool.parameters.to_json().len();
    tools.definitions.iter().map(bytes).sum::<usize>() as u64
}

/// The tokens of a request.
struct Size {
    messages: u64,
    /// The tokens of the images among them.
    images: u64,
    definitions: u64,
}

impl Size {
    fn new(counter: &TokenCounter, messages: &[Message], tools: Option<&ToolRequest>) -> Self {
        let counted: Vec<_> = messages.iter().map(|message| counter.message(message)).collect();
        let definitions = tools.into_iter().flat_map(|tools| &tools.definitions);
        Self {
            messages: counter.reply() + counted.iter().map(|message| message.total).sum::<u64>(),
            images: counted.iter().map(|message| message.image_tokens).sum(),
            definitions: definitions.map(|tool| counter.definition(tool)).sum(),
        }
    }

    fn total(&self) -> u64 {
        self.messages + self.definitions
    }

    fn error(
        &self,
        provider: &dyn Provider,
        model: &str,
        window: u64,
        counter: &TokenCounter,
        messages: &[Message],
    ) -> ErrorBody {
        let total = self.total();
        let name = &provider.info().name;
        let at_least = if counter.is_exact() { "" } else { "at least " };
        let what = if self.definitions > 0 { "messages and tools" } else { "messages" };
        let message = format!(
            "the {what} have {at_least}{total} tokens, and the context window of {name}/{model} has {window}"
        );
        let details = serde_json::json!({
            "tokens": total, "image_tokens": self.images, "tool_definition_tokens": self.definitions,
            "context_window": window, "tokenizer": counter.tokenizer(), "exact": counter.is_exact(),
        });
        let suggestion = match messages.iter().any(|message| message.role == Role::Tool) {
            true => {
                "Lower `tools.max_result_bytes`, so that tools return less, or choose a model with a larger context window."
            }
            false => "Shorten or split the input, or choose a model with a larger context window.",
        };
        ErrorBody::new(Code::InputTooLarge, message).suggest(suggestion).with_details(Value::from(details))
    }
}
