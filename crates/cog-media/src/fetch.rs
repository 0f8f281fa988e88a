//! Fetches URLs that come from an input or a model; the only code that does.
//!
//! The guard judges each hop and every IP address that its host name resolves to. The client connects to the resolved
//! address, so there is no second lookup with another answer.

mod cache;
mod client;

use std::{error::Error, time::Duration};

use reqwest::{Response, StatusCode, header};

use crate::{MediaError, Refusal, Store, Stored, Target, UrlGuard};

use self::{
    cache::{Cache, CachedResponse},
    client::Clients,
};

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

    async fn follow(&self, first: Target, store: Store) -> Result<SourceContent, MediaError> {
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
            let chunk = reply.chunk().await;
            let chunk =
                chunk.map_err(|error| failed(target, client::root_cause(&error.without_url()), None))?;
            match chunk {
                Some(bytes) => store.push(&bytes)?,
                None => break,
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
