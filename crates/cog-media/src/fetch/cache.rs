//! Caches fetched responses, so that a retried run does not fetch again (SPEC 4.2.1).
//!
//! Bodies are stored like [`Stored`]: large ones on disk in unnamed files that vanish with the process. Only cacheable
//! responses are stored, for as long as the server allows or a validator confirms them.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{
    Url,
    header::{
        AGE, CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    },
    header::{LAST_MODIFIED, VARY},
};

use super::SourceContent;

/// The maximum number of responses, whatever their size: together they use less than 64 MiB of memory.
const MAX_ENTRIES: usize = 64;

/// The maximum time that a response is used without revalidation.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// Responses by URL, least recently used first.
pub(super) struct Cache {
    bytes: u64,
    entries: Mutex<VecDeque<(Url, CachedResponse)>>,
}

/// A cached response.
#[derive(Debug, Clone)]
pub(super) struct CachedResponse {
    pub(super) fetched: SourceContent,
    until: Instant,
    condition: Option<(HeaderName, HeaderValue)>,
}

impl CachedResponse {
    /// Returns the response if it needs no revalidation.
    pub(super) fn fresh(&self) -> Option<SourceContent> {
        (Instant::now() < self.until).then(|| self.fetched.clone())
    }

    /// Returns the header for a conditional request.
    pub(super) fn condition(&self) -> Option<(HeaderName, HeaderValue)> {
        self.condition.clone()
    }
}

impl Cache {
    /// Creates a cache of at most this many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: bytes as u64, entries: Mutex::default() }
    }

    /// Returns the cached response of a URL.
    pub(super) fn get(&self, url: &Url) -> Option<CachedResponse> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().position(|(own, _)| own == url)?;
        let entry = entries.remove(at)?;
        let known = entry.1.clone();
        entries.push_back(entry);
        Some(known)
    }

    /// Stores a response if its headers allow it and it fits.
    pub(super) fn store(&self, url: &Url, headers: &HeaderMap, fetched: &SourceContent) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(own, _)| own != url);
        let Some((lifetime, condition)) = freshness(headers) else { return };
        if fetched.stored.len() > self.bytes {
            return;
        }
        let mut fetched = fetched.clone();
        // The same content under another URL is stored once.
        if let Some((_, same)) = entries.iter().find(|(_, known)| is_same(&known.fetched, &fetched)) {
            fetched.stored = same.fetched.stored.clone();
        }
        entries.push_back((
            url.clone(),
            CachedResponse { fetched, until: Instant::now() + lifetime, condition },
        ));
        while entries.len() > MAX_ENTRIES
            || entries.iter().map(|(_, known)| known.fetched.stored.len()).sum::<u64>() > self.bytes
        {
            entries.pop_front();
        }
    }
}

fn is_same(one: &SourceContent, other: &SourceContent) -> bool {
    one.stored.sha256() == other.stored.sha256()
}

/// Returns how long a response is fresh and its validator; none if it must not be stored or has neither.
fn freshness(headers: &HeaderMap) -> Option<(Duration, Option<(HeaderName, HeaderValue)>)> {
    // All requests send the same headers, so only `*` means that the next response may differ.
    let varies = headers.get_all(VARY).iter().any(|value| value == "*");
    let rules = directives(headers);
    if varies || rules.iter().any(|rule| rule == "no-store") {
        return None;
    }
    let max_age = match rules.iter().any(|rule| rule == "no-cache") {
        true => None,
        false => rules.iter().find_map(|rule| seconds(rule.strip_prefix("max-age=")?)),
    };
    // A cache on the way has used up a part of the lifetime.
    let age = headers.get(AGE).and_then(|value| seconds(value.to_str().ok()?)).unwrap_or_default();
    let lifetime = max_age.unwrap_or_default().saturating_sub(age).min(MAX_AGE);
    let etag = headers.get(ETAG).map(|value| (IF_NONE_MATCH, value.clone()));
    let condition =
        etag.or_else(|| headers.get(LAST_MODIFIED).map(|value| (IF_MODIFIED_SINCE, value.clone())));
    (!lifetime.is_zero() || condition.is_some()).then_some((lifetime, condition))
}

fn seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(Duration::from_secs)
}

fn directives(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|rule| rule.trim().to_ascii_lowercase()).collect()
}
