//! How many tokens a request has: for the window of its model, and for what budgets reserve.

use cog_harmony::{Message, Part, Role, TokenCounter, ToolDefinition};
use cog_json::{ToJson as _, Value};
use cog_provider::{ModelRequest, Provider, ToolRequest};
use cog_spec::{Code, ErrorBody};

use crate::{Budget, budget::InputTokens};

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
