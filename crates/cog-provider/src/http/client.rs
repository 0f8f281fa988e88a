//! The one HTTP client for addresses that the operator set.

use std::{error::Error, sync::OnceLock, time::Duration};

use cog_spec::Secret;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::{Url, header::HeaderValue, redirect};

use crate::{
    ConnectErrorKind, WireRequest,
    transport::{KEPT_HEADERS, Sending, Transport, TransportError, WireReply},
    vendors::Auth,
};

/// Sends over the network, with the key.
pub(super) struct Client {
    auth: Option<(Auth, Secret)>,
    connect: Duration,
    plain: bool,
    local: bool,
    http: OnceLock<Result<reqwest::Client, TransportError>>,
}

impl Client {
    pub(super) fn new(base_url: &str, auth: Option<(Auth, Secret)>, connect: Duration) -> Self {
        let url = Url::parse(base_url).ok();
        let plain = url.as_ref().is_some_and(|url| url.scheme() == "http");
        let local = url.as_ref().and_then(Url::host_str).is_some_and(is_local);
        Self { auth, connect, plain, local, http: OnceLock::new() }
    }

    /// Built at the first question: loading certificates takes longer than all the rest of a short run,
    /// so plain addresses do without them.
    fn http(&self) -> Result<&reqwest::Client, TransportError> {
        let built = self.http.get_or_init(|| self.build().map_err(|error| failed(&error)));
        built.as_ref().map_err(Clone::clone)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one client for addresses of the operator")]
    fn build(&self) -> reqwest::Result<reqwest::Client> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("cog/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never());
        if self.plain {
            builder = builder.tls_certs_only([]);
        }
        if self.local {
            builder = builder.no_proxy();
        }
        builder.build()
    }

    fn request(&self, request: &WireRequest) -> Result<reqwest::RequestBuilder, TransportError> {
        let http = self.http()?;
        let mut builder = match request.method {
            "GET" => http.get(&request.url),
            _ => http.post(&request.url).body(request.body.clone()),
        };
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if let Some((auth, key)) = &self.auth {
            let (name, value) = auth.header(key.expose());
            let mut value = HeaderValue::try_from(value).map_err(|_| TransportError::BadKey)?;
            value.set_sensitive(true);
            builder = builder.header(name, value);
        }
        Ok(builder)
    }
}

impl Transport for Client {
    fn send<'a>(&'a self, request: &'a WireRequest) -> Sending<'a> {
        Box::pin(async move {
            let reply = self.request(request)?.send().await.map_err(|error| failed(&error))?;
            let header = |name: &'static str| {
                let value = reply.headers().get(name)?.to_str().ok()?;
                Some((name, value.to_owned()))
            };
            let headers = KEPT_HEADERS.into_iter().filter_map(header).collect();
            let status = reply.status().as_u16();
            let pieces =
                reply.bytes_stream().map_err(|error| TransportError::Broken(root_cause(&error))).boxed();
            Ok(WireReply { status, headers, pieces })
        })
    }
}

fn failed(error: &reqwest::Error) -> TransportError {
    let message = root_cause(error);
    if error.is_connect() || error.is_builder() {
        TransportError::Connect { message, obstacle: ConnectErrorKind::among(error) }
    } else {
        TransportError::Broken(message)
    }
}

/// The last cause is the one that says something: `connection refused`, not `error sending request`.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Addresses of this machine are asked directly, whatever proxy is set.
fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["localhost.evil.org", "10.0.0.1", "example.org", "[::2]"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
