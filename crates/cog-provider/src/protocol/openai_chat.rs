//! OpenAI Chat Completions: `POST /chat/completions`, which most vendors implement.

use cog_harmony::{
    Message, Part, Role, ToolChoice,
    wire::{data_url, write_chat_call, write_chat_part},
};
use cog_json::{Node, Value, Writer};
use cog_spec::{Dialect, Effort, FinishReason, Modality, ModelMedia, TokenProbability, ToolCallDelta, Usage};

use super::{
    DecodeError, Decoder, Protocol, RequestContext, VendorError,
    decoder::{Event, FrameDecoder},
    parts::{
        self, Options, Turn, accepted, cached_text, choice_name, filename, function_tool, only_text,
        projected, schema_name, turns,
    },
    reply::{Reply, check_error, count, elements, index, string},
};
use crate::{ListedModel, OutputSchema, RequestError, ToolRequest, vendors::ToolSupport};

/// The tokens that are requested for each place, so that those that the grammar allows are among them.
pub(crate) const ALTERNATIVES: u32 = 20;

/// The OpenAI Chat Completions protocol.
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        parts::check(context)?;
        context.check_tools_over_chat()
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        format!("{}/chat/completions", context.base_url)
    }

    fn accept(&self, context: &RequestContext<'_>) -> Option<&'static str> {
        Some(accepted(streams(context)))
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        body(w, context);
    }

    fn text_results(&self) -> bool {
        true
    }

    fn recording_suffix(&self) -> Option<&'static str> {
        Some("completions")
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::events(limit, chunk)
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/models".to_owned()
    }

    /// Reads `{data: [{id}]}`; Together sends only the array.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("data").unwrap_or(body);
        list.elements().filter_map(|model| Some(ListedModel::named(model.get_str("id")?))).collect()
    }
}

/// Reads `chat.completion.chunk` events, or one `chat.completion` body.
fn chunk(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    let node = event.node;
    let choices = node.get("choices").filter(|choices| choices.is_array());
    // OpenRouter reports an error in the middle of a stream together with choices, or in the choice; other servers send
    // `error: null`.
    let may_be_error = choices.is_none() || node.get("error").is_some_and(|error| !error.is_null());
    if may_be_error && let Some(error) = VendorError::read(node) {
        return Err(DecodeError::Vendor(error));
    }
    reply.start(node);
    if let Some(choice) = choices.and_then(first_choice) {
        check_error(choice)?;
        content(reply, choice)?;
    }
    reply.usage(usage(node));
    Ok(())
}

/// Returns the first choice; only one answer is requested. Some servers count something else in the index of a single
/// choice.
fn first_choice(choices: Node<'_>) -> Option<Node<'_>> {
    let mut all = choices.elements();
    let only = all.next().filter(|_| all.next().is_none());
    only.or_else(|| choices.elements().find(|choice| index(*choice, "index").unwrap_or(0) == 0))
}

fn content(reply: &mut Reply<'_>, choice: Node<'_>) -> Result<(), DecodeError> {
    if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
        reasoning(reply, delta);
        match delta.get("content") {
            Some(blocks) if blocks.is_array() => {
                blocks.elements().for_each(|block| typed_block(reply, block));
            }
            text => reply.text(text),
        }
        let probabilities = choice.get("logprobs").into_iter();
        reply.tokens(tokens(probabilities.flat_map(|node| elements(node, "content"))));
        speech(reply, delta);
        images(reply, delta)?;
        reply.refusal(delta.get_str("refusal"));
        for call in elements(delta, "tool_calls") {
            let part = tool_call(reply, call);
            reply.tool_call(part);
        }
    }
    if let Some(reason) = choice.get_str("finish_reason") {
        // A gateway's reason is one of few; the reason of the provider behind it says more.
        let native = choice.get_str("native_finish_reason").filter(|native| *native != reason);
        reply.stop_with(finish_reason(reason), native);
    }
    Ok(())
}

/// Reads tokens with their probabilities. None if one of them has none: what is left would be the tokens of another text.
pub(crate) fn tokens<'a>(nodes: impl Iterator<Item = Node<'a>>) -> Vec<TokenProbability> {
    nodes.map(token).collect::<Option<_>>().unwrap_or_default()
}

/// Reads a token with its probability.
fn token(node: Node<'_>) -> Option<TokenProbability> {
    let read = |node: Node<'_>| Some((node.get_str("token")?.to_owned(), node.get("logprob")?.as_f64()?));
    let (text, logprob) = read(node)?;
    Some(TokenProbability {
        text,
        logprob,
        alternatives: elements(node, "top_logprobs").filter_map(read).collect(),
    })
}

/// Reads a complete speech item and its transcript.
fn speech(reply: &mut Reply<'_>, message: Node<'_>) {
    let Some(audio) = message.get("audio").filter(|audio| audio.is_object()) else { return };
    reply.text(audio.get("transcript"));
    if let Some(data) = string(audio, "data") {
        reply.media(ModelMedia { media_type: None, data, params: Vec::new() });
    }
}

/// Reads OpenRouter's images. Each is complete, in the same format as an input image.
fn images(reply: &mut Reply<'_>, message: Node<'_>) -> Result<(), DecodeError> {
    for image in elements(message, "images") {
        let Some(url) = image.pointer("/image_url/url").and_then(Node::as_str) else { continue };
        let (media_type, data) = data_url(url).ok_or(DecodeError::MediaUrl)?;
        reply.media(ModelMedia {
            media_type: Some(media_type.to_owned()),
            data: data.to_owned(),
            params: Vec::new(),
        });
    }
    Ok(())
}

/// Reads the reasoning, for which vendors use three members: `reasoning_content` (DeepSeek, vLLM), `reasoning`
/// (OpenRouter, Groq) and `reasoning_details` (OpenRouter, MiniMax).
fn reasoning(reply: &mut Reply<'_>, delta: Node<'_>) {
    // Kept apart from the text for the user: only in this form does the vendor accept it in the next request.
    for detail in elements(delta, "reasoning_details") {
        reply.parts().detail(detail);
    }
    let content = delta.get_str("reasoning_content").filter(|text| !text.is_empty());
    if let Some(content) = content {
        reply.parts().text("reasoning_content", content);
    }
    // A vendor that fills two of them repeats the same text, so the first one applies.
    match content.or_else(|| delta.get_str("reasoning").filter(|text| !text.is_empty())) {
        Some(content) => reply.reasoning(Some(content)),
        None => {
            elements(delta, "reasoning_details").for_each(|detail| reply.reasoning(detail.get_str("text")));
        }
    }
}

/// Reads a content block of Mistral's reasoning models: `text`, or `thinking` with texts inside.
fn typed_block(reply: &mut Reply<'_>, block: Node<'_>) {
    match block.get("thinking") {
        Some(thoughts) => {
            thoughts.elements().for_each(|thought| reply.reasoning(thought.get_str("text")));
        }
        None => reply.text(block.get("text")),
    }
}

fn tool_call(reply: &mut Reply<'_>, call: Node<'_>) -> ToolCallDelta {
    let function = call.get("function");
    let name = function.and_then(|function| string(function, "name"));
    let id = call.get_str("id");
    ToolCallDelta {
        index: index(call, "index").unwrap_or_else(|| reply.call_index(id, name.is_some())),
        id: id.map(str::to_owned),
        name,
        arguments: function.and_then(|function| string(function, "arguments")).unwrap_or_default(),
        signature: None,
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" => FinishReason::Stop,
        "length" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal(None),
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Reads the token counts of a chunk, and its class of service.
fn usage(chunk: Node<'_>) -> Option<Usage> {
    let node = chunk.get("usage")?;
    let input = count(node, "/prompt_tokens")?;
    let completion = count(node, "/completion_tokens").unwrap_or(0);
    let reasoning = count(node, "/completion_tokens_details/reasoning_tokens");
    // xAI counts reasoning separately from the answer, and includes it in the total.
    let with_reasoning = completion.saturating_add(reasoning.unwrap_or(0));
    let is_separate = count(node, "/total_tokens") == Some(input.saturating_add(with_reasoning));
    Some(Usage {
        input_tokens: input,
        output_tokens: if is_separate { with_reasoning } else { completion },
        cached_input_tokens: count(node, "/prompt_tokens_details/cached_tokens")
            .or_else(|| count(node, "/prompt_cache_hit_tokens")),
        cache_write_input_tokens: count(node, "/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: reasoning,
        input_audio_tokens: count(node, "/prompt_tokens_details/audio_tokens").filter(|count| *count > 0),
        output_audio_tokens: count(node, "/completion_tokens_details/audio_tokens")
            .filter(|count| *count > 0),
        output_image_tokens: count(node, "/completion_tokens_details/image_tokens")
            .filter(|count| *count > 0),
        service_tier: string(chunk, "service_tier"),
        ..Usage::default()
    })
}

/// Returns whether the answer is streamed.
fn streams(context: &RequestContext<'_>) -> bool {
    // Audio is streamed only as raw samples without a file header.
    let speaks = context.output_media().any(|kind| kind == Modality::Audio);
    !speaks && (projected(context).is_none() || context.vendor.quirks.streams_schema)
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let quirks = &context.vendor.quirks;
    let streams = streams(context);
    w.field("model", context.model);
    let messages = context.messages();
    w.key("messages").array(|w| turns(&*messages).iter().for_each(|turn| write_turn(w, turn, context)));
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools, context);
    }
    let grammar = context.grammar();
    if let Some(grammar) = grammar {
        w.field("grammar", &grammar.text);
    } else if let Some(output) = projected(context) {
        response_format(w.key("response_format"), output);
    }
    modalities(w, &context.output_media().collect::<Vec<_>>());
    let options = Options { max_tokens: token_limit(context), seed: quirks.seed, stop: "stop" };
    options.write(w, &context.request.generation);
    if let Some(grammar) = grammar.filter(|_| context.request.generation.max_tokens.is_none()) {
        w.field(options.max_tokens, &grammar.max_tokens);
    }
    if context.asks_probabilities() {
        // llama.cpp also has the probabilities after sampling, but at temperature 0 each of them is 1.
        w.field("logprobs", &true).field("top_logprobs", &ALTERNATIVES);
    }
    w.optional("reasoning_effort", &effort(context));
    context.write_effort_members(w);
    w.optional("verbosity", &context.request.generation.verbosity);
    w.optional("service_tier", &context.service_tier());
    context.write_cache_key(w);
    w.field("stream", &streams);
    // Without it, most servers send no counts in a stream.
    if streams && quirks.stream_options && context.request.stream_options {
        w.key("stream_options").object(|w| {
            w.field("include_usage", &true);
        });
    }
    for (key, value) in quirks.extra {
        w.optional(key, &Value::parse(value).ok());
    }
}

/// Returns the name of the limit of output tokens.
fn token_limit(context: &RequestContext<'_>) -> &'static str {
    match (context.vendor.quirks.max_tokens, context.request.renames_token_limit) {
        (name, false) => name,
        ("max_tokens", true) => "max_completion_tokens",
        (_, true) => "max_tokens",
    }
}

/// Returns the effort. Some models accept tools only if it is `none`.
fn effort(context: &RequestContext<'_>) -> Option<&'static str> {
    let only_none =
        context.request.tools.is_some() && context.tool_settings().over_chat == ToolSupport::WithoutReasoning;
    if only_none { Some(Effort::None.as_str()) } else { context.effort() }
}

/// Writes the tools, and which of them the model may call.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest, context: &RequestContext<'_>) {
    w.key("tools").array(|w| tools.definitions.iter().for_each(|tool| function_tool(w, tool)));
    w.optional("tool_choice", &choice_name(tools));
    if let ToolChoice::Named(name) = &tools.choice {
        w.key("tool_choice").object(|w| {
            w.field("type", "function").key("function").object(|w| {
                w.field("name", name);
            });
        });
    }
    if context.tool_settings().limits_calls {
        w.field("parallel_tool_calls", &tools.parallel);
    }
}

/// Writes the requested modalities of the answer; omitted for text alone. Audio requires a voice, which a module
/// cannot configure.
fn modalities(w: &mut Writer<'_>, media: &[Modality]) {
    if !media.is_empty() {
        let names = [Modality::Text].iter().chain(media).map(|kind| kind.as_str());
        w.field("modalities", &names.collect::<Vec<_>>());
    }
    if media.contains(&Modality::Audio) {
        w.key("audio").object(|w| {
            w.field("voice", "alloy").field("format", "mp3");
        });
    }
}

fn response_format(w: &mut Writer<'_>, output: &OutputSchema) {
    let schema = output.schema.as_ref().filter(|_| output.dialect != Dialect::JsonObject);
    w.object(|w| match schema {
        None => {
            w.field("type", "json_object");
        }
        Some(schema) => w.field("type", "json_schema").key("json_schema").object(|w| {
            w.field("name", &schema_name(&output.name));
            if output.dialect == Dialect::OpenAiStrict {
                w.field("strict", &true);
            }
            w.field("schema", schema);
        }),
    });
}

fn write_turn(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    match turn {
        Turn::Message(message) => write_message(w, message, context),
        Turn::Text(text) => write_message(w, &Message::user(text.as_str()), context),
        Turn::Results(results) => {
            for result in results {
                w.object(|w| {
                    w.field("role", Role::Tool.as_str()).field("tool_call_id", result.id);
                    w.field("content", &result.message.text());
                });
            }
            if let Some(media) = parts::media_message(results) {
                write_message(w, &media, context);
            }
        }
    }
}

fn write_message(w: &mut Writer<'_>, message: &Message, context: &RequestContext<'_>) {
    w.object(|w| {
        w.field("role", message.role.as_str()).optional("name", &message.name).key("content");
        match only_text(message) {
            Some("") if !message.tool_calls.is_empty() => w.null(),
            Some(text) if context.has_breakpoint(message) => cached_text(w, "text", text),
            Some(text) => w.string(text),
            None => w.array(|w| message.content.iter().for_each(|part| block(w, part, message.role))),
        }
        context.write_reasoning_members(w, message);
        if !message.tool_calls.is_empty() {
            w.key("tool_calls").array(|w| {
                message.tool_calls.iter().for_each(|call| w.object(|w| write_chat_call(w, call)));
            });
        }
    });
}

/// Writes a part; only user messages contain anything but text.
fn block(w: &mut Writer<'_>, part: &Part, role: Role) {
    if role == Role::User || part.as_text().is_some() {
        w.object(|w| write_chat_part(w, part, filename(part).as_deref()));
    }
}
