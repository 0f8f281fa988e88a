//! Judges URLs that come from an input or a model, not from the operator (SPEC 11.1, docs/spec/media.md).
//!
//! A URL is parsed once, into a [`Target`]. Only a target can be fetched, so no second parser can find another host in
//! it.

mod networks;
#[cfg(test)]
mod properties;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use cog_spec::Code;
use url::Url;

pub use self::networks::Network;

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

    /// Allows more ports in addition to 80 and 443.
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
        let url = read(text)?;
        let host = host(&url)?;
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
        // Only for an internal name: a public name may resolve to any address that its owner chooses.
        if is_internal(name) && self.names(name, port) {
            return Ok(());
        }
        self.admit_address(address, port).map_err(|refusal| refusal.with_name(name))
    }

    fn admit_name(&self, name: &str, port: u16) -> Result<(), Refusal> {
        match refusal_reason(name) {
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
        match host(&self.url) {
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
        check_characters(location)?;
        let next = self.url.join(location).map_err(|_| Refusal::Form("it is not a valid URL"))?;
        // An absolute location is judged as written, before a parser normalises it.
        Ok(if Url::parse(location).is_ok() { location.to_owned() } else { next.into() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

// Refusals.

/// Why a URL is refused. The message never repeats the URL, which may contain a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not a URL, or parsers could disagree about it.
    #[error("the URL is refused: {0}")]
    Form(&'static str),
    /// The scheme is not http or https; empty if there is none.
    #[error("the URL is refused: {}", scheme(.0))]
    Scheme(String),
    /// It has credentials, or an `@` that could be read as such.
    #[error("the URL is refused: credentials before the host are not allowed")]
    Credentials,
    /// The host is spelled unlike what it is parsed as, which is this.
    #[error("the URL is refused: the host is an unusual spelling of {0}")]
    Spelling(String),
    /// The port is not allowed.
    #[error("the URL is refused: port {0} is not allowed")]
    Port(u16),
    /// The host name is not allowed.
    #[error("the URL is refused: {name}: {why}")]
    Name {
        /// The host name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The IP address is not public.
    #[error("the URL is refused: {}{address} is not public: {what}{}", prefix(.name), within(*.network))]
    IpAddress {
        /// The IP address.
        address: IpAddr,
        /// The network that contains it.
        network: Network,
        /// The purpose of the network.
        what: &'static str,
        /// The host name that resolved to it; none if the URL contains the IP address.
        name: Option<String>,
    },
}

impl Refusal {
    /// Returns the code of the specification: E1012 (ruling R62).
    pub fn code(&self) -> Code {
        Code::MediaFetchFailed
    }

    /// Adds the host name that resolved to the IP address.
    fn with_name(mut self, resolved: &str) -> Self {
        if let Self::IpAddress { name, .. } = &mut self {
            *name = Some(resolved.to_owned());
        }
        self
    }
}

fn within(network: Network) -> String {
    if network.is_single_ip() { String::new() } else { format!(" ({network})") }
}

fn scheme(scheme: &str) -> String {
    match scheme {
        "" => "it has no scheme; http and https are allowed".to_owned(),
        scheme => format!("scheme `{scheme}`; http and https are allowed"),
    }
}

fn prefix(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!("{name}: its IP address "))
}

// The operator's exceptions.

/// An operator's exception to the public network: a network, an IP address or a host name, with or without a port.
///
/// Examples: `10.1.0.0/16`, `127.0.0.1:9000`, `[fd00::5]:8080`, `media.internal`, `*.media.internal:8443`. A rule with
/// a port applies to that port only. An internal host name is allowed with any IP address. For a public host name a
/// rule allows the port only: each IP address must be public or allowed itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    scope: Scope,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Network(Network),
    Name(String),
    /// Every name below this one.
    Below(String),
}

/// Text that is not a valid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid network, IP address or host: use 10.0.0.0/8, 127.0.0.1:9000, media.internal or *.media.internal"
)]
pub struct RuleError(String);

impl AllowRule {
    /// Returns the port that it applies to; none for all allowed ports.
    fn port(&self) -> Option<u16> {
        self.port
    }

    fn admits_ip(&self, address: IpAddr, port: u16) -> bool {
        self.applies_to(port) && matches!(&self.scope, Scope::Network(network) if network.contains(address))
    }

    fn admits_name(&self, name: &str, port: u16) -> bool {
        self.applies_to(port)
            && match &self.scope {
                Scope::Network(_) => false,
                Scope::Name(own) => own == name,
                Scope::Below(parent) => {
                    name.strip_suffix(parent.as_str()).is_some_and(|before| before.ends_with('.'))
                }
            }
    }

    fn applies_to(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = RuleError(text.to_owned());
        let (target, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inner, rest)) => (inner, rest.strip_prefix(':')),
            None if text.parse::<Network>().is_ok() => (text, None),
            None => text.rsplit_once(':').map_or((text, None), |(scope, port)| (scope, Some(port))),
        };
        let Ok(port) = port.map(str::parse).transpose() else { return Err(wrong) };
        let scope = match target.parse() {
            Ok(network) => Scope::Network(network),
            Err(_) => named(target).ok_or(wrong)?,
        };
        Ok(Self { scope, port })
    }
}

fn named(text: &str) -> Option<Scope> {
    let (name, is_below) = match text.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (text, false),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    });
    // A name that ends in a number could be parsed as an IP address.
    let ends_in_letters = name.rsplit('.').next()?.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_name && ends_in_letters).then_some(if is_below { Scope::Below(name) } else { Scope::Name(name) })
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Network(network) if self.port.is_some() && network.is_v6() => write!(f, "[{network}]")?,
            Scope::Network(network) => network.fmt(f)?,
            Scope::Name(name) => f.write_str(name)?,
            Scope::Below(parent) => write!(f, "*.{parent}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

// The form of a URL: whatever two parsers could read differently is refused.

/// The maximum length of a URL in bytes; signed URLs have up to 2,000.
const MAX_LEN: usize = 8192;

/// Characters that separate labels of internationalised names, in addition to the dot.
const OTHER_DOTS: [char; 3] = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Parses an http or https URL.
fn read(text: &str) -> Result<Url, Refusal> {
    check_characters(text)?;
    let authority = authority(text)?;
    let written = host_of(authority);
    if written.contains('%') {
        return Err(Refusal::Form("the host is percent-encoded"));
    }
    let mut url = Url::parse(text).map_err(|_| Refusal::Form("it is not a valid URL"))?;
    let read = url.host_str().unwrap_or_default().to_owned();
    check_spelling(written, &read)?;
    if let Some(name) = read.strip_suffix('.') {
        url.set_host(Some(name)).map_err(|_| Refusal::Form("the host is not a valid name"))?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// Refuses white space, control characters and backslashes, which some parsers drop or turn into slashes.
fn check_characters(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::Form("it is empty"));
    }
    if text.len() > MAX_LEN {
        return Err(Refusal::Form("it is longer than 8192 bytes"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Refusal::Form("it contains white space or a control character"));
    }
    if text.contains('\\') {
        return Err(Refusal::Form("it contains a backslash"));
    }
    Ok(())
}

/// Returns the host of a parsed URL.
fn host(url: &Url) -> Result<Host, Refusal> {
    let host = url.host_str().unwrap_or_default();
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.trim_end_matches(']').parse::<Ipv6Addr>();
        return address.map(|address| Host::Address(IpAddr::V6(address))).map_err(|_| invalid_host());
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    let is_name = host.len() <= 253
        && host.split('.').all(|label| (1..=63).contains(&label.len()))
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_name { Ok(Host::Name(host.to_owned())) } else { Err(invalid_host()) }
}

fn invalid_host() -> Refusal {
    Refusal::Form("the host is neither a name nor an IP address")
}

/// Returns the text between the scheme and the path.
fn authority(text: &str) -> Result<&str, Refusal> {
    let (scheme, rest) = text.split_once(':').ok_or_else(|| Refusal::Scheme(String::new()))?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        let is_scheme = scheme.len() <= 24
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        return Err(Refusal::Scheme(if is_scheme { scheme.to_ascii_lowercase() } else { String::new() }));
    }
    let rest = rest.strip_prefix("//").ok_or(Refusal::Form("the scheme is not followed by `//`"))?;
    // Older parsers end the host only at a slash.
    let until_slash = rest.split('/').next().unwrap_or_default();
    if until_slash.contains('@') {
        return Err(Refusal::Credentials);
    }
    match rest.split(['/', '?', '#']).next().unwrap_or_default() {
        "" => Err(Refusal::Form("it has no host")),
        authority => Ok(authority),
    }
}

/// Returns the host without its port.
fn host_of(authority: &str) -> &str {
    match authority.find(']') {
        Some(end) => authority.get(..=end).unwrap_or(authority),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Refuses a host whose spelling differs from what it is parsed as: IP addresses in other bases, look-alike letters.
/// An internationalised name is allowed: its labels become `xn--…`.
fn check_spelling(written: &str, read: &str) -> Result<(), Refusal> {
    if read.starts_with('[') {
        return Ok(());
    }
    if read.parse::<Ipv4Addr>().is_ok_and(|_| written != read) {
        return Err(Refusal::Spelling(read.to_owned()));
    }
    let labels = written.split('.').zip(read.split('.'));
    // A parser maps look-alike letters, such as full-width ones, to ASCII, so that no `xn--` label results.
    let looks_alike = labels.into_iter().any(|(own, read)| !own.is_ascii() && !read.starts_with("xn--"));
    if written.contains(OTHER_DOTS) || looks_alike {
        return Err(Refusal::Spelling(read.to_owned()));
    }
    Ok(())
}

// Host names that lead into private networks.

/// Names below these resolve in private networks only (docs/spec/media.md).
const INTERNAL: [&str; 14] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "svc",
    "consul",
    "onion",
    "in-addr.arpa",
];

/// Public names of cloud metadata services.
const METADATA: [&str; 4] =
    ["metadata.goog", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"];

/// Public DNS services whose names resolve to any IP address.
const ANY_ADDRESS: [&str; 13] = [
    "nip.io",
    "sslip.io",
    "xip.io",
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "localh.st",
    "traefik.me",
    "rbndr.us",
    "1u.ms",
    "spoofed.burpcollaborator.net",
    "bugbounty.dod.network",
];

/// Returns why a host name is refused, if it is.
fn refusal_reason(name: &str) -> Option<&'static str> {
    if is_internal(name) {
        Some("it is the name of an internal network")
    } else if is_under(name, &METADATA) {
        Some("it is a cloud metadata service")
    } else if is_under(name, &ANY_ADDRESS) {
        Some("it resolves to any IP address that the caller chooses")
    } else {
        None
    }
}

/// Returns whether only a private network can resolve this name.
fn is_internal(name: &str) -> bool {
    !name.contains('.') || is_under(name, &INTERNAL)
}

fn is_under(name: &str, domains: &[&str]) -> bool {
    domains.iter().any(|domain| {
        name.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

#[cfg(test)]
mod tests;
