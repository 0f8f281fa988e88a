use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use cog_spec::{Code, ErrorBody};
use thiserror::Error;

use super::{
    host::Host,
    refusal::{Reason, Refusal},
};

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
        let is_page = |origin: &Origin| {
            !origin.host.name.contains('*') && !matches!(origin.scheme.as_str(), "ftp" | "ws" | "wss")
        };
        let read =
            |text: &String| Origin::read(text).filter(is_page).ok_or_else(|| InvalidOrigin(text.clone()));
        listed.iter().map(read).collect::<Result<_, _>>().map(Self)
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

    /// Whether the page is from this host. A proxy may have terminated TLS, so the default port is that of the origin's
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
