//! The part of a request that a provider can cache.

use cog_harmony::{Message, Role};
use cog_json::{ToJson, Value, Writer};
use cog_module::Module;
use cog_provider::{ModelRequest, Provider};

use crate::prompt;

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
        Self {
            model: provider.info().model_or_default(&request.model).to_owned(),
            schema: request.output.as_ref().and_then(|output| output.schema.clone()),
            text,
            is_complete,
            mark: cache.filter(|_| is_complete).and_then(|cache| cache.mark.as_str()),
            min_tokens: cache.and_then(|cache| cache.min_tokens),
        }
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        let schema = self.schema.as_ref().map_or(0, |schema| schema.to_json().len());
        u64::try_from(schema + self.text.len()).unwrap_or(u64::MAX)
    }

    /// Returns an estimate of the length in tokens. Only the provider can count them.
    pub fn estimated_tokens(&self) -> u64 {
        self.bytes().div_ceil(BYTES_PER_TOKEN)
    }

    /// Returns whether the estimate reaches the provider's minimum, if that is known.
    pub fn reaches_minimum(&self) -> Option<bool> {
        self.min_tokens.map(|min| self.estimated_tokens() >= min)
    }
}

impl ToJson for StablePrefix {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("model", &self.model);
            w.field("mark", &self.mark);
            w.field("bytes", &self.bytes());
            w.field("estimated_tokens", &self.estimated_tokens());
            w.field("minimum_tokens", &self.min_tokens);
            w.field("reaches_minimum", &self.reaches_minimum());
            w.field("is_complete_system_message", &self.is_complete);
            w.field("schema", &self.schema);
            w.field("text", &self.text);
        });
    }
}
