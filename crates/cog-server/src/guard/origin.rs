use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, uri::Authority},
    response::{IntoResponse, Response},
};
use cog_spec::{Code, ErrorBody};
use thiserror::Error;

use super::{Reason, Refusal};

/// The origins whose pages may call the server from a browser: the server's own, and those that the operator lists.
pub(crate) struct Origins(Vec<Origin>);

/// A web origin.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: Host,
}

/// The page that sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    /// No browser, or a page of this server.
    Own,
    /// A page of a listed origin, with the header as it was sent.
    Allowed(HeaderValue),
}

/// An invalid origin.
#[derive(Debug, Error)]
#[error("`{0}` is not a valid origin: use SCHEME://HOST[:PORT] of a page, without a path or `*`")]
pub struct InvalidOrigin(String);

impl Origins {
    /// The listed origins.
    ///
    /// # Errors
    /// An origin is not valid.
    pub(crate) fn new(listed: &[String]) -> Result<Self, InvalidOrigin> {
        let origins = listed.iter().map(|text| {
            Origin::read(text).filter(Origin::is_page).ok_or_else(|| InvalidOrigin(text.clone()))
        });
        origins.collect::<Result<_, _>>().map(Self)
    }

    /// Whether any other origin is allowed, so that responses depend on it.
    pub(crate) fn allows_others(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the page that sends the request.
    ///
    /// # Errors
    /// 403 E4007 for an origin that is not allowed.
    pub(crate) fn check(&self, headers: &HeaderMap, host: &Host) -> Result<Page, Refusal> {
        let mut values = headers.get_all(header::ORIGIN).iter();
        let Some(value) = values.next() else { return Ok(Page::Own) };
        let origin = value.to_str().ok().and_then(Origin::read).filter(|_| values.next().is_none());
        match origin {
            Some(origin) if origin.is_of(host) => Ok(Page::Own),
            Some(origin) if self.0.contains(&origin) => Ok(Page::Allowed(value.clone())),
            _ => Err(refusal(value)),
        }
    }
}

impl Origin {
    fn read(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let mut host = Host::read(host).filter(|_| is_scheme && !scheme.is_empty())?;
        host.port = host.port.or(default_port(&scheme));
        Some(Self { scheme, host })
    }

    /// Whether a browser loads pages from it.
    fn is_page(&self) -> bool {
        !self.host.name.contains('*') && !matches!(self.scheme.as_str(), "ftp" | "ws" | "wss")
    }

    /// Whether the page is from this host. A proxy may have terminated TLS, so the default port is the one of the origin's
    /// scheme.
    fn is_of(&self, host: &Host) -> bool {
        let port = host.port.or(default_port(&self.scheme));
        matches!(self.scheme.as_str(), "http" | "https")
            && self.host.name == host.name
            && self.host.port == port
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

fn refusal(value: &HeaderValue) -> Refusal {
    let origin = value.to_str().unwrap_or("(unreadable)");
    let error = ErrorBody::new(Code::PermissionDenied, format!("origin not allowed: {origin}"))
        .suggest(format!("The operator can allow it with `--allow-origin {origin}`."));
    Refusal::new(Reason::Origin, StatusCode::FORBIDDEN, error)
}

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

/// The methods that pages may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");

/// The headers that pages may send.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Accept, Authorization, Content-Range, Content-Type, If-Range, Last-Event-ID, Mcp-Method, Mcp-Name, \
     Mcp-Protocol-Version, Mcp-Session-Id, Range, Traceparent, X-Request-Id, \
     X-Cognitive-Response-Mode, X-Cognitive-Recovery-Session, X-Cognitive-Recovery-Seq",
);

/// The headers that pages may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Content-Range, ETag, Location, Range, Retry-After, Server-Timing, X-Cognitive-Warning, X-Request-Id, \
     X-Session-Id",
);

/// How long a browser may cache the preflight response, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Whether the request is a CORS preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Responds to a preflight. The server's own pages need no permission.
pub(crate) fn preflight(page: &Page) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    *response.body_mut() = Body::empty();
    if let Page::Allowed(_) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
    response
}

/// Lets a listed page read the response.
///
/// Credentials (cookies) are never allowed: the page sends the token in a header.
pub(crate) fn allow(page: &Page, headers: &mut HeaderMap) {
    if let Page::Allowed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

/// Adds `Vary`, because the response depends on the origin.
pub(crate) fn vary(headers: &mut HeaderMap) {
    const NAMES: [HeaderName; 3] =
        [header::ORIGIN, header::ACCESS_CONTROL_REQUEST_METHOD, header::ACCESS_CONTROL_REQUEST_HEADERS];
    for name in NAMES {
        headers.append(header::VARY, HeaderValue::from(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: &str) -> Option<Page> {
        let listed = ["https://App.example".to_owned(), "http://localhost:3000".to_owned()];
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, origin.parse().unwrap());
        Origins::new(&listed).unwrap().check(&headers, &Host::read(host).unwrap()).ok()
    }

    #[test]
    fn own_pages_are_allowed() {
        assert_eq!(check("localhost:8000", "http://localhost:8000"), Some(Page::Own));
        assert_eq!(check("cog.example", "http://cog.example"), Some(Page::Own));
        assert_eq!(check("cog.example", "https://COG.example:443"), Some(Page::Own));
        assert_eq!(check("[::1]:8000", "http://[0:0::1]:8000"), Some(Page::Own));
        let none = Origins::new(&[]).unwrap().check(&HeaderMap::new(), &Host::read("localhost").unwrap());
        assert_eq!(none.ok(), Some(Page::Own));
    }

    #[test]
    fn listed_pages_are_allowed() {
        let listed = |origin: &'static str| Some(Page::Allowed(HeaderValue::from_static(origin)));
        assert_eq!(check("localhost:8000", "https://app.example"), listed("https://app.example"));
        assert_eq!(check("localhost:8000", "http://localhost:3000"), listed("http://localhost:3000"));
    }

    #[test]
    fn other_pages_are_refused() {
        for origin in [
            "http://localhost:8001",
            "http://localhost",
            "http://127.0.0.1:8000",
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil.example",
            "null",
            "",
            "file://",
            "chrome-extension://localhost:8000",
        ] {
            assert_eq!(check("localhost:8000", origin), None, "{origin}");
        }
    }

    #[test]
    fn two_origins_are_refused() {
        let mut headers = HeaderMap::new();
        for _ in 0..2 {
            headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        }
        let host = Host::read("localhost").unwrap();
        let refusal = Origins::new(&[]).unwrap().check(&headers, &host).unwrap_err();
        assert_eq!(refusal.status(), 403);
    }

    #[test]
    fn invalid_origin_cannot_be_listed() {
        for text in [
            "app.example",
            "*",
            "null",
            "https://app.example/path",
            "https://",
            "https://a b",
            "https://*.example",
            "wss://app.example",
            "ftp://app.example",
        ] {
            assert!(Origins::new(&[text.to_owned()]).is_err(), "{text}");
        }
    }
}

#[cfg(test)]
mod host_tests {
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
