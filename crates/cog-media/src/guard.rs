//! Which addresses may be asked: those that come from an input or a model, not from the operator (SPEC 11.1,
//! docs/spec/media.md).
//!
//! A URL is read once, by one parser. What was read is a [`Target`]; only a target can be fetched, and it is dialled as it
//! was read, so no second reader can see another host in it.

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

/// The ports that may be asked wherever nothing else is allowed.
const PORTS: [u16; 2] = [80, 443];

/// Judges URLs, and the addresses that names turn out to have.
#[derive(Debug, Clone, Default)]
pub struct UrlGuard {
    rules: Vec<AllowRule>,
    ports: Vec<u16>,
}

/// A URL that may be asked, as far as its form tells.
///
/// Displayed without its query, which may hold a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    port: u16,
}

/// Whom a URL names, in normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Address(IpAddr),
}

impl UrlGuard {
    /// A guard that also lets pass what an operator allows.
    pub fn new(rules: Vec<AllowRule>) -> Self {
        Self { rules, ports: Vec::new() }
    }

    /// The same, with further ports beside 80 and 443.
    #[must_use]
    pub fn with_ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports.extend(ports);
        self
    }

    /// Judges a URL by its form alone; nothing is resolved.
    ///
    /// # Errors
    /// Why it may not be asked. The text of the URL is not repeated.
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

    /// Judges an address that a name was resolved to, for a connection to this port.
    ///
    /// # Errors
    /// Why it may not be dialled.
    pub fn admit(&self, name: &str, port: u16, address: IpAddr) -> Result<(), Refusal> {
        if names::is_internal(name) && self.names(name, port) {
            return Ok(());
        }
        self.admit_address(address, port).map_err(|refusal| refusal.of(name))
    }

    fn admit_name(&self, name: &str, port: u16) -> Result<(), Refusal> {
        match names::fault(name) {
            Some(why) if !self.names(name, port) => Err(Refusal::Name { name: name.to_owned(), why }),
            _ => Ok(()),
        }
    }

    /// An address that carries another (NAT64, 6to4, …) leads to that one, which must be admitted too.
    fn admit_address(&self, address: IpAddr, port: u16) -> Result<(), Refusal> {
        if !self.rules.iter().any(|rule| rule.admits_address(address, port)) {
            return match networks::special(address) {
                Some((network, what)) => Err(Refusal::Address { address, network, what, name: None }),
                None => Ok(()),
            };
        }
        networks::carried(address).map_or(Ok(()), |inner| self.admit_address(inner.into(), port))
    }

    fn admit_port(&self, host: &Host, port: u16) -> Result<(), Refusal> {
        let named = self.rules.iter().any(|rule| {
            rule.port() == Some(port)
                && match host {
                    Host::Name(name) => rule.admits_name(name, port),
                    Host::Address(address) => rule.admits_address(*address, port),
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
    /// The address that is asked.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The name that is to be resolved; none where it has the address itself.
    pub(crate) fn name(&self) -> Option<&str> {
        match form::host(&self.url) {
            Ok(Host::Name(_)) => self.url.host_str(),
            _ => None,
        }
    }

    /// The port that is dialled.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Where a reply says that the medium is; relative to this target where it says so.
    pub(crate) fn join(&self, location: &str) -> Result<String, Refusal> {
        form::plain(location)?;
        let next = self.url.join(location).map_err(|_| Refusal::Form("it is not a valid URL"))?;
        // A location with a scheme is judged as it was written, before any reader made it regular.
        Ok(if Url::parse(location).is_ok() { location.to_owned() } else { next.into() })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let query = if self.url.query().is_some() { "?***" } else { "" };
        write!(f, "{}://{}{}{query}", self.url.scheme(), self.url.authority(), self.url.path())
    }
}

/// An address that may be told to others, in the form in which it was judged: https, of the public network whatever an
/// operator allows besides, and with no query.
pub(crate) fn public_address(text: &str) -> Option<String> {
    let Target { url, .. } = UrlGuard::default().judge(text).ok()?;
    (url.query().is_none() && url.scheme() == "https").then(|| url.into())
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
