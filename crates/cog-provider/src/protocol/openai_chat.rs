//! OpenAI Chat Completions: `POST /chat/completions`, which most vendors implement.

use cog_harmony::{
    Message, Part, Role, ToolChoice,
    wire::{data_url, write_chat_call, write_chat_part},
};
use cog_json::{Node, Reader, Value, Writer};
use cog_spec::{Dialect, Effort, FinishReason, Modality, ModelEvent, ModelMedia, ToolCallDelta, Usage};

use super::{Decoder, FrameDecoder, Protocol, RequestContext, frames::Frames};
use crate::{
    ListedModel, OutputSchema, RequestError, ToolRequest, WireRequest,
    protocol::{
        DecodeError,
        frames::Frame,
        parts::{self, Options, cached_text, filename, only_text, post, schema_name},
        reply::{Reply, StartKeys, vendor_error},
        tools::{self, Turn, choice_name, function_tool, turns},
    },
    vendors::ToolSupport,
};

/// The OpenAI Chat Completions protocol.
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        check(context)
    }

    fn request(&self, context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
        request(context)
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        Box::new(FrameDecoder::new(Frames::events(limit), chunk))
    }

    fn models_path(&self, _base_url: &str) -> String {
        "/models".to_owned()
    }

    /// Reads `{data: [{id}]}`; Together sends only the array.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        let list = body.get("data").unwrap_or(body);
        list.elements().filter_map(|model| Some(ListedModel::named(model.get("id")?.as_str()?))).collect()
    }
}

/// The marker at the end of a stream.
const DONE: &str = "[DONE]";

/// Reads `chat.completion.chunk` events, or one `chat.completion` body.
fn chunk(
    reply: &mut Reply,
    frame: &Frame<'_>,
    reader: &mut Reader,
    out: &mut Vec<ModelEvent>,
) -> Result<(), DecodeError> {
    if frame.text.trim() == DONE {
        reply.end(out);
        return Ok(());
    }
    if frame.text.trim().is_empty() {
        return Ok(());
    }
    let node = frame.json(reader)?;
    let choices = node.get("choices").filter(|choices| choices.is_array());
    let may_be_error = choices.is_none() || node.get("error").is_some_and(|error| !error.is_null());
    if may_be_error && let Some(error) = vendor_error(node) {
        return Err(DecodeError::Vendor(error));
    }
    reply.start(node, StartKeys { model: "model", id: "id" }, out);
    if let Some(choice) = choices.and_then(|choices| choices.elements().find(is_first)) {
        content(reply, choice, out)?;
    }
    reply.usage(usage(node), out);
    Ok(())
}

/// Returns whether a choice is the first one; only one answer is requested.
fn is_first(choice: &Node<'_>) -> bool {
    choice.get("index").and_then(Node::as_u64).unwrap_or(0) == 0
}

fn content(reply: &mut Reply, choice: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
        reasoning(reply, delta, out);
        match delta.get("content") {
            Some(blocks) if blocks.is_array() => {
                blocks.elements().for_each(|block| typed_block(reply, block, out));
            }
            text => reply.text(text, out),
        }
        speech(reply, delta, out);
        images(reply, delta, out)?;
        reply.refusal(delta.get("refusal").and_then(Node::as_str));
        let calls = delta.get("tool_calls").into_iter().flat_map(Node::elements);
        (0..).zip(calls).for_each(|(position, call)| reply.tool_call(tool_call(position, call), out));
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Node::as_str) {
        reply.stop(finish_reason(reason));
    }
    Ok(())
}

/// Reads a complete speech item and its transcript.
fn speech(reply: &mut Reply, message: Node<'_>, out: &mut Vec<ModelEvent>) {
    let Some(audio) = message.get("audio").filter(|audio| audio.is_object()) else { return };
    reply.text(audio.get("transcript"), out);
    if let Some(data) = audio.get("data").and_then(Node::as_str) {
        reply.media(ModelMedia { media_type: None, data: data.to_owned(), params: Vec::new() }, out);
    }
}

/// Reads OpenRouter's images. Each is complete, in the same format as an input image.
fn images(reply: &mut Reply, message: Node<'_>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
    for image in message.get("images").into_iter().flat_map(Node::elements) {
        let Some(url) = image.pointer("/image_url/url").and_then(Node::as_str) else { continue };
        let (media_type, data) = data_url(url).ok_or(DecodeError::MediaUrl)?;
        let (media_type, data) = (Some(media_type.to_owned()), data.to_owned());
        reply.media(ModelMedia { media_type, data, params: Vec::new() }, out);
    }
    Ok(())
}

/// Reads the reasoning. Vendors use three fields for it; a vendor that fills two repeats the same text.
fn reasoning(reply: &mut Reply, delta: Node<'_>, out: &mut Vec<ModelEvent>) {
    let text = |key: &str| delta.get(key).and_then(Node::as_str).filter(|text| !text.is_empty());
    let details = || delta.get("reasoning_details").into_iter().flat_map(Node::elements);
    details().for_each(|detail| reply.parts.detail(detail));
    if let Some(text) = text("reasoning_content") {
        reply.parts.text("reasoning_content", text);
    }
    match text("reasoning_content").or_else(|| text("reasoning")) {
        Some(text) => reply.reasoning(Some(text), out),
        None => details().for_each(|detail| reply.reasoning(detail.get("text").and_then(Node::as_str), out)),
    }
}

/// Reads a content block of Mistral's reasoning models: `text`, or `thinking` with texts inside.
fn typed_block(reply: &mut Reply, block: Node<'_>, out: &mut Vec<ModelEvent>) {
    match block.get("thinking") {
        Some(thoughts) => {
            let texts = thoughts.elements().filter_map(|thought| thought.get("text")?.as_str());
            texts.for_each(|text| reply.reasoning(Some(text), out));
        }
        None => reply.text(block.get("text"), out),
    }
}

fn tool_call(position: u32, call: Node<'_>) -> ToolCallDelta {
    let function = call.get("function");
    let text = |node: Option<Node<'_>>, key: &str| Some(node?.get(key)?.as_str()?.to_owned());
    let index = call.get("index").and_then(Node::as_u64).and_then(|index| u32::try_from(index).ok());
    ToolCallDelta {
        index: index.unwrap_or(position),
        id: text(Some(call), "id"),
        name: text(function, "name"),
        arguments: text(function, "arguments").unwrap_or_default(),
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

/// Reads the token counts of a chunk, and the class of service beside them.
fn usage(chunk: Node<'_>) -> Option<Usage> {
    let node = chunk.get("usage")?;
    let count = |path: &str| node.pointer(path).and_then(Node::as_u64);
    let media = |path: &str| count(path).filter(|count| *count > 0);
    let (input, completion) = (count("/prompt_tokens")?, count("/completion_tokens").unwrap_or(0));
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    // xAI counts reasoning separately from the answer, and includes it in the total.
    let with_reasoning = completion.saturating_add(reasoning.unwrap_or(0));
    let is_separate = count("/total_tokens") == Some(input.saturating_add(with_reasoning));
    Some(Usage {
        input_tokens: input,
        output_tokens: if is_separate { with_reasoning } else { completion },
        cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_input_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: reasoning,
        input_audio_tokens: media("/prompt_tokens_details/audio_tokens"),
        output_audio_tokens: media("/completion_tokens_details/audio_tokens"),
        output_image_tokens: media("/completion_tokens_details/image_tokens"),
        service_tier: chunk.get("service_tier").and_then(Node::as_str).map(str::to_owned),
        ..Usage::default()
    })
}

fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    parts::check(context)?;
    context.check_tools_over_chat()
}

fn request(context: &RequestContext<'_>) -> Result<WireRequest, RequestError> {
    check(context)?;
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    // Audio is streamed only as raw samples without a file header.
    let speaks = context.output_media().any(|kind| kind == Modality::Audio);
    let streams = !speaks && (output.is_none() || context.vendor.quirks.streams_schema);
    let url = format!("{}/chat/completions", context.base_url);
    Ok(post(url, streams, |w| body(w, context, output, streams)))
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>, output: Option<&OutputSchema>, streams: bool) {
    let quirks = &context.vendor.quirks;
    w.field("model", context.model);
    w.key("messages").array(|w| {
        turns(context.request.messages.messages()).iter().for_each(|turn| write_turn(w, turn, context));
    });
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools, context);
    }
    if let Some(output) = output {
        response_format(w.key("response_format"), output);
    }
    modalities(w, &context.output_media().collect::<Vec<_>>());
    let options = Options { max_tokens: quirks.max_tokens, seed: quirks.seed, stop: "stop" };
    options.write(w, &context.request.generation);
    w.optional("reasoning_effort", &effort(context));
    context.write_effort_members(w);
    w.optional("verbosity", &context.request.generation.verbosity);
    w.optional("service_tier", &context.service_tier());
    context.write_cache_key(w);
    w.field("stream", &streams);
    if streams && quirks.stream_options && context.request.stream_options {
        w.key("stream_options").object(|w| {
            w.field("include_usage", &true);
        });
    }
    for (key, value) in quirks.extra {
        w.optional(key, &Value::parse(value).ok());
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
            if let Some(media) = tools::media_message(results) {
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
