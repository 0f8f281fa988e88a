//! The HTTP client for URLs that come from inputs or models.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, redirect};

use crate::{Refusal, Target, UrlGuard};

use super::{
    Proxy,
    resolve::{BoxError, Guarded, Resolver},
};

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

    fn guarded(&self, port: u16) -> Guarded {
        Guarded { guard: self.guard.clone(), port, resolver: Arc::clone(&self.resolver) }
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
