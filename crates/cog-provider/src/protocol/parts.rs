//! Functions that the request mappings share.

use std::borrow::Cow;

use cog_harmony::{
    FilePart, ImagePart, Message, Part, Role, ToolCall, ToolChoice, ToolDefinition, wire::data_url,
};
use cog_json::{Value, Writer};
use cog_spec::{Dialect, Effort, Generation, Modality, ServiceTier};

use super::RequestContext;
use crate::{
    OutputGrammar, OutputSchema, RequestError, ToolRequest,
    vendors::{CacheMark, Temperature, TokenProbabilities, ToolSettings, ToolSupport, has_prefix},
};

/// Returns the media type that a request accepts.
pub(crate) fn accepted(streams: bool) -> &'static str {
    if streams { "text/event-stream" } else { "application/json" }
}

/// Returns the schema of the answer, unless it is sent as text.
pub(crate) fn projected<'a>(context: &RequestContext<'a>) -> Option<&'a OutputSchema> {
    context.request.output.as_deref().filter(|output| output.dialect != Dialect::Prompt)
}

/// A vendor's parameter names for the generation options; options that are not set are omitted.
pub(crate) struct Options {
    /// The maximum number of tokens.
    pub(crate) max_tokens: &'static str,
    /// The seed; `None` if the vendor has no parameter for it.
    pub(crate) seed: Option<&'static str>,
    /// The stop sequences.
    pub(crate) stop: &'static str,
}

impl Options {
    /// Returns whether there are members to write.
    pub(crate) fn are_set(&self, generation: &Generation) -> bool {
        let Generation { temperature, max_tokens, seed, stop, .. } = generation;
        temperature.is_some() || max_tokens.is_some() || seed.is_some() || !stop.is_empty()
    }

    /// Writes the members.
    pub(crate) fn write(&self, w: &mut Writer<'_>, generation: &Generation) {
        w.optional(self.max_tokens, &generation.max_tokens);
        w.optional("temperature", &generation.temperature);
        if let Some(key) = self.seed {
            w.optional(key, &generation.seed);
        }
        list(w, self.stop, &generation.stop);
    }
}

/// Writes a list, unless it is empty.
pub(crate) fn list(w: &mut Writer<'_>, key: &str, values: &[String]) {
    if !values.is_empty() {
        w.field(key, values);
    }
}

/// Checks that the vendor supports everything in the request, before any mapping.
pub(crate) fn check(context: &RequestContext<'_>) -> Result<(), RequestError> {
    let vendor = context.vendor.title;
    check_generation(context)?;
    context.check_tools()?;
    if let Some(modality) = context.parts().map(modality).find(|kind| !context.vendor.accepts(*kind)) {
        return Err(RequestError::Modality { vendor, modality });
    }
    // Large media are rejected here, before they are copied into a body.
    context.check_size(context.parts().map(size).sum())
}

/// Checks that the model supports every option of the generation.
fn check_generation(context: &RequestContext<'_>) -> Result<(), RequestError> {
    let generation = &context.request.generation;
    let settings = context.settings();
    let without_reasoning = generation.effort == Some(Effort::None);
    if generation.temperature.is_some() {
        match settings.temperature {
            Temperature::Rejected => return Err(context.unsupported("temperature")),
            Temperature::WithoutReasoning if !without_reasoning => {
                return Err(RequestError::TemperatureWithReasoning {
                    vendor: context.vendor.title,
                    model: context.model.to_owned(),
                });
            }
            Temperature::WithoutReasoning | Temperature::Accepted => {}
        }
    }
    if generation.seed.is_some() && context.vendor.quirks.seed.is_none() {
        return Err(context.unsupported("seed"));
    }
    if generation.verbosity.is_some() && !settings.verbosity {
        return Err(context.unsupported("verbosity"));
    }
    let effort = generation.effort.map(Effort::as_str);
    context.check_value("effort", effort, settings.all_efforts().map(Effort::as_str))?;
    let tiers = settings.service_tiers.iter().map(|(tier, _)| tier.as_str());
    context.check_value("service_tier", generation.service_tier.map(ServiceTier::as_str), tiers)
}

impl<'a> RequestContext<'a> {
    /// Returns the parts of all messages, in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'a Part> + use<'a> {
        self.request.messages.messages().iter().flat_map(|message| &message.content)
    }

    /// Creates the error of an option that the model does not support.
    pub(crate) fn unsupported(&self, option: &'static str) -> RequestError {
        RequestError::Option { vendor: self.vendor.title, model: self.model.to_owned(), option }
    }

    /// Checks that the value of an option is supported.
    fn check_value(
        &self,
        option: &'static str,
        value: Option<&'static str>,
        supported: impl Iterator<Item = &'static str>,
    ) -> Result<(), RequestError> {
        let Some(value) = value else { return Ok(()) };
        let supported: Vec<&str> = supported.collect();
        if supported.contains(&value) {
            return Ok(());
        }
        if supported.is_empty() {
            return Err(self.unsupported(option));
        }
        Err(RequestError::OptionValue {
            vendor: self.vendor.title,
            model: self.model.to_owned(),
            option,
            value,
            supported: supported.join(", "),
        })
    }

    /// Returns the level of effort that is set by the protocol's own parameter.
    pub(crate) fn effort(&self) -> Option<&'static str> {
        let effort = self.request.generation.effort?;
        self.settings().members(effort).is_none().then_some(effort.as_str())
    }

    /// Writes the members that set the effort, for models that have no parameter for its level.
    pub(crate) fn write_effort_members(&self, w: &mut Writer<'_>) {
        let members = self.request.generation.effort.and_then(|effort| self.settings().members(effort));
        let Some(members) = members.and_then(|members| Value::parse(members).ok()) else { return };
        for (key, value) in members.node().members() {
            w.field(key, &value);
        }
    }

    /// Returns the vendor's name of the requested class of service.
    pub(crate) fn service_tier(&self) -> Option<&'static str> {
        self.request.generation.service_tier.and_then(|tier| self.settings().service_tier(tier))
    }

    /// Checks that the vendor accepts a request of this many bytes.
    pub(crate) fn check_size(&self, bytes: u64) -> Result<(), RequestError> {
        let limit = self.vendor.formats.max_request_bytes.filter(|limit| bytes > *limit);
        let Some(limit) = limit else { return Ok(()) };
        let has_media = self.parts().any(|part| modality(part) != Modality::Text);
        Err(RequestError::TooLarge { vendor: self.vendor.title, bytes, limit, has_media })
    }
}

/// Returns the minimum number of bytes that a part adds to a request.
fn size(part: &Part) -> u64 {
    let length = match part {
        Part::Image(image) => image.url.len(),
        Part::Audio(audio) => audio.data.len(),
        Part::File(file) => file.data.len(),
        other => other.as_text().map_or(0, str::len),
    };
    length as u64
}

/// Performs the same checks for vendors that accept images only as data, not by URL.
pub(crate) fn check_inline(context: &RequestContext<'_>) -> Result<(), RequestError> {
    check(context)?;
    match context.parts().any(|part| matches!(part, Part::Image(image) if inline(image).is_none())) {
        true => Err(RequestError::ImageUrl { vendor: context.vendor.title }),
        false => Ok(()),
    }
}

/// Returns the kind of a part.
pub(crate) fn modality(part: &Part) -> Modality {
    match part {
        Part::Image(_) => Modality::Image,
        Part::Audio(_) => Modality::Audio,
        Part::File(file) if file.media_type.starts_with("video/") => Modality::Video,
        Part::File(_) => Modality::Document,
        _ => Modality::Text,
    }
}

/// Separates the system text from the other messages, for vendors that require it. Such vendors need at least one
/// turn; if there is none, the system text is sent as the turn.
pub(crate) fn split_system<'a>(context: &RequestContext<'a>) -> (Option<String>, Vec<Turn<'a>>) {
    let (system, messages): (Vec<_>, Vec<_>) =
        context.request.messages.messages().iter().partition(|message| message.role == Role::System);
    let text = system.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n\n");
    if messages.is_empty() {
        return (None, vec![Turn::Text(text)]);
    }
    (Some(text).filter(|text| !text.is_empty()), turns(messages))
}

impl<'a> RequestContext<'a> {
    /// Returns the grammar that is sent instead of the schema: to a server that accepts one, unless the model is to reason, which
    /// the grammar would prevent, or may call tools.
    pub(crate) fn grammar(&self) -> Option<&'a OutputGrammar> {
        let request = self.request;
        let reasons = request.generation.effort.is_some_and(|effort| effort != Effort::None);
        let is_used = self.vendor.quirks.grammar && !reasons && request.tools.is_none();
        request.output.as_ref()?.grammar.as_ref().filter(|_| is_used)
    }

    /// Returns whether to request the probabilities of tokens: the run wants them, and the model does not refuse to report them.
    pub(crate) fn asks_probabilities(&self) -> bool {
        let wants = self.request.probabilities && self.output_media().next().is_none();
        wants
            && match self.vendor.quirks.probabilities {
                TokenProbabilities::Never => false,
                TokenProbabilities::WithGrammar => self.grammar().is_some(),
                TokenProbabilities::Always => true,
                TokenProbabilities::WithoutReasoning => {
                    let may_reason = self.settings().all_efforts().next().is_some();
                    !may_reason || self.request.generation.effort == Some(Effort::None)
                }
                TokenProbabilities::Models(names) => has_prefix(names, self.model),
            }
    }

    /// Returns the messages as they are sent: with the system text at the beginning of the first message of the user, if the
    /// request has it there.
    pub(crate) fn messages(&self) -> Cow<'a, [Message]> {
        let messages = self.request.messages.messages();
        match self.request.merges_system {
            true => Cow::Owned(with_merged_system(messages)),
            false => Cow::Borrowed(messages),
        }
    }
}

fn with_merged_system(messages: &[Message]) -> Vec<Message> {
    let (system, others): (Vec<_>, Vec<_>) =
        messages.iter().cloned().partition(|message| message.role == Role::System);
    let text = system.iter().map(Message::text).collect::<Vec<_>>().join("\n\n");
    let mut others = others;
    match others.first_mut().filter(|first| first.role == Role::User) {
        Some(first) => match only_text(first) {
            // One string: templates of such models often accept no list.
            Some(own) => first.content = vec![Part::text(format!("{text}\n\n{own}"))],
            None => first.content.insert(0, Part::text(text)),
        },
        None => others.insert(0, Message::user(text)),
    }
    others
}

/// Returns the type and base64 data of an image with a `data:` URL.
pub(crate) fn inline(image: &ImagePart) -> Option<(&str, &str)> {
    data_url(&image.url)
}

/// The maximum length of a key of OpenAI's cache.
const MAX_CACHE_KEY: usize = 64;

impl RequestContext<'_> {
    /// Writes the members that name the request in OpenAI's cache.
    pub(crate) fn write_cache_key(&self, w: &mut Writer<'_>) {
        let Some((mark @ (CacheMark::Key | CacheMark::Breakpoint), key)) = self.cache_mark() else { return };
        let key: String = key.chars().take(MAX_CACHE_KEY).collect();
        w.field("prompt_cache_key", &key);
        if mark == CacheMark::Breakpoint {
            w.key("prompt_cache_options").object(|w| {
                w.field("mode", "explicit");
            });
        }
    }

    /// Returns whether a message ends with a breakpoint of OpenAI's cache.
    pub(crate) fn has_breakpoint(&self, message: &Message) -> bool {
        message.role == Role::System
            && self.cache_mark().is_some_and(|(mark, _)| mark == CacheMark::Breakpoint)
    }
}

/// Writes text with a breakpoint of OpenAI's cache after it, as the only block of a message.
pub(crate) fn cached_text(w: &mut Writer<'_>, kind: &str, text: &str) {
    w.array(|w| {
        w.object(|w| {
            w.field("type", kind).field("text", text).key("prompt_cache_breakpoint").object(|w| {
                w.field("mode", "explicit");
            });
        });
    });
}

/// Returns the content of a message that is a single text part.
pub(crate) fn only_text(message: &Message) -> Option<&str> {
    match message.content.as_slice() {
        [] => Some(""),
        [part] => part.as_text(),
        _ => None,
    }
}

/// Returns whether a message has text that is not empty.
pub(crate) fn has_text(message: &Message) -> bool {
    message.content.iter().filter_map(Part::as_text).any(|text| !text.is_empty())
}

/// The maximum length of the name of a tool or a schema.
const MAX_NAME: usize = 64;

/// Converts the name of a schema to what OpenAI's protocols allow: letters, digits, `_` and `-`, at most 64.
pub(crate) fn schema_name(name: &str) -> String {
    let name: String = name.chars().filter(|letter| is_name_letter(*letter)).take(MAX_NAME).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}

/// Returns whether every vendor accepts the name of a tool: letters, digits, `_` and `-`, at most 64.
pub(crate) fn is_tool_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_name_letter)
}

fn begins_with_letter(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns the name of a file without one. OpenAI's protocols require a name, and derive the type from its extension.
pub(crate) fn filename(part: &Part) -> Option<String> {
    let Part::File(FilePart { media_type, .. }) = part else { return None };
    Some(format!("file.{}", media_type.rsplit('/').next().unwrap_or_default()))
}

// What the request mappings share about tools.

impl RequestContext<'_> {
    /// Returns how the model uses tools.
    pub(crate) fn tool_settings(&self) -> &'static ToolSettings {
        self.vendor.tools_of(self.model)
    }

    /// Checks that the model supports the tools of the request, and the tool calls of its messages.
    pub(crate) fn check_tools(&self) -> Result<(), RequestError> {
        let settings = self.tool_settings();
        let vendor = self.vendor.title;
        let model = self.model.to_owned();
        if !settings.supported && (self.request.tools.is_some() || self.has_calls()) {
            return Err(RequestError::Tools { vendor, model });
        }
        let Some(tools) = &self.request.tools else { return Ok(()) };
        if let Some(tool) = tools.definitions.iter().find(|tool| !is_tool_name(&tool.name)) {
            return Err(RequestError::ToolName { name: tool.name.clone() });
        }
        let mut names = tools.definitions.iter().map(|tool| &tool.name);
        if let Some(name) = names.find(|name| settings.letter_first && !begins_with_letter(name)) {
            return Err(RequestError::ToolNameStart { vendor, name: name.clone() });
        }
        let max = settings.limits.tools;
        if tools.definitions.len() > max {
            return Err(RequestError::TooManyTools { vendor, count: tools.definitions.len(), max });
        }
        if projected(self).is_some() && !settings.with_schema {
            return Err(RequestError::SchemaWithTools { vendor, model });
        }
        let is_forced = matches!(tools.choice, ToolChoice::Required | ToolChoice::Named(_));
        match is_forced && !self.allows(settings.forced) {
            true => Err(RequestError::ForcedTool { vendor, model }),
            false => Ok(()),
        }
    }

    fn has_calls(&self) -> bool {
        let mut messages = self.request.messages.messages().iter();
        messages.any(|message| message.role == Role::Tool || !message.tool_calls.is_empty())
    }

    /// Checks that the model supports the tools of the request over Chat Completions.
    pub(crate) fn check_tools_over_chat(&self) -> Result<(), RequestError> {
        if self.request.tools.is_none() {
            return Ok(());
        }
        let vendor = self.vendor.title;
        let model = self.model.to_owned();
        let effort = self.request.generation.effort;
        match self.tool_settings().over_chat {
            ToolSupport::Rejected => Err(RequestError::ToolsOverChat { vendor, model }),
            ToolSupport::WithoutReasoning if effort.is_some_and(|effort| effort != Effort::None) => {
                Err(RequestError::EffortWithTools { vendor, model })
            }
            ToolSupport::WithoutReasoning | ToolSupport::Accepted => Ok(()),
        }
    }

    fn allows(&self, support: ToolSupport) -> bool {
        match support {
            ToolSupport::Accepted => true,
            ToolSupport::WithoutReasoning => self.request.generation.effort == Some(Effort::None),
            ToolSupport::Rejected => false,
        }
    }

    /// Returns the items of the model's reasoning before a message. Only the vendor that sent them can read them.
    pub(crate) fn own_reasoning<'m>(&self, message: &'m Message) -> &'m [Value] {
        let own = message.reasoning.as_ref().filter(|reasoning| reasoning.provider == self.vendor.name);
        own.map_or(&[], |reasoning| &reasoning.items)
    }

    /// Writes the members of a message that contain its reasoning, for models that require them back.
    pub(crate) fn write_reasoning_members(&self, w: &mut Writer<'_>, message: &Message) {
        let names = self.tool_settings().reasoning;
        if self.request.tools.is_none() {
            return;
        }
        for (key, value) in self.own_reasoning(message).iter().flat_map(Value::members) {
            if names.contains(&key) {
                w.field(key, &value);
            }
        }
    }
}

/// A turn of the conversation.
pub(crate) enum Turn<'a> {
    /// An unchanged message.
    Message(&'a Message),
    /// A user's text.
    Text(String),
    /// The results of the calls of one message.
    Results(Vec<ToolResult<'a>>),
}

/// The result of a call.
pub(crate) struct ToolResult<'a> {
    /// The identifier of the call.
    pub(crate) id: &'a str,
    /// The name of the tool.
    pub(crate) name: &'a str,
    /// The message that contains the result.
    pub(crate) message: &'a Message,
}

impl ToolResult<'_> {
    /// Returns the parts of the result that are not text.
    pub(crate) fn media(&self) -> impl Iterator<Item = &Part> {
        self.message.content.iter().filter(|part| part.as_text().is_none())
    }
}

/// Returns the turns of a conversation: adjacent results are one turn.
pub(crate) fn turns<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    let mut calls: &[ToolCall] = &[];
    for message in messages {
        if message.role != Role::Tool {
            calls = message.tool_calls.as_slice();
            turns.push(Turn::Message(message));
            continue;
        }
        let result = result_of(message, calls);
        match turns.last_mut() {
            Some(Turn::Results(results)) => results.push(result),
            _ => turns.push(Turn::Results(vec![result])),
        }
    }
    turns
}

fn result_of<'a>(message: &'a Message, calls: &'a [ToolCall]) -> ToolResult<'a> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let called = calls.iter().find(|call| call.id == id).map(|call| call.name.as_str());
    ToolResult { id, name: called.or(message.name.as_deref()).unwrap_or_default(), message }
}

/// Returns the message of a user with the media of results, for a form in which results are only text.
pub(crate) fn media_message(results: &[ToolResult<'_>]) -> Option<Message> {
    let mut parts = Vec::new();
    for result in results.iter().filter(|result| result.media().next().is_some()) {
        parts.push(Part::text(format!("Media in the result of `{}` ({}):", result.name, result.id)));
        parts.extend(result.media().cloned());
    }
    (!parts.is_empty()).then(|| Message::new(Role::User, parts))
}

/// Writes `{type: function, function: {…}}`, which most vendors use.
pub(crate) fn function_tool(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.object(|w| {
        w.field("type", "function").key("function").object(|w| function_members(w, tool));
    });
}

fn function_members(w: &mut Writer<'_>, tool: &ToolDefinition) {
    w.field("name", &tool.name).field("description", &tool.description);
    w.field("parameters", &tool.parameters);
    if tool.strict {
        w.field("strict", &true);
    }
}

/// Returns the choice as OpenAI's protocols name it; `None` for the default and for a named tool.
pub(crate) fn choice_name(tools: &ToolRequest) -> Option<&'static str> {
    match tools.choice {
        ToolChoice::Auto | ToolChoice::Named(_) => None,
        ToolChoice::None => Some("none"),
        ToolChoice::Required => Some("required"),
    }
}
