use std::{sync::Arc, time::SystemTime};

use cog_json::ToJson as _;
use cog_module::Module;
use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderInfo};
use cog_spec::{CacheHit, FinishReason, Modality, ModelEvent, Usage, Warning, WarningCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{AnswerCache, Stored};
use crate::{RunOptions, clock, input::CheckedInput, provider};

/// What the cache has for a run. All fields are empty if the answer must not be cached.
#[derive(Default)]
pub(crate) struct Cached {
    /// The provider of the stored reply.
    pub(crate) replay: Option<Arc<dyn Provider>>,
    /// What `meta` says about the stored reply.
    pub(crate) hit: Option<CacheHit>,
    /// Stores the reply of the model if the cache has none.
    pub(crate) sink: Option<CacheSink>,
    /// A warning that the stored reply is damaged, or that the cache cannot be read.
    pub(crate) warning: Option<Warning>,
}

/// Searches the cache for the answer to a request.
pub(crate) fn lookup(
    cache: Option<&AnswerCache>,
    module: &Module,
    input: &CheckedInput,
    provider: &dyn Provider,
    request: &ModelRequest,
    options: &RunOptions,
) -> Cached {
    let Some(cache) = cache else { return Cached::default() };
    let Some(key) = cache_key(module, input, provider, request, options) else { return Cached::default() };
    let stored = cache.read(&key, clock::now());
    let sink = || Some(CacheSink::new(cache.clone(), key));
    match stored {
        Stored::Reply(reply, age) => {
            let hit = CacheHit { hit: true, age_s: age.as_secs() };
            let replay: Arc<dyn Provider> = Arc::new(Replay::new(provider.info(), reply));
            Cached { replay: Some(replay), hit: Some(hit), ..Cached::default() }
        }
        Stored::Missing => Cached { sink: sink(), ..Cached::default() },
        Stored::Damaged => Cached { sink: sink(), warning: Some(damaged()), ..Cached::default() },
        Stored::Unusable(reason) => {
            let message = format!("The cache cannot be read, so the model was called: {reason}.");
            let warning = Some(Warning::new(WarningCode::CacheUnusable, message));
            Cached { warning, ..Cached::default() }
        }
    }
}

fn damaged() -> Warning {
    let message = "The stored answer in the cache is damaged, so the model was called.";
    Warning::new(WarningCode::CacheDamaged, message)
}

/// The form of keys. Another version of this program may check answers in another way.
const VERSION: &str = concat!("cog-cache-1 ", env!("CARGO_PKG_VERSION"));

/// Returns the key of the answer to a request: the hash of the module, the input with its context, the messages, the provider
/// with its URL, the model, the settings, and who runs the module. None if the answer must not be cached.
pub(super) fn cache_key(
    module: &Module,
    input: &CheckedInput,
    provider: &dyn Provider,
    request: &ModelRequest,
    options: &RunOptions,
) -> Option<String> {
    if !is_cacheable(module, input, request) {
        return None;
    }
    let info = provider.info();
    let (url, body) = match provider.render(request).ok()? {
        Some(wire) => (wire.url, String::from_utf8_lossy(&wire.body).into_owned()),
        None => Default::default(),
    };
    let schema = request.output.as_ref().and_then(|output| output.schema.as_ref());
    Some(hash(&[
        VERSION.to_owned(),
        info.name.clone().into_owned(),
        info.model_or_default(&request.model).to_owned(),
        url,
        body,
        format!("{:?}", module.manifest),
        module.schema.to_string(),
        input.node().to_json(),
        request.messages.to_json(),
        schema.map(ToString::to_string).unwrap_or_default(),
        format!("{:?}", request.generation),
        settings(options),
    ]))
}

/// Returns the options that decide about an answer and are not part of the request.
fn settings(options: &RunOptions) -> String {
    let rules = (options.strict, options.risk, options.on_violation, options.max_attempts);
    format!("{:?}", (rules, &options.handoff_to, options.caller, &options.owner))
}

/// Whether an answer depends only on what a key contains, and may be used again.
fn is_cacheable(module: &Module, input: &CheckedInput, request: &ModelRequest) -> bool {
    let manifest = &module.manifest;
    let makes_media = manifest.modalities.output.iter().any(|kind| *kind != Modality::Text);
    manifest.may_be_cached() && !makes_media && !input.has_files() && request.tools.is_none()
}

/// Returns the SHA-256 of texts and their lengths in hexadecimal.
pub(super) fn hash<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The provider of a stored reply. Its events take the same path as those of a model.
pub(crate) struct Replay {
    info: ProviderInfo,
    reply: CachedReply,
}

impl Replay {
    /// Returns the provider of a reply, which the provider with this description had sent.
    pub(crate) fn new(info: &ProviderInfo, reply: CachedReply) -> Self {
        Self { info: info.clone(), reply }
    }
}

impl Provider for Replay {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let started = ModelEvent::Started { model: self.reply.model.clone(), id: None, fingerprint: None };
        let texts = self.reply.texts.iter().cloned().map(ModelEvent::Text);
        // The model is not called, so the answer costs nothing.
        let end = [ModelEvent::Usage(Usage::default()), ModelEvent::Finished(FinishReason::Stop)];
        let events = std::iter::once(started).chain(texts).chain(end);
        Box::pin(std::future::ready(Ok(provider::reply(events.collect::<Vec<_>>()))))
    }
}

/// A stored reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CachedReply {
    /// The hash of the key and the other fields: a file that was damaged, edited or renamed is not used.
    checksum: String,
    /// The time in milliseconds since 1970.
    pub(super) stored_ms: u64,
    /// The model that replied, as the provider named it.
    pub(super) model: Option<String>,
    /// The parts of the reply in their order.
    pub(super) texts: Vec<String>,
}

impl CachedReply {
    pub(super) fn new(key: &str, stored_ms: u64, model: Option<String>, texts: Vec<String>) -> Self {
        let mut reply = Self { checksum: String::new(), stored_ms, model, texts };
        reply.checksum = reply.hash(key);
        reply
    }

    /// Whether the reply is as it was stored with this key.
    pub(super) fn is_intact(&self, key: &str) -> bool {
        self.checksum == self.hash(key)
    }

    fn hash(&self, key: &str) -> String {
        let model = format!("{:?}", self.model);
        let about = [key, &self.stored_ms.to_string(), &model].map(str::to_owned);
        hash(about.iter().chain(&self.texts))
    }
}

/// Records the reply of a model, and stores it if its answer is successful.
pub(crate) struct CacheSink {
    cache: AnswerCache,
    key: String,
    model: Option<String>,
    texts: Vec<String>,
    is_complete: bool,
}

impl CacheSink {
    pub(crate) fn new(cache: AnswerCache, key: String) -> Self {
        Self { cache, key, model: None, texts: Vec::new(), is_complete: false }
    }

    /// Forgets the reply so far, as the model is called again.
    pub(crate) fn restart(&mut self) {
        self.texts.clear();
        self.is_complete = false;
    }

    /// Records an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Started { model, .. } => self.model.clone_from(model),
            ModelEvent::Text(text) => self.texts.push(text.clone()),
            ModelEvent::Finished(reason) => self.is_complete = *reason == FinishReason::Stop,
            _ => {}
        }
    }

    /// Stores the reply, if it is complete. Returns a warning if it cannot be stored: the answer does not depend on it.
    pub(crate) fn store(self, now: SystemTime) -> Option<Warning> {
        if !self.is_complete {
            return None;
        }
        let reply = CachedReply::new(&self.key, clock::millis(now), self.model, self.texts);
        let error = self.cache.write(&self.key, &reply).err()?;
        let message = format!("The answer was not stored in the cache: {error}.");
        Some(Warning::new(WarningCode::CacheUnusable, message))
    }
}
