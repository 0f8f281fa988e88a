use std::{fmt, str::FromStr};

use url::Url;

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
    pub(super) fn url(&self) -> &Url {
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
