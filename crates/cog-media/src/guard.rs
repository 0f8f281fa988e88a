//! Judges URLs that come from an input or a model, not from the operator (SPEC 11.1, docs/spec/media.md).
//!
//! A URL is parsed once, into a [`Target`]. Only a target can be fetched, so no second parser can find another host in
//! it.

mod form;
mod names;
mod networks;
mod refusal;
mod rule;

use std::net::IpAddr;

use url::Url;

pub use self::{
    networks::Network,
    refusal::Refusal,
    rule::{AllowRule, RuleError},
};

/// The ports that are allowed by default.
const PORTS: [u16; 2] = [80, 443];

/// Judges URLs, and the IP addresses that host names resolve to.
#[derive(Debug, Clone, Default)]
pub struct UrlGuard {
    rules: Vec<AllowRule>,
    ports: Vec<u16>,
}

/// A URL that is allowed by its form.
///
/// Displayed without its query, which may contain a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    port: u16,
}

/// The host of a URL, in normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl UrlGuard {
    /// Creates a guard with the operator's allow rules.
    pub fn new(rules: Vec<AllowRule>) -> Self {
        Self { rules, ports: Vec::new() }
    }

    /// Allows more ports besides 80 and 443.
    #[must_use]
    pub fn with_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports.extend(ports);
        self
    }

    /// Judges a URL by its form, without a DNS lookup.
    ///
    /// # Errors
    /// Why it is refused. The message does not repeat the URL.
    pub fn judge(&self, text: &str) -> Result<Target, Refusal> {
        let url = form::read(text)?;
        let host = form::host(&url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        match &host {
            Host::Address(address) => self.admit_address(*address, port)?,
            Host::Name(name) => self.admit_name(name, port)?,
        }
        self.admit_port(&host, port)?;
        Ok(Target { url, port })
    }

    /// Judges an IP address that a host name resolved to, for a connection to this port.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn admit(&self, name: &str, port: u16, address: IpAddr) -> Result<(), Refusal> {
        if names::is_internal(name) && self.names(name, port) {
            return Ok(());
        }
        self.admit_address(address, port).map_err(|refusal| refusal.with_name(name))
    }

    fn admit_name(&self, name: &str, port: u16) -> Result<(), Refusal> {
        match names::refusal_reason(name) {
            Some(why) if !self.names(name, port) => Err(Refusal::Name { name: name.to_owned(), why }),
            _ => Ok(()),
        }
    }

    /// Admits an IP address. If it contains an IPv4 address (NAT64, 6to4, …), that must be admitted too.
    fn admit_address(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        if !self.rules.iter().any(|rule| rule.admits_ip(address, port)) {
            return match networks::special(address) {
                Some((network, what)) => Err(Refusal::IpAddress { address, network, what, name: None }),
                None => Ok(()),
            };
        }
        networks::embedded_ipv4(address).map_or(Ok(()), |inner| self.admit_address(inner.into(), port))
    }

    fn admit_port(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        let named = self.rules.iter().any(|rule| {
            rule.port() == Some(port)
                && match host {
                    Host::Name(name) => rule.admits_name(name, port),
                    Host::Address(address) => rule.admits_ip(*address, port),
                }
        });
        if named || PORTS.contains(&port) || self.ports.contains(&port) {
            Ok(())
        } else {
            Err(Refusal::Port(port))
        }
    }

    fn names(&self, name: &str, port: u16) -> bool {
        self.rules.iter().any(|rule| rule.admits_name(name, port))
    }
}

#[cfg(any(test, feature = "fetch"))]
impl Target {
    /// Returns the URL to fetch.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the host name to resolve; none if the host is an IP address.
    pub(crate) fn name(&self) -> Option<&str> {
        match form::host(&self.url) {
            Ok(Host::Name(_)) => self.url.host_str(),
            _ => None,
        }
    }

    /// Returns the port to connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the absolute URL of a redirect, which may be relative to this target.
    pub(crate) fn join(&self, location: &str) -> Result<String, Refusal> {
        form::check_characters(location)?;
        let next = self.url.join(location).map_err(|_| Refusal::Form("it is not a valid URL"))?;
        // An absolute location is judged as written, before a parser normalises it.
        Ok(if Url::parse(location).is_ok() { location.to_owned() } else { next.into() })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let query = if self.url.query().is_some() { "?***" } else { "" };
        write!(f, "{}://{}{}{query}", self.url.scheme(), self.url.authority(), self.url.path())
    }
}

/// Returns the normalised URL if it can be shared with a provider: public https, whatever the operator allows, and
/// without a query.
pub(crate) fn shareable_url(text: &str) -> Option<String> {
    let Target { url, .. } = UrlGuard::default().judge(text).ok()?;
    (url.query().is_none() && url.scheme() == "https").then(|| url.into())
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
