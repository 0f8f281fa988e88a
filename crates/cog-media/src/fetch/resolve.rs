use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::UrlGuard;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

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
pub(super) struct Guarded {
    pub(super) guard: UrlGuard,
    pub(super) port: u16,
    pub(super) resolver: Arc<dyn Resolver>,
}

impl Guarded {
    /// Returns the IP addresses of a host name if the guard admits all of them.
    pub(super) fn admitted(&self, name: &str) -> BoxFuture<'static, Result<Vec<IpAddr>, BoxError>> {
        let (guard, port, name) = (self.guard.clone(), self.port, name.to_owned());
        let found = self.resolver.resolve(&name);
        async move {
            let found = found.await?;
            found.iter().try_for_each(|address| guard.admit(&name, port, *address))?;
            Ok(found)
        }
        .boxed()
    }
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (admitted, port) = (self.admitted(name.as_str()), self.port);
        Box::pin(async move {
            let targets = admitted.await?.into_iter().map(move |address| SocketAddr::new(address, port));
            Ok(Box::new(targets) as Addrs)
        })
    }
}
