//! Fetches URLs that come from an input or a model; the only code that does.
//!
//! The guard judges each hop and every IP address that its host name resolves to. The client connects to the resolved
//! address, so there is no second lookup with another answer.

mod client;

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{
    Response, StatusCode, Url,
    header::{
        self, AGE, CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        LAST_MODIFIED, VARY,
    },
};

use self::client::Clients;
use crate::{MediaError, Refusal, Store, Stored, Target, UrlGuard};

pub use self::client::{Proxy, ProxyError, ResolveFuture, Resolver, SystemResolver};

/// Limits of one fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// The maximum time of a fetch, with lookups and redirects.
    pub timeout: Duration,
    /// The maximum time to connect.
    pub connect: Duration,
    /// The maximum number of redirects.
    pub redirects: u32,
    /// The maximum bytes of the cache; 0 for no cache.
    pub cache: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect: Duration::from_secs(10),
            redirects: 5,
            cache: 256 << 20,
        }
    }
}

/// A response or an upload.
#[derive(Debug, Clone)]
pub struct SourceContent {
    /// The bytes.
    pub stored: Stored,
    /// The type that the server or the client of an upload declared: a hint (ruling R61).
    pub declared: Option<String>,
}

/// Fetches media files. Requires a Tokio runtime with I/O and time.
///
/// Redirects are followed here and judged like the first URL. Proxies of the environment are ignored, no cookies are
/// stored, and nothing about the caller is sent. Compressed content is refused: media files gain nothing from it, and
/// it allows decompression bombs.
pub struct Fetcher {
    guard: UrlGuard,
    limits: FetchLimits,
    clients: Clients,
    cache: Cache,
}

impl Fetcher {
    /// Creates a fetcher that uses the system's resolver.
    pub fn new(guard: UrlGuard, limits: FetchLimits) -> Self {
        Self::with_resolver(guard, limits, SystemResolver)
    }

    /// Creates a fetcher with a custom resolver.
    pub fn with_resolver(guard: UrlGuard, limits: FetchLimits, resolver: impl Resolver + 'static) -> Self {
        let clients = Clients::new(guard.clone(), limits.connect, resolver);
        Self { guard, cache: Cache::with_capacity(limits.cache), limits, clients }
    }

    /// Sets a proxy. No other proxy is used.
    #[must_use]
    pub fn through(mut self, proxy: Proxy) -> Self {
        self.clients.proxy = Some(proxy);
        self
    }

    /// Returns the guard that judges its URLs.
    pub fn guard(&self) -> &UrlGuard {
        &self.guard
    }

    /// Fetches a URL into a store, whose limit is enforced while bytes arrive.
    ///
    /// # Errors
    /// [`MediaError::Refused`] and [`MediaError::Fetch`] (E1012, ruling R62), and as [`Store::push`].
    pub async fn fetch(&self, url: &str, store: Store) -> Result<SourceContent, MediaError> {
        let first = self.guard.judge(url).map_err(|refusal| MediaError::Refused { refusal, hop: 0 })?;
        let shown = first.to_string();
        match tokio::time::timeout(self.limits.timeout, self.follow(first, store)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let what = format!("timed out after {} s", self.limits.timeout.as_secs_f32());
                Err(MediaError::Fetch { url: shown, what, status: None })
            }
        }
    }

    async fn follow(&self, first: Target, mut store: Store) -> Result<SourceContent, MediaError> {
        let mut target = first;
        for hop in 0..=self.limits.redirects {
            let known = self.cache.get(target.url());
            if let Some(fetched) = known.as_ref().and_then(CachedResponse::fresh) {
                store.expect(fetched.stored.len())?;
                return Ok(fetched);
            }
            let reply = self.request(&target, known.as_ref(), hop).await?;
            match (redirect_target(&target, &reply), known) {
                // The client follows no redirect by itself: each hop is judged like the first URL.
                (Some(location), _) => {
                    let judged = location.and_then(|location| self.guard.judge(&location));
                    target = judged.map_err(|refusal| MediaError::Refused { refusal, hop: hop + 1 })?;
                }
                (None, Some(known)) if reply.status() == StatusCode::NOT_MODIFIED => {
                    store.expect(known.fetched.stored.len())?;
                    return Ok(known.fetched);
                }
                (None, _) => return self.read_body(&target, reply, store).await,
            }
        }
        Err(failed(&target, format!("more than {} redirects", self.limits.redirects), None))
    }

    async fn request(
        &self,
        target: &Target,
        known: Option<&CachedResponse>,
        hop: u32,
    ) -> Result<Response, MediaError> {
        let client = self.clients.client_for(target).map_err(|what| failed(target, what, None))?;
        // With a proxy, the client does not resolve the name, so its resolver cannot refuse it.
        self.clients.check(target).await.map_err(|error| refused_or_failed(target, &*error, hop))?;
        let mut request = client.get(target.url().clone()).header(header::ACCEPT_ENCODING, "identity");
        if let Some((name, value)) = known.and_then(CachedResponse::condition) {
            request = request.header(name, value);
        }
        let again = request.try_clone();
        let mut sent = request.send().await;
        // A server may close a kept connection at any time, and a GET may be repeated (RFC 9110 section 9.2.2).
        if sent.as_ref().is_err_and(client::is_interrupted)
            && let Some(again) = again
        {
            sent = again.send().await;
        }
        // The client's error message contains the URL with its query.
        sent.map_err(|error| refused_or_failed(target, &error.without_url(), hop))
    }

    /// Stores the body of a response while it arrives.
    async fn read_body(
        &self,
        target: &Target,
        mut reply: Response,
        mut store: Store,
    ) -> Result<SourceContent, MediaError> {
        let status = reply.status();
        if status != StatusCode::OK {
            return Err(failed(target, format!("the server returned {status}"), Some(status.as_u16())));
        }
        let encoding = reply.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(failed(
                target,
                "the content is compressed, but no compression was requested".to_owned(),
                None,
            ));
        }
        if let Some(length) = reply.content_length() {
            store.expect(length)?;
        }
        // The declared length may be wrong or missing, so the limit is checked for each chunk too.
        loop {
            match reply.chunk().await {
                Ok(Some(bytes)) => store.push(&bytes)?,
                Ok(None) => break,
                Err(error) => {
                    let failure = || failed(target, client::root_cause(&error.without_url()), None);
                    return Err(store.refused_by_length().unwrap_or_else(failure));
                }
            }
        }
        let declared = reply.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let declared =
            declared.map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let fetched = SourceContent { stored: store.finish(), declared };
        self.cache.store(target.url(), reply.headers(), &fetched);
        Ok(fetched)
    }
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("guard", &self.guard)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Returns the target of a redirect.
fn redirect_target(target: &Target, reply: &Response) -> Option<Result<String, Refusal>> {
    let moved = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let location = reply.headers().get(header::LOCATION).filter(|_| moved.contains(&reply.status()))?;
    let location = std::str::from_utf8(location.as_bytes())
        .map_err(|_| Refusal::Form("the redirect target is not UTF-8"));
    Some(location.and_then(|location| target.join(location)))
}

fn refused_or_failed(target: &Target, error: &(dyn Error + 'static), hop: u32) -> MediaError {
    match client::refusal(error) {
        Some(refusal) => MediaError::Refused { refusal, hop },
        None => failed(target, client::root_cause(error), None),
    }
}

fn failed(target: &Target, what: String, status: Option<u16>) -> MediaError {
    MediaError::Fetch { url: target.to_string(), what, status }
}

// Caches fetched responses, so that a retried run does not fetch again (SPEC 4.2.1).
//
// Bodies are stored like `Stored`: large ones on disk in unnamed files that vanish with the process. Only cacheable
// responses are stored, for as long as the server allows or a validator confirms them.

/// The maximum number of responses, whatever their size: together they use less than 64 MiB of memory.
const MAX_ENTRIES: usize = 64;

/// The maximum time that a response is used without revalidation.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// Responses by URL, least recently used first.
struct Cache {
    bytes: u64,
    entries: Mutex<VecDeque<(Url, CachedResponse)>>,
}

/// A cached response.
#[derive(Debug, Clone)]
struct CachedResponse {
    fetched: SourceContent,
    until: Instant,
    condition: Option<(HeaderName, HeaderValue)>,
}

impl CachedResponse {
    /// Returns the response if it needs no revalidation.
    fn fresh(&self) -> Option<SourceContent> {
        (Instant::now() < self.until).then(|| self.fetched.clone())
    }

    /// Returns the header for a conditional request.
    fn condition(&self) -> Option<(HeaderName, HeaderValue)> {
        self.condition.clone()
    }
}

impl Cache {
    /// Creates a cache of at most this many bytes.
    fn with_capacity(bytes: usize) -> Self {
        Self { bytes: bytes as u64, entries: Mutex::default() }
    }

    /// Returns the cached response of a URL.
    fn get(&self, url: &Url) -> Option<CachedResponse> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().position(|(own, _)| own == url)?;
        let entry = entries.remove(at)?;
        let known = entry.1.clone();
        entries.push_back(entry);
        Some(known)
    }

    /// Stores a response if its headers allow it and it fits.
    fn store(&self, url: &Url, headers: &HeaderMap, fetched: &SourceContent) {
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
