use cog_harmony::{Conversation, Message, Part, Role, TokenCounter};
use cog_json::{ToJson, Value, Writer};
use cog_module::Module;
use cog_provider::{ModelRequest, Provider, WireRequest};
use cog_schema::Loss;
use cog_spec::{Dialect, ErrorBody, Form, RationalePlace, Warning, WarningCode};

use crate::{
    budget,
    plan::{Plan, PreparedRun},
    prompt, request, request_size,
};

/// The request that a run would send. Each media item is shortened to its first bytes.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The provider that would be called.
    pub provider: String,
    /// The dialect of the schema.
    pub dialect: Dialect,
    /// The form in which the model would be asked.
    pub form: &'static Form,
    /// Why this form was chosen.
    pub form_reason: String,
    /// The constraints that the dialect cannot express or the engine does not enforce. All of them are enforced when the
    /// answer is checked.
    pub lost: Vec<Loss>,
    /// The warnings that the run would have before the call, such as of parameters that are left out.
    pub warnings: Vec<Warning>,
    /// The messages in Harmony's form; none if only the parts of the module send messages.
    pub messages: Conversation,
    /// The request in the provider's format, without the key; none when offline.
    pub request: Option<WireRequest>,
    /// The beginning of the request that is the same for every input.
    pub prefix: StablePrefix,
}

impl PreparedRun {
    /// Renders the request that this run would send.
    pub(crate) async fn render(self) -> Result<Rendered, ErrorBody> {
        let mut plan = self.plan;
        let mut warnings = self.rules.warnings;
        warnings.extend(complete(&mut plan).await?);
        let Plan { provider, spec, mut request, .. } = plan;
        request.messages.0.iter_mut().flat_map(|message| &mut message.content).for_each(shorten);
        let prefix = StablePrefix::new(&spec.module, provider.as_ref(), &request);
        let wire = provider.render(&request).map_err(|error| ErrorBody::from(&error))?;
        warnings.retain(|warning| warning.code != WarningCode::NoModelCalled);
        Ok(Rendered {
            provider: provider.info().name.clone().into_owned(),
            dialect: self.rules.dialect,
            form: self.rules.form,
            form_reason: spec.form_choice(provider.as_ref(), &request.model).reason.to_string(),
            lost: spec.lost(provider.as_ref(), &request.model),
            warnings,
            messages: request.messages,
            request: wire,
            prefix,
        })
    }
}

impl PreparedRun {
    /// Returns the tokens of the request that this run would send.
    pub(crate) async fn count(self) -> Result<u64, ErrorBody> {
        let mut plan = self.plan;
        complete(&mut plan).await?;
        let Plan { provider, request, .. } = plan;
        let counter = TokenCounter::new(request::model_of(&request, provider.as_ref()));
        let tools = request.tools.iter().flat_map(|tools| &tools.definitions);
        let schema = request.output.as_ref().and_then(|output| output.schema.as_ref());
        Ok(counter.conversation(&request.messages)
            + tools.map(|tool| counter.definition(tool)).sum::<u64>()
            + schema.map_or(0, |schema| counter.text(&schema.to_json())))
    }
}

/// Adds the media to the request, which is empty if only the parts of the module call models. Returns the warnings about media.
async fn complete(plan: &mut Plan) -> Result<Vec<Warning>, ErrorBody> {
    let mut warnings = Vec::new();
    if let Some(sources) = plan.media.take() {
        let media = sources.collect(drop).await?;
        let prepared = media.prepare(plan.provider.as_ref(), &plan.request.model).await?;
        plan.add_media(&media, prepared).await?;
        warnings = media.texts().warnings.clone();
    }
    if plan.parts.as_ref().is_some_and(|parts| !parts.uses_own_prompt()) {
        plan.request.messages = Conversation::default();
        plan.request.output = None;
    }
    Ok(warnings)
}

/// The most that a run with one attempt can spend.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LargestRun {
    /// Its calls.
    pub calls: u64,
    /// The cost in US dollars; none if the price of the model is unknown.
    pub cost: Option<f64>,
}

impl PreparedRun {
    /// Returns the most that this run can spend in one attempt without calls of tools. Without a limit of output tokens, it has
    /// 4,096.
    pub(crate) async fn largest(self) -> Result<LargestRun, ErrorBody> {
        let mut plan = self.plan;
        complete(&mut plan).await?;
        let (provider, request) = (plan.provider.as_ref(), &plan.request);
        let model = request::model_of(request, provider);
        let is_explained = self.rules.form.rationale == RationalePlace::Afterwards;
        let input = request_size::at_most(request, model);
        let output = request.generation.max_tokens.unwrap_or(budget::RESERVED_OUTPUT);
        let first = budget::price(provider, model, input, output);
        // The second call sees the answer, and a sentence about what to explain.
        let second = match is_explained {
            true => budget::price(provider, model, input + output + EXPLAIN_TOKENS, output),
            false => Some(0.0),
        };
        let cost = first.zip(second).map(|(first, second)| first + second);
        Ok(LargestRun { calls: 1 + u64::from(is_explained), cost })
    }
}

/// The tokens of the request for a rationale, in addition to those of the first one, at most.
const EXPLAIN_TOKENS: u64 = 1_024;

/// The maximum characters of base64 to show per media item.
const SHOWN: usize = 64;

fn shorten(part: &mut Part) {
    let data = match part {
        Part::Image(image) if image.url.starts_with("data:") => &mut image.url,
        Part::Audio(audio) => &mut audio.data,
        Part::File(file) => &mut file.data,
        _ => return,
    };
    let length = data.len();
    if let Some((end, _)) = data.char_indices().nth(SHOWN) {
        data.truncate(end);
        data.push_str(&format!("… ({length} characters)"));
    }
}

/// Written by hand: its request is written by hand.
impl ToJson for Rendered {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", &self.provider);
            w.field("dialect", self.dialect.as_str());
            w.field("form", self.form.name);
            w.field("form_reason", &self.form_reason);
            w.field("lost", &self.lost);
            w.field("warnings", &self.warnings);
            w.field("messages", &self.messages);
            w.optional("request", &self.request);
        });
    }
}

// The part of a request that a provider can cache.

/// The beginning of a request that is the same for every input of a module, so that a provider can cache it.
#[derive(Debug, Clone)]
pub struct StablePrefix {
    /// The model that would be called.
    pub model: String,
    /// The schema of the answer, if the provider receives one. Providers place it before the messages.
    pub schema: Option<Value>,
    /// The system message, up to the first text that depends on the input.
    pub text: String,
    /// Whether this is the complete system message. Otherwise the request has no mark.
    pub is_complete: bool,
    /// The member of the request that marks the prefix; none if the provider finds equal beginnings itself, or if nothing is
    /// known about its cache.
    pub mark: Option<&'static str>,
    /// The length of the schema and the text in bytes.
    pub bytes: u64,
    /// An estimate of the length in tokens. Only the provider can count them.
    pub estimated_tokens: u64,
    /// The minimum length that the provider caches, in tokens, if it is known.
    pub min_tokens: Option<u64>,
}

/// The bytes of a token in English text and JSON, on average.
const BYTES_PER_TOKEN: u64 = 4;

impl StablePrefix {
    pub(crate) fn new(module: &Module, provider: &dyn Provider, request: &ModelRequest) -> Self {
        let mut messages = request.messages.messages().iter();
        let system = messages.find(|message| message.role == Role::System).map(Message::text);
        let is_complete = request.cache_key.is_some();
        let text = match system {
            Some(_) if !is_complete => prompt::stable_text(&module.prompt),
            system => system.unwrap_or_default(),
        };
        let cache = provider.info().prompt_cache(&request.model);
        let schema = request.output.as_ref().and_then(|output| output.schema.clone());
        let schema_bytes = schema.as_ref().map_or(0, |schema| schema.to_json().len());
        let bytes = u64::try_from(schema_bytes + text.len()).unwrap_or(u64::MAX);
        Self {
            model: provider.info().model_or_default(&request.model).to_owned(),
            schema,
            bytes,
            estimated_tokens: bytes.div_ceil(BYTES_PER_TOKEN),
            text,
            is_complete,
            mark: cache.filter(|_| is_complete).and_then(|cache| cache.mark.as_str()),
            min_tokens: cache.and_then(|cache| cache.min_tokens),
        }
    }
}

impl ToJson for StablePrefix {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("model", &self.model);
            w.field("mark", &self.mark);
            w.field("bytes", &self.bytes);
            w.field("estimated_tokens", &self.estimated_tokens);
            w.field("minimum_tokens", &self.min_tokens);
            w.field("reaches_minimum", &self.min_tokens.map(|min| self.estimated_tokens >= min));
            w.field("is_complete_system_message", &self.is_complete);
            w.field("schema", &self.schema);
            w.field("text", &self.text);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_shortened_and_text_is_not() {
        let long = "QUJD".repeat(100);
        for media_type in ["image/png", "audio/wav", "application/pdf"] {
            let mut part = Part::media(media_type, long.clone());
            shorten(&mut part);
            let shown = part.to_json();
            assert!(
                shown.len() < 200 && shown.contains("QUJDQUJD") && shown.contains(" characters)"),
                "{shown}"
            );
            let mut small = Part::media(media_type, "QUJD".to_owned());
            let before = small.clone();
            shorten(&mut small);
            assert_eq!(small, before);
        }
        let mut text = Part::text(&long);
        shorten(&mut text);
        assert_eq!(text.as_text(), Some(long.as_str()));
    }
}
