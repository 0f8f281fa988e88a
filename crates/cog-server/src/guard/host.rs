use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use axum::http::{HeaderMap, StatusCode, Uri, header, uri::Authority};
use cog_spec::{Code, ErrorBody};

use super::refusal::{Reason, Refusal};

/// The host names and IP addresses that the server accepts.
///
/// A page of another site can resolve its own name to this machine and then call the server (DNS rebinding). Its name is
/// in the `Host` header, and is refused.
pub(crate) struct Hosts {
    bound: IpAddr,
    /// In lower case.
    names: Vec<String>,
}

/// The host of an accepted request, for comparison with the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// A name in lower case, or an IP address in canonical form.
    pub(crate) name: String,
    pub(crate) port: Option<u16>,
}

impl Hosts {
    /// Accepts the address that the listener is bound to, and additional names.
    pub(crate) fn new(bound: IpAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| normal(name)).collect();
        Self { bound: bound.to_canonical(), names }
    }

    /// Returns the host of a request: the `Host` header, or the authority of the target.
    ///
    /// # Errors
    /// 400 for a missing, repeated or invalid host; 403 E4007 for one that is not accepted.
    pub(crate) fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<Host, Refusal> {
        let host = read(target, headers)?;
        if self.serves(&host.name) {
            return Ok(host);
        }
        let message = format!("host not allowed: {}", host.name);
        let error = ErrorBody::new(Code::PermissionDenied, message)
            .suggest(format!("The operator can allow it with `--allow-host {}`.", host.name));
        Err(Refusal::new(Reason::Host, StatusCode::FORBIDDEN, error))
    }

    fn serves(&self, name: &str) -> bool {
        if self.names.iter().any(|listed| listed == name) {
            return true;
        }
        match name.parse::<IpAddr>() {
            // A server that is bound to all addresses does not know them all. Any IP address is safe: it needs no name
            // resolution.
            Ok(address) => {
                self.bound.is_unspecified()
                    || address == self.bound
                    || (self.bound.is_loopback() && address.is_loopback())
            }
            Err(_) => name == "localhost" && (self.bound.is_loopback() || self.bound.is_unspecified()),
        }
    }
}

/// The form in a URL.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]", self.name)?,
            false => f.write_str(&self.name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Host {
    /// Parses `name`, `name:port`, `address` or `[address]:port`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let has_port = authority.as_str().len() > authority.host().len();
        let is_valid = !authority.as_str().contains('@') && !authority.host().is_empty();
        let port = authority.port_u16();
        (is_valid && has_port == port.is_some()).then(|| Self { name: normal(authority.host()), port })
    }
}

fn read(target: &Uri, headers: &HeaderMap) -> Result<Host, Refusal> {
    let mut lines = headers.get_all(header::HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(malformed("the request has more than one Host header"));
    }
    let line = line.map(|value| value.to_str().ok().and_then(Host::read).ok_or(()));
    let named = target.authority().map(|authority| Host::read(authority.as_str()).ok_or(()));
    match (line, named) {
        (None, None) => Err(malformed("the request has no Host header")),
        (Some(Ok(host)), None) | (None, Some(Ok(host))) => Ok(host),
        (Some(Ok(line)), Some(Ok(named))) if line == named => Ok(named),
        _ => Err(malformed("the Host header is not valid, or differs from the request target")),
    }
}

fn malformed(message: &str) -> Refusal {
    let error = ErrorBody::new(Code::InvalidInput, message).suggest("Send one header `Host: NAME[:PORT]`.");
    Refusal::new(Reason::Host, StatusCode::BAD_REQUEST, error)
}

/// A name in lower case without its trailing dot, or an IP address in canonical form without brackets.
fn normal(name: &str) -> String {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = bare.parse::<Ipv6Addr>() {
        return IpAddr::V6(address).to_canonical().to_string();
    }
    if let Ok(address) = bare.parse::<Ipv4Addr>() {
        return address.to_string();
    }
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bound: &str, host: &str) -> u16 {
        let hosts = Hosts::new(bound.parse().unwrap(), &["Cog.Example.".into()]);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.check(&"/health".parse().unwrap(), &headers).map_or_else(|no| no.status().as_u16(), |_| 200)
    }

    #[test]
    fn loopback_listener_accepts_loopback_names() {
        for host in ["localhost", "LocalHost.:8000", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "127.9.9.9"]
        {
            assert_eq!(check("127.0.0.1", host), 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "192.0.2.1", "10.0.0.1:8000", "0.0.0.0"] {
            assert_eq!(check("127.0.0.1", host), 403, "{host}");
        }
    }

    #[test]
    fn listed_names_are_accepted_with_any_port() {
        assert_eq!(check("127.0.0.1", "cog.example"), 200);
        assert_eq!(check("127.0.0.1", "COG.example.:8443"), 200);
        assert_eq!(check("127.0.0.1", "x.cog.example"), 403);
    }

    #[test]
    fn listener_on_one_address_accepts_that_address() {
        assert_eq!(check("192.0.2.1", "192.0.2.1:8000"), 200);
        assert_eq!(check("2001:db8::1", "[2001:DB8:0::1]"), 200);
        for host in ["192.0.2.2", "localhost", "127.0.0.1"] {
            assert_eq!(check("192.0.2.1", host), 403, "{host}");
        }
    }

    #[test]
    fn listener_on_all_addresses_refuses_foreign_names() {
        for host in ["192.0.2.2", "localhost:8000", "[2001:db8::1]", "cog.example"] {
            assert_eq!(check("0.0.0.0", host), 200, "{host}");
            assert_eq!(check("::", host), 200, "{host}");
        }
        assert_eq!(check("0.0.0.0", "evil.example"), 403);
    }

    #[test]
    fn invalid_host_is_refused() {
        for host in
            ["", "a b", "user@localhost", "localhost:", "localhost:99999", "localhost:x", "a/b", "[::1"]
        {
            assert_eq!(check("127.0.0.1", host), 400, "{host:?}");
        }
    }

    #[test]
    fn missing_repeated_or_contradicting_host_is_refused() {
        let hosts = Hosts::new("127.0.0.1".parse().unwrap(), &[]);
        let check = |target: &str, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::HOST, line.parse().unwrap());
            }
            hosts.check(&target.parse().unwrap(), &headers).map_or_else(|no| no.status().as_u16(), |_| 200)
        };
        assert_eq!(check("/", &[]), 400);
        assert_eq!(check("/", &["localhost", "localhost"]), 400);
        assert_eq!(check("http://localhost/", &["evil.example"]), 400);
        assert_eq!(check("http://evil.example/", &["localhost"]), 400);
        assert_eq!(check("http://localhost:80/", &["localhost:80"]), 200);
        assert_eq!(check("http://evil.example/", &[]), 403);
    }
}
