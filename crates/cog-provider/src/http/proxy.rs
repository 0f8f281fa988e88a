//! The proxy of a call, for messages: the HTTP client chooses it from the environment, and does not tell which one it took.

use std::{
    fmt::{self, Display},
    net::IpAddr,
};

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;

/// A proxy, and the variable that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedProxy {
    variable: &'static str,
    /// Without user name and password.
    url: String,
}

impl NamedProxy {
    /// Returns the proxy through which the HTTP client calls this URL; none for this machine.
    #[expect(clippy::disallowed_methods, reason = "the HTTP client has read these variables itself")]
    pub(super) fn of(url: &str) -> Option<Self> {
        if is_local(url) { None } else { Self::find(url, |name| std::env::var(name).ok()) }
    }

    /// Finds the proxy as the HTTP client does: the first variable of the scheme that is set, otherwise the one for all schemes.
    fn find(url: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let url: Uri = url.parse().ok()?;
        // In CGI, a client could set HTTP_PROXY with the header `Proxy`.
        if variable("REQUEST_METHOD").is_some() {
            return None;
        }
        let first =
            |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, variable(name)?)));
        let of_scheme = match url.scheme_str()? {
            "https" => ["HTTPS_PROXY", "https_proxy"],
            _ => ["HTTP_PROXY", "http_proxy"],
        };
        let excluded = first(["NO_PROXY", "no_proxy"]).map(|(_, hosts)| hosts).unwrap_or_default();
        [of_scheme, ["ALL_PROXY", "all_proxy"]].into_iter().find_map(|names| {
            let (variable, value) = first(names)?;
            let proxy = Matcher::builder().all(value).no(excluded.clone()).build().intercept(&url)?;
            Some(Self { variable, url: proxy.uri().to_string().trim_end_matches('/').to_owned() })
        })
    }
}

impl Display for NamedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {} ({})", self.url, self.variable)
    }
}

/// Returns whether a URL leads to this machine, which is called directly even if a proxy is set.
pub(super) fn is_local(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.host_str().is_some_and(is_local_host))
}

fn is_local_host(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxy that these variables set for a URL.
    fn named(url: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        NamedProxy::find(url, variable).map_or_else(|| "none".to_owned(), |proxy| proxy.to_string())
    }

    #[test]
    fn variable_of_the_scheme_precedes_the_one_for_all() {
        let both = [("ALL_PROXY", "http://all:1"), ("https_proxy", "http://own:2")];
        assert_eq!(named("https://a.example/v1", &both), "the proxy http://own:2 (https_proxy)");
        assert_eq!(named("http://a.example/v1", &both), "the proxy http://all:1 (ALL_PROXY)");
        let upper = [("https_proxy", "http://low:1"), ("HTTPS_PROXY", "http://up:2")];
        assert_eq!(named("https://a.example", &upper), "the proxy http://up:2 (HTTPS_PROXY)");
    }

    #[test]
    fn password_is_not_part_of_the_name() {
        let set = [("HTTPS_PROXY", "http://me:canary@proxy.example:3128/")];
        assert_eq!(named("https://a.example", &set), "the proxy http://proxy.example:3128 (HTTPS_PROXY)");
        let plain = [("HTTPS_PROXY", "me:canary@proxy.example:3128")];
        assert_eq!(named("https://a.example", &plain), "the proxy http://proxy.example:3128 (HTTPS_PROXY)");
    }

    #[test]
    fn recognizes_names_of_this_machine() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local(&format!("http://{host}:8080/v1")), "{host}");
        }
        for host in ["localhost.evil.org", "10.0.0.1", "example.org", "[::2]"] {
            assert!(!is_local(&format!("http://{host}:8080/v1")), "{host}");
        }
    }

    #[test]
    fn unused_variables_name_no_proxy() {
        let proxy = ("HTTPS_PROXY", "http://proxy.example:3128");
        for variables in [
            &[][..],
            &[("HTTP_PROXY", "http://proxy.example:3128")],
            &[proxy, ("NO_PROXY", "b.example, .example")],
            &[proxy, ("REQUEST_METHOD", "GET")],
            &[("HTTPS_PROXY", "not a URL")],
        ] {
            assert_eq!(named("https://a.example/v1", variables), "none", "{variables:?}");
        }
    }
}
