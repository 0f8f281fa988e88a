//! Gemini generateContent: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`.

use bytes::Bytes;
use cog_harmony::{
    Message, Part, Role, ToolCall, ToolChoice, ToolDefinition,
    wire::{write_gemini_call, write_gemini_part, write_object},
};
use cog_json::{Node, Writer};
use cog_spec::{Dialect, FinishReason, Modality, ModelMedia, TokenProbability, ToolCallDelta, Usage};

use super::{
    Continuation, DecodeError, Decoder, Protocol, RequestContext, VendorError,
    decoder::{Event, FrameDecoder},
    parts::{Options, ToolResult, Turn, check_inline, media_message, split_system},
    reply::{Reply, check_error, count, elements, string},
};
use crate::{ListedModel, OutputSchema, RequestError, ToolRequest};

/// The Gemini protocol.
pub(crate) struct Gemini;

impl Protocol for Gemini {
    fn check(&self, context: &RequestContext<'_>) -> Result<(), RequestError> {
        check_inline(context)?;
        check_name(context.model)
    }

    fn url(&self, context: &RequestContext<'_>) -> String {
        let version = version_path(context.base_url);
        let model = bare_name(context.model);
        format!("{}{version}/models/{model}:streamGenerateContent?alt=sse", context.base_url)
    }

    fn write_body(&self, w: &mut Writer<'_>, context: &RequestContext<'_>) {
        body(w, context);
    }

    fn decoder(&self, limit: usize) -> Box<dyn Decoder> {
        FrameDecoder::events(limit, responses)
    }

    fn continuation(&self) -> Option<Continuation> {
        Some(with_token)
    }

    fn models_path(&self, base_url: &str) -> String {
        format!("{}/models?pageSize=1000", version_path(base_url))
    }

    /// Reads `{models: [{name: models/…, supportedGenerationMethods}]}`, and lists only models that generate content.
    fn models(&self, body: Node<'_>) -> Vec<ListedModel> {
        elements(body, "models").filter(generates_content).filter_map(listed).collect()
    }
}

fn listed(model: Node<'_>) -> Option<ListedModel> {
    Some(ListedModel {
        max_input_tokens: count(model, "/inputTokenLimit"),
        max_output_tokens: count(model, "/outputTokenLimit"),
        ..ListedModel::named(bare_name(model.get_str("name")?))
    })
}

fn generates_content(model: &Node<'_>) -> bool {
    let methods = model.get("supportedGenerationMethods");
    methods.is_none_or(|methods| methods.elements().any(|method| method.as_str() == Some("generateContent")))
}

/// Returns a model's name without its `models/` prefix.
fn bare_name(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

/// Returns `/v1beta`, unless the base URL ends with a version.
pub(crate) fn version_path(base_url: &str) -> &'static str {
    let last = base_url.rsplit('/').next().unwrap_or_default();
    if last == "v1" || last.starts_with("v1beta") || last.starts_with("v1alpha") { "" } else { "/v1beta" }
}

/// Reads `GenerateContentResponse` events, or a body that is one of them or an array of them.
fn responses(reply: &mut Reply<'_>, event: Event<'_>) -> Result<(), DecodeError> {
    match event.node.is_array() {
        true => event.node.elements().try_for_each(|node| response(reply, node)),
        false => response(reply, event.node),
    }
}

fn response(reply: &mut Reply<'_>, node: Node<'_>) -> Result<(), DecodeError> {
    check_error(node)?;
    // Gateways also report errors without a member of this name.
    if node.get("candidates").is_none()
        && let Some(error) = VendorError::read(node)
    {
        return Err(DecodeError::Vendor(error));
    }
    reply.start_with(node, "modelVersion", "responseId");
    if node.pointer("/promptFeedback/blockReason").and_then(Node::as_str).is_some() {
        reply.stop(FinishReason::ContentFilter);
    }
    if let Some(candidate) = node.get("candidates").and_then(|candidates| candidates.at(0)) {
        let parts = candidate.pointer("/content/parts").into_iter().flat_map(Node::elements);
        parts.for_each(|inner| part(reply, inner));
        reply.tokens(candidate.get("logprobsResult").map(tokens).unwrap_or_default());
        if let Some(reason) = candidate.get_str("finishReason") {
            let reason = finish_reason(reason, candidate.get_str("continuationToken"));
            reply.stop_with(reason, candidate.get_str("finishMessage"));
        }
    }
    reply.usage(node.get("usageMetadata").and_then(usage));
    Ok(())
}

fn part(reply: &mut Reply<'_>, part: Node<'_>) {
    match part.get("thought").and_then(Node::as_bool) {
        Some(true) => reply.reasoning(part.get_str("text")),
        // A part may have text and media next to each other.
        _ => {
            reply.text(part.get("text"));
            if let Some(media) = media(part) {
                reply.media(media);
            }
        }
    }
    if let Some(call) = part.get("functionCall") {
        // A call arrives complete, and without an index.
        let index = reply.next_call();
        reply.tool_call(ToolCallDelta {
            index,
            id: string(call, "id"),
            name: string(call, "name"),
            arguments: call.get("args").map(|args| args.to_string()).unwrap_or_default(),
            signature: string(part, "thoughtSignature").or_else(|| string(part, "thought_signature")),
        });
    }
}

/// Reads the tokens of the text, with their probabilities and the ones of others at their places.
fn tokens(result: Node<'_>) -> Vec<TokenProbability> {
    let read =
        |node: Node<'_>| Some((node.get_str("token")?.to_owned(), node.get("logProbability")?.as_f64()?));
    let mut places = elements(result, "topCandidates");
    let chosen = elements(result, "chosenCandidates").map(|node| {
        let (text, logprob) = read(node)?;
        let others = places.next().into_iter().flat_map(|place| elements(place, "candidates"));
        Some(TokenProbability { text, logprob, alternatives: others.filter_map(read).collect() })
    });
    chosen.collect::<Option<_>>().unwrap_or_default()
}

/// Reads a complete image or audio item. Media in thoughts are only drafts.
fn media(part: Node<'_>) -> Option<ModelMedia> {
    // JSON of protocol buffers may have names in either form.
    let blob = part.get("inlineData").or_else(|| part.get("inline_data"))?;
    let media_type = string(blob, "mimeType").or_else(|| string(blob, "mime_type"));
    Some(ModelMedia { media_type, data: string(blob, "data")?, params: Vec::new() })
}

fn finish_reason(reason: &str, token: Option<&str>) -> FinishReason {
    match (reason, token) {
        ("CONTINUATION", Some(token)) => FinishReason::Continue(token.to_owned()),
        ("STOP" | "FINISH_REASON_UNSPECIFIED", _) => FinishReason::Stop,
        ("MAX_TOKENS", _) => FinishReason::Length,
        (other, _) => FinishReason::Other(other.to_owned()),
    }
}

/// Reads the token counts. Gemini counts reasoning separately from the answer; this crate includes it.
fn usage(node: Node<'_>) -> Option<Usage> {
    let thoughts = count(node, "/thoughtsTokenCount");
    let answer = count(node, "/candidatesTokenCount").unwrap_or(0);
    Some(Usage {
        input_tokens: count(node, "/promptTokenCount")?,
        output_tokens: answer.saturating_add(thoughts.unwrap_or(0)),
        cached_input_tokens: count(node, "/cachedContentTokenCount"),
        reasoning_tokens: thoughts,
        input_audio_tokens: media_tokens(node, "promptTokensDetails", "AUDIO"),
        input_image_tokens: media_tokens(node, "promptTokensDetails", "IMAGE"),
        output_audio_tokens: media_tokens(node, "candidatesTokensDetails", "AUDIO"),
        output_image_tokens: media_tokens(node, "candidatesTokensDetails", "IMAGE"),
        service_tier: string(node, "serviceTier"),
        ..Usage::default()
    })
}

/// Returns the tokens of a kind of media; none if there are none.
fn media_tokens(node: Node<'_>, details: &str, modality: &str) -> Option<u64> {
    let entry = elements(node, details).find(|entry| entry.get_str("modality") == Some(modality))?;
    count(entry, "/tokenCount").filter(|count| *count > 0)
}

/// The tokens that are requested for each place, at most 20.
const ALTERNATIVES: u32 = 5;

const OPTIONS: Options = Options { max_tokens: "maxOutputTokens", seed: Some("seed"), stop: "stopSequences" };

/// Adds the token of a reply to the body of its request, which then continues the reply.
fn with_token(body: &[u8], token: &str) -> Bytes {
    // The body is not written again: it may contain large media.
    let members = body.strip_suffix(b"}").unwrap_or(body);
    let mut body = String::new();
    Writer::compact(&mut body).string(token);
    Bytes::from([members, b",\"continuationToken\":", body.as_bytes(), b"}"].concat())
}

/// Rejects a model name that would change the request path, since the name is part of it.
fn check_name(model: &str) -> Result<(), RequestError> {
    let name = bare_name(model);
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(RequestError::BadModel { model: model.to_owned() }),
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

fn body(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    let (system, turns) = split_system(context);
    if let Some(text) = system {
        w.key("systemInstruction").object(|w| {
            w.key("parts").array(|w| text_part(w, &text));
        });
    }
    w.key("contents").array(|w| turns.iter().for_each(|turn| content(w, turn, context)));
    if let Some(tools) = &context.request.tools {
        write_tools(w, tools);
    }
    let output = context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt);
    let generation = &context.request.generation;
    let media: Vec<Modality> = context.output_media().collect();
    let asks_probabilities = context.asks_probabilities();
    let has_options = OPTIONS.are_set(generation) || generation.effort.is_some() || asks_probabilities;
    if output.is_some() || !media.is_empty() || has_options {
        w.key("generationConfig").object(|w| {
            if let Some(output) = output {
                write_output(w, output);
            }
            write_modalities(w, &media);
            OPTIONS.write(w, generation);
            if asks_probabilities {
                w.field("responseLogprobs", &true).field("logprobs", &ALTERNATIVES);
            }
            if generation.effort.is_some() {
                thinking_config(w.key("thinkingConfig"), context);
            }
        });
    }
    w.optional("serviceTier", &context.service_tier());
}

/// Writes the level or the budget of the reasoning.
fn thinking_config(w: &mut Writer<'_>, context: &RequestContext<'_>) {
    w.object(|w| {
        w.optional("thinkingLevel", &context.effort().map(str::to_ascii_uppercase));
        context.write_effort_members(w);
    });
}

/// Writes the requested modalities of the answer; omitted for text alone.
fn write_modalities(w: &mut Writer<'_>, media: &[Modality]) {
    if !media.is_empty() {
        let names = [Modality::Text].iter().chain(media).map(|kind| kind.as_str().to_ascii_uppercase());
        w.field("responseModalities", &names.collect::<Vec<_>>());
    }
}

fn write_output(w: &mut Writer<'_>, output: &OutputSchema) {
    w.field("responseMimeType", "application/json");
    w.optional("responseJsonSchema", &output.schema);
}

/// Writes the tools, and which of them the model may call.
fn write_tools(w: &mut Writer<'_>, tools: &ToolRequest) {
    w.key("tools").array(|w| {
        w.object(|w| {
            w.key("functionDeclarations")
                .array(|w| tools.definitions.iter().for_each(|tool| write_declaration(w, tool)));
        });
    });
    let (mode, name) = match &tools.choice {
        ToolChoice::Auto => return,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name])),
    };
    w.key("toolConfig").object(|w| {
        w.key("functionCallingConfig").object(|w| {
            w.field("mode", mode).optional("allowedFunctionNames", &name);
        });
    });
}

fn write_declaration(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("name", &tool.name).field("description", &tool.description);
        w.field("parametersJsonSchema", &tool.parameters);
    });
}

fn content(w: &mut Writer<'_>, turn: &Turn<'_>, context: &RequestContext<'_>) {
    let settings = context.tool_settings();
    w.object(|w| match turn {
        Turn::Text(text) => w.field("role", "user").key("parts").array(|w| text_part(w, text)),
        Turn::Message(message) => w.field("role", role(message)).key("parts").array(|w| {
            message.content.iter().for_each(|part| write_part(w, part));
            write_calls(w, &message.tool_calls, settings.placeholder);
        }),
        Turn::Results(results) => w.field("role", "user").key("parts").array(|w| {
            results.iter().for_each(|result| write_result(w, result, settings.result_media));
            let media = media_message(results).filter(|_| !settings.result_media);
            media.iter().flat_map(|media| &media.content).for_each(|part| write_part(w, part));
        }),
    });
}

/// Writes the calls of a message. Its first call must have a signature, which another provider does not send.
fn write_calls(w: &mut Writer<'_>, calls: &[ToolCall], placeholder: Option<&str>) {
    let mut placeholder = placeholder.filter(|_| calls.iter().all(|call| call.signature.is_none()));
    for call in calls {
        w.object(|w| {
            w.key("functionCall").object(|w| {
                write_gemini_call(w, call);
            });
            w.optional("thoughtSignature", &call.signature.as_deref().or(placeholder.take()));
        });
    }
}

fn write_result(w: &mut Writer<'_>, result: &ToolResult<'_>, has_media: bool) {
    w.object(|w| {
        w.key("functionResponse").object(|w| {
            w.field("id", result.id).field("name", result.name);
            write_object(w.key("response"), &result.message.text(), "output");
            if has_media && result.media().next().is_some() {
                w.key("parts").array(|w| result.media().for_each(|part| write_part(w, part)));
            }
        });
    });
}

fn role(message: &Message) -> &'static str {
    if message.role == Role::Assistant { "model" } else { "user" }
}

fn write_part(w: &mut Writer<'_>, part: &Part) {
    w.object(|w| write_gemini_part(w, part));
}

fn text_part(w: &mut Writer<'_>, text: &str) {
    w.object(|w| {
        w.field("text", text);
    });
}
