use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::UrlGuard;

/// The addresses of a name, to come.
pub type Addresses = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Who tells the addresses of a name.
pub trait Resolver: Send + Sync {
    /// All addresses of a name.
    fn resolve(&self, name: &str) -> Addresses;
}

/// Asks as every program of this machine does.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> Addresses {
        let name = name.to_owned();
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) }.boxed()
    }
}

/// The resolver of a client for one port: it gives only what the guard admits, or nothing at all.
pub(super) struct Guarded {
    pub(super) guard: UrlGuard,
    pub(super) port: u16,
    pub(super) resolver: Arc<dyn Resolver>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, port) = (self.guard.clone(), self.port);
        let found = self.resolver.resolve(name.as_str());
        Box::pin(async move {
            let found = found.await?;
            // One address that is not public spoils them all: a name that is honest has none.
            for address in &found {
                guard.admit(name.as_str(), port, *address)?;
            }
            let dialled = found.into_iter().map(move |address| SocketAddr::new(address, port));
            Ok(Box::new(dialled) as Addrs)
        })
    }
}
