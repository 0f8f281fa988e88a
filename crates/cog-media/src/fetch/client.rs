//! The HTTP client for addresses that come from inputs or models.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, redirect};

use crate::{Refusal, Target, UrlGuard};

use super::resolve::{Guarded, Resolver};

/// One client for each port, because what an operator allows may hold for one port alone.
pub(super) struct Clients {
    guard: UrlGuard,
    connect: Duration,
    resolver: Arc<dyn Resolver>,
    built: Mutex<HashMap<(bool, u16), Client>>,
}

impl Clients {
    pub(super) fn new(guard: UrlGuard, connect: Duration, resolver: impl Resolver + 'static) -> Self {
        Self { guard, connect, resolver: Arc::new(resolver), built: Mutex::default() }
    }

    /// The client for a target, built when it is first needed: loading certificates takes long.
    pub(super) fn of(&self, target: &Target) -> Result<Client, String> {
        let is_plain = target.url().scheme() == "http";
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = built.get(&(is_plain, target.port())) {
            return Ok(client.clone());
        }
        let client = self.build(is_plain, target.port()).map_err(|error| told(&error))?;
        built.insert((is_plain, target.port()), client.clone());
        Ok(client)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one client for addresses of inputs and models"
    )]
    fn build(&self, is_plain: bool, port: u16) -> reqwest::Result<Client> {
        let (guard, resolver) = (self.guard.clone(), Arc::clone(&self.resolver));
        let mut builder = Client::builder()
            .user_agent(concat!("cog/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .dns_resolver(Guarded { guard, port, resolver })
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .no_proxy();
        if is_plain {
            builder = builder.tls_certs_only([]);
        }
        builder.build()
    }
}

/// The guard's own word, where it was the guard that stopped a request.
pub(super) fn refusal(error: &reqwest::Error) -> Option<Refusal> {
    causes(error).find_map(|cause| cause.downcast_ref::<Refusal>()).cloned()
}

/// What went wrong: the last cause says it.
pub(super) fn told(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn Error + 'static)| (*cause).source())
}
