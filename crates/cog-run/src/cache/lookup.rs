use std::sync::Arc;

use cog_module::Module;
use cog_provider::{ModelRequest, Provider};
use cog_spec::{CacheHit, Warning, WarningCode};

use super::{AnswerCache, CacheSink, Stored, key::cache_key, replay::Replay};
use crate::{RunOptions, clock, input::CheckedInput};

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
    (provider, request): (&dyn Provider, &ModelRequest),
    options: &RunOptions,
) -> Cached {
    let Some(cache) = cache else { return Cached::default() };
    let Some(key) = cache_key(module, input, (provider, request), options) else { return Cached::default() };
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
