//! The cache of answers: the same request to the same model is answered from disk (docs/cache.md).

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_provider::{ModelFuture, ModelRequest, Provider, ProviderInfo};
use cog_spec::{CacheHit, FinishReason, Modality, ModelEvent, TokenProbability, Usage, Warning, WarningCode};
use cog_store::{Durability, Key, KeyedStore, Layout, Limits, Lookup, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{RunOptions, clock, input::CheckedInput, provider};

/// A cache of answers in a directory. Clones share it.
///
/// Only this user may read its files. Failures, runs with tools or media, and answers of tier exec are not stored, unless the
/// manifest of the module allows the last with `cache: allow`.
#[derive(Debug, Clone)]
pub struct AnswerCache {
    answers: Arc<KeyedStore>,
    max_age: Duration,
    /// The number of the run whose answer is stored or searched for, among several runs of one request.
    sample: u32,
}

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of answers.
    pub answers: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// The age of the oldest one; none if there is none.
    pub oldest: Option<Duration>,
}

/// What a cache has for a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Stored {
    /// A reply and its age.
    Reply(CachedReply, Duration),
    /// No reply, or one that has expired.
    Missing,
    /// A file that is not as it was stored. It is removed.
    Damaged,
    /// The directory cannot be used, for this reason.
    Unusable(String),
}

impl AnswerCache {
    /// The maximum number of answers.
    const MAX_ANSWERS: usize = 10_000;

    /// The maximum size of an answer in bytes.
    const MAX_ANSWER_BYTES: u64 = 16 << 20;

    /// Creates a cache in a directory, which is created at the first use. Answers expire after `max_age`, and the oldest ones are
    /// removed over `max_bytes`.
    pub fn in_directory(directory: impl Into<PathBuf>, max_age: Duration, max_bytes: u64) -> Self {
        let limits =
            Limits { entries: Self::MAX_ANSWERS, bytes: max_bytes, entry_bytes: Self::MAX_ANSWER_BYTES };
        // Without a sync: after a power cut, an answer that is not whole is found to be damaged, and the model is called again.
        let answers = KeyedStore::in_directory(directory, Layout::Flat, Durability::Kill, limits);
        Self { answers: Arc::new(answers), max_age, sample: 0 }
    }

    /// Returns the cache for one of several runs of the same request, each of which has an answer of its own.
    pub(crate) fn for_sample(&self, sample: u32) -> Self {
        Self { sample, ..self.clone() }
    }

    /// Returns the size of the cache. One whose directory does not exist is empty.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn stats(&self) -> io::Result<CacheStats> {
        self.stats_at(clock::now())
    }

    fn stats_at(&self, now: SystemTime) -> io::Result<CacheStats> {
        let size = self.answers.size()?;
        Ok(CacheStats {
            answers: size.entries,
            bytes: size.bytes,
            oldest: size.oldest.map(|oldest| now.duration_since(oldest).unwrap_or_default()),
        })
    }

    /// Removes every answer. Returns how many there were.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn clear(&self) -> io::Result<usize> {
        self.answers.clear()
    }

    /// Returns a stored reply and its age, unless it has expired or is damaged.
    pub(crate) fn read(&self, key: &CacheKey, now: SystemTime) -> Stored {
        let bytes = match self.answers.get(&key.stored()) {
            Ok(Lookup::Value(bytes)) => bytes,
            Ok(Lookup::Missing | Lookup::Claimed) => return Stored::Missing,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return self.discard(key, &error.to_string());
            }
            Err(error) => return Stored::Unusable(error.to_string()),
        };
        let reply =
            Value::parse_bytes(&bytes).ok().and_then(|value| CachedReply::deserialize(value.node()).ok());
        let Some(reply) = reply.filter(|reply| reply.is_intact(&key.hash)) else {
            return self.discard(key, "it is not as it was stored");
        };
        // A reply from the future was stored before the clock was set back: its age is unknown.
        match clock::millis(now).checked_sub(reply.stored_ms).map(Duration::from_millis) {
            Some(age) if age <= self.max_age => Stored::Reply(reply, age),
            _ => {
                self.answers.remove(&key.stored());
                Stored::Missing
            }
        }
    }

    fn discard(&self, key: &CacheKey, reason: &str) -> Stored {
        tracing::warn!(key = key.hash, reason, "a stored answer is damaged");
        self.answers.remove(&key.stored());
        Stored::Damaged
    }

    /// Stores a reply.
    ///
    /// # Errors
    /// It is too large, or it cannot be written.
    pub(crate) fn write(&self, key: &CacheKey, reply: &CachedReply) -> Result<(), StoreError> {
        self.answers.insert(&key.stored(), reply.to_json().as_bytes(), None, clock::now())
    }
}

/// The key of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheKey {
    /// The client that pays for the answer. Over a limit, the client that has the most loses the oldest answer, so that none
    /// removes what another has paid for.
    owner: Option<String>,
    /// The hash of the request.
    hash: String,
}

impl CacheKey {
    fn stored(&self) -> Key {
        Key::new(self.owner.as_deref(), &*self.hash)
    }
}

// What the cache has for a run, and what it records of one.

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
    let Some(mut key) = cache_key(module, input, provider, request, options) else {
        return Cached::default();
    };
    if cache.sample > 0 {
        key.hash = hash(&[key.hash, cache.sample.to_string()]);
    }
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
const VERSION: &str = concat!("cog-cache-2 ", env!("CARGO_PKG_VERSION"));

/// Returns the key of the answer to a request: the hash of the module, the input with its context, the messages, the provider
/// with its URL, the model, the settings, and who runs the module. None if the answer must not be cached.
fn cache_key(
    module: &Module,
    input: &CheckedInput,
    provider: &dyn Provider,
    request: &ModelRequest,
    options: &RunOptions,
) -> Option<CacheKey> {
    if !is_cacheable(module, input, request) {
        return None;
    }
    let info = provider.info();
    let (url, body) = match provider.render(request).ok()? {
        Some(wire) => (wire.url, String::from_utf8_lossy(&wire.body).into_owned()),
        None => Default::default(),
    };
    let schema = request.output.as_ref().and_then(|output| output.schema.as_ref());
    let hash = hash(&[
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
    ]);
    Some(CacheKey { owner: options.owner.clone(), hash })
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
fn hash<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The provider of a stored reply. Its events take the same path as a model's.
pub(crate) struct Replay {
    info: ProviderInfo,
    reply: CachedReply,
    /// The number of calls so far: each has its own reply.
    calls: AtomicUsize,
}

impl Replay {
    /// Returns the provider of a reply, which the provider with this description had sent.
    pub(crate) fn new(info: &ProviderInfo, reply: CachedReply) -> Self {
        Self { info: info.clone(), reply, calls: AtomicUsize::new(0) }
    }
}

impl Provider for Replay {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let started = ModelEvent::Started { model: self.reply.model.clone(), id: None, fingerprint: None };
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let texts = self.reply.replies.get(call).or(self.reply.replies.last());
        let texts = texts.into_iter().flatten().cloned().map(ModelEvent::Text);
        // The model is not called, so the answer costs nothing.
        let end = [ModelEvent::Usage(Usage::default()), ModelEvent::Finished(FinishReason::Stop)];
        let tokens = (call == 0 && !self.reply.tokens.is_empty())
            .then(|| ModelEvent::Tokens(self.reply.tokens.clone()));
        let events = std::iter::once(started).chain(texts).chain(tokens).chain(end);
        Box::pin(std::future::ready(Ok(provider::reply(events.collect::<Vec<_>>()))))
    }
}

/// A stored reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CachedReply {
    /// The hash of the key and the other fields: a file that was damaged, edited or renamed is not used.
    checksum: String,
    /// The time in milliseconds since 1970.
    stored_ms: u64,
    /// The model that replied, as the provider named it.
    model: Option<String>,
    /// The parts of the answer in their order, then those of the rationale if a second call gave it.
    replies: Vec<Vec<String>>,
    /// The tokens of the answer, if the model's engine reported their probabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<TokenProbability>,
}

impl CachedReply {
    fn new(
        key: &str,
        stored_ms: u64,
        model: Option<String>,
        replies: Vec<Vec<String>>,
        tokens: Vec<TokenProbability>,
    ) -> Self {
        let mut reply = Self { checksum: String::new(), stored_ms, model, replies, tokens };
        reply.checksum = reply.hash(key);
        reply
    }

    /// Whether the reply is as it was stored with this key.
    fn is_intact(&self, key: &str) -> bool {
        self.checksum == self.hash(key)
    }

    fn hash(&self, key: &str) -> String {
        let model = format!("{:?}", self.model);
        let mut texts = vec![key.to_owned(), self.stored_ms.to_string(), model];
        for reply in &self.replies {
            texts.push(reply.len().to_string());
            texts.extend_from_slice(reply);
        }
        texts.extend(self.tokens.iter().map(|token| format!("{token:?}")));
        hash(&texts)
    }
}

/// Records the replies of a model to one request, and stores them if the answer is successful.
pub(crate) struct CacheSink {
    cache: AnswerCache,
    key: CacheKey,
    model: Option<String>,
    replies: Vec<Vec<String>>,
    tokens: Vec<TokenProbability>,
    is_complete: bool,
}

impl CacheSink {
    pub(crate) fn new(cache: AnswerCache, key: CacheKey) -> Self {
        Self { cache, key, model: None, replies: Vec::new(), tokens: Vec::new(), is_complete: false }
    }

    /// Forgets the replies so far, as the model is asked for its answer again.
    pub(crate) fn restart(&mut self) {
        self.replies.clear();
        self.tokens.clear();
        self.add_reply();
    }

    /// Begins the next reply.
    pub(crate) fn add_reply(&mut self) {
        self.replies.push(Vec::new());
        self.is_complete = false;
    }

    /// Records an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Started { model, .. } => self.model.clone_from(model),
            ModelEvent::Text(text) => {
                self.replies.last_mut().into_iter().for_each(|reply| reply.push(text.clone()));
            }
            ModelEvent::Tokens(tokens) => self.tokens.extend_from_slice(tokens),
            ModelEvent::Finished(reason) => self.is_complete = *reason == FinishReason::Stop,
            _ => {}
        }
    }

    /// Stores the replies, if the last one is complete. Returns a warning if it cannot be stored: the answer does not depend on it.
    pub(crate) fn store(self, now: SystemTime) -> Option<Warning> {
        if !self.is_complete {
            return None;
        }
        let reply =
            CachedReply::new(&self.key.hash, clock::millis(now), self.model, self.replies, self.tokens);
        let error = self.cache.write(&self.key, &reply).err()?;
        let message = format!("The answer was not stored in the cache: {error}.");
        Some(Warning::new(WarningCode::CacheUnusable, message))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests damage files")]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn key(owner: Option<&str>) -> CacheKey {
        CacheKey { owner: owner.map(str::to_owned), hash: KEY.to_owned() }
    }

    fn reply(at: u64) -> CachedReply {
        CachedReply::new(
            KEY,
            at * 1_000,
            Some("m".to_owned()),
            vec![vec!["a".to_owned(), "é".to_owned()]],
            Vec::new(),
        )
    }

    fn time(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn replies_expire() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_directory(directory.path(), Duration::from_secs(10), 1_000);
        assert_eq!(cache.read(&key(None), time(0)), Stored::Missing);
        cache.write(&key(None), &reply(5)).unwrap();
        assert_eq!(cache.read(&key(None), time(15)), Stored::Reply(reply(5), Duration::from_secs(10)));
        assert_eq!(cache.read(&key(None), time(16)), Stored::Missing);
        assert_eq!(cache.read(&key(None), time(15)), Stored::Missing, "an expired reply was removed");
        cache.write(&key(None), &reply(5)).unwrap();
        assert_eq!(cache.read(&key(None), time(4)), Stored::Missing, "a reply from the future has no age");
    }

    #[test]
    fn size_is_counted_and_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_directory(
            directory.path().join("cache"),
            Duration::from_secs(24 * 3600),
            256 << 20,
        );
        assert_eq!(cache.stats_at(time(0)).unwrap().answers, 0);
        cache.write(&key(None), &reply(5)).unwrap();
        let stats = cache.stats_at(time(0)).unwrap();
        assert_eq!((stats.answers, stats.bytes), (1, reply(5).to_json().len() as u64));
        assert_eq!(cache.clear().unwrap(), 1);
        assert_eq!(cache.stats_at(time(0)).unwrap().oldest, None);
    }

    #[test]
    fn client_that_fills_the_cache_removes_only_its_own_answers() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = reply(5).to_json().len() as u64;
        let cache = AnswerCache::in_directory(directory.path(), Duration::from_secs(100), 4 * bytes);
        let of = |owner: &str, number: u64| CacheKey {
            owner: Some(owner.to_owned()),
            hash: format!("{number:064x}"),
        };
        let operators = key(None);
        let small = CachedReply::new(KEY, 5_000, None, Vec::new(), Vec::new());
        cache.write(&operators, &small).unwrap();
        cache.write(&of("bob", 0), &small).unwrap();
        for number in 0..20 {
            cache.write(&of("alice", number), &reply(5)).unwrap();
        }
        assert!(
            cache.answers.contains(&operators.stored()) && cache.answers.contains(&of("bob", 0).stored())
        );
        let left = (0..20).filter(|number| cache.answers.contains(&of("alice", *number).stored()));
        assert_eq!(left.collect::<Vec<_>>(), [17, 18, 19]);
    }

    #[test]
    fn file_is_no_cache() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let cache = AnswerCache::in_directory(&path, Duration::from_secs(24 * 3600), 256 << 20);
        assert!(cache.stats().is_err() && cache.clear().is_err());
        assert!(cache.write(&key(None), &reply(5)).is_err());
    }

    #[test]
    fn damaged_reply_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_directory(directory.path(), Duration::from_secs(24 * 3600), 256 << 20);
        let path = directory.path().join(format!("{KEY}.json"));
        let stored = reply(1).to_json();
        let truncated = (0..stored.len()).filter_map(|end| Some(stored.get(..end)?.as_bytes().to_vec()));
        let edited =
            ["[]", "null", r#"{"stored_ms": 1}"#, r#"{"texts": [7]}"#].map(|text| text.as_bytes().to_vec());
        let changed = [("\"a\"", "\"b\""), ("1000", "1001"), ("\"m\"", "null")]
            .map(|(old, new)| stored.replacen(old, new, 1).into_bytes());
        let renamed =
            CachedReply::new("another key", 1_000, None, Vec::new(), Vec::new()).to_json().into_bytes();
        for bytes in truncated.chain(edited).chain(changed).chain([renamed, vec![0xff, 0xfe, 0]]) {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(
                cache.read(&key(None), time(2)),
                Stored::Damaged,
                "{}",
                String::from_utf8_lossy(&bytes)
            );
            assert!(!path.exists());
        }
        std::fs::write(&path, &stored).unwrap();
        assert_eq!(cache.read(&key(None), time(2)), Stored::Reply(reply(1), Duration::from_secs(1)));
    }
}
