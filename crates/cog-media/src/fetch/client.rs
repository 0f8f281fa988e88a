//! The HTTP client for URLs that come from inputs or models.

use std::{
    collections::HashMap,
    error::Error,
    fmt, io,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use url::Url;

use crate::{Refusal, Target, UrlGuard};

/// HTTP clients by port, because an allow rule may apply to one port only.
pub(super) struct Clients {
    guard: UrlGuard,
    connect: Duration,
    resolver: Arc<dyn Resolver>,
    pub(super) proxy: Option<Proxy>,
    built: Mutex<HashMap<(bool, u16), Client>>,
}

impl Clients {
    pub(super) fn new(guard: UrlGuard, connect: Duration, resolver: impl Resolver + 'static) -> Self {
        Self { guard, connect, resolver: Arc::new(resolver), proxy: None, built: Mutex::default() }
    }

    /// Returns the client for a target. Clients are built on first use, because loading certificates is slow.
    pub(super) fn client_for(&self, target: &Target) -> Result<Client, String> {
        let is_plain = target.url().scheme() == "http";
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = built.get(&(is_plain, target.port())) {
            return Ok(client.clone());
        }
        let client = self.build(is_plain, target.port()).map_err(|error| root_cause(&error))?;
        built.insert((is_plain, target.port()), client.clone());
        Ok(client)
    }

    /// Judges the IP addresses of a target that a proxy will resolve.
    pub(super) async fn check(&self, target: &Target) -> Result<(), BoxError> {
        match (&self.proxy, target.name()) {
            (Some(_), Some(name)) => self.guarded(target.port()).admitted(name).await.map(drop),
            _ => Ok(()),
        }
    }

    fn guarded(&self, port: u16) -> GuardedResolver {
        GuardedResolver { guard: self.guard.clone(), port, resolver: Arc::clone(&self.resolver) }
    }

    #[expect(clippy::disallowed_methods, reason = "the only client for URLs of inputs and models")]
    fn build(&self, is_plain: bool, port: u16) -> reqwest::Result<Client> {
        // Fails only if the program has installed a provider of its own, which is used then.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("cog/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .no_proxy();
        // The client connects to what this resolver returns. A second lookup could return another address (DNS
        // rebinding).
        builder = match &self.proxy {
            Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy.url().clone())?),
            None => builder.dns_resolver(self.guarded(port)),
        };
        if is_plain {
            builder = builder.tls_certs_only([]);
        }
        builder.build()
    }
}

/// Returns whether a connection was closed after the request was sent, without a response.
pub(super) fn is_interrupted(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout() && refusal(error).is_none()
}

/// Returns the guard's refusal if the guard stopped the request.
pub(super) fn refusal(error: &(dyn Error + 'static)) -> Option<Refusal> {
    causes(error).find_map(|cause| cause.downcast_ref::<Refusal>()).cloned()
}

/// Returns the message of the root cause.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn Error + 'static)| (*cause).source())
}

// A proxy.

/// A proxy set by the operator: `http://HOST:PORT`.
///
/// Host names are still resolved and judged here, but the proxy connects and may resolve them differently. Displayed
/// without credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy(Url);

/// Text that is not a valid proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid proxy: use http://HOST:PORT")]
pub struct ProxyError;

impl Proxy {
    fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = Url::parse(text).map_err(|_| ProxyError)?;
        let is_plain = url.scheme() == "http" && ["", "/"].contains(&url.path()) && url.query().is_none();
        if is_plain { Ok(Self(url)) } else { Err(ProxyError) }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        write!(f, "http://{host}:{}", self.0.port_or_known_default().unwrap_or_default())
    }
}

// The resolver of host names, which asks the guard.

type BoxError = Box<dyn Error + Send + Sync>;

/// A future with the IP addresses of a host name.
pub type ResolveFuture = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Resolves host names.
pub trait Resolver: Send + Sync {
    /// Returns all IP addresses of a host name.
    fn resolve(&self, name: &str) -> ResolveFuture;
}

/// Uses the resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> ResolveFuture {
        let name = name.to_owned();
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) }.boxed()
    }
}

/// The resolver of the client for one port. It returns an error unless the guard admits every IP address.
struct GuardedResolver {
    guard: UrlGuard,
    port: u16,
    resolver: Arc<dyn Resolver>,
}

impl GuardedResolver {
    /// Returns the IP addresses of a host name if the guard admits all of them.
    fn admitted(&self, name: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, BoxError>> {
        let guard = self.guard.clone();
        let port = self.port;
        let name = name.to_owned();
        let found = self.resolver.resolve(&name);
        async move {
            let found = found.await?;
            // One address that is not public refuses the name: the client may choose any of them.
            found.iter().try_for_each(|address| guard.admit(&name, port, *address))?;
            Ok(found)
        }
        .boxed()
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let admitted = self.admitted(name.as_str());
        let port = self.port;
        Box::pin(async move {
            let targets = admitted.await?.into_iter().map(move |address| SocketAddr::new(address, port));
            Ok(Box::new(targets) as Addrs)
        })
    }
}
