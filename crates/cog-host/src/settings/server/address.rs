//! Parsers of addresses in the settings of a server.

use std::net::{IpAddr, Ipv4Addr};

/// Parses the base URL of a server and removes a trailing slash.
pub(super) fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain =
        |rest: &str| rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte));
    match rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/') && is_plain(rest)) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err(format!("`{text}` is not a valid base URL: use a form such as https://cog.example")),
    }
}

/// Parses an IP address, or `localhost`.
pub(super) fn ip_address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .map_err(|_| format!("`{text}` is not an IP address: use 127.0.0.1, ::1 or 0.0.0.0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_is_an_origin_with_an_optional_path() {
        for (text, read) in [
            ("https://cog.example", "https://cog.example"),
            ("http://[::1]:8000/", "http://[::1]:8000"),
            ("https://example.org/cog/", "https://example.org/cog"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(read));
        }
        for text in [
            "",
            "cog.example",
            "https://",
            "https:///x",
            "ftp://x",
            "https://x?a",
            "https://a@b",
            "https://a b",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_ip_addresses() {
        assert!(ip_address("localhost").unwrap().is_loopback());
        assert!(ip_address("[::1]").unwrap().is_loopback());
        assert!(ip_address("example.org").is_err());
    }
}
