//! The base URL of a vendor.

use thiserror::Error;
use url::Url;

use super::Vendor;

/// The reason that a base URL is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBaseUrl {
    /// No URL is configured, and the vendor's row has none.
    #[error("no base URL is configured")]
    Missing,
    /// The URL does not parse, or is neither http nor https.
    #[error("`{0}` is not a valid http or https URL")]
    NotHttp(String),
    /// The URL contains a name and password, which would be written to logs.
    #[error("the base URL contains credentials; set the key in its own variable")]
    Credentials,
    /// The URL contains a query or fragment, so the protocol's path cannot be appended.
    #[error("the base URL contains a query or a fragment")]
    Query,
}

/// Normalizes a vendor's base URL, without a trailing slash: `configured`, otherwise the vendor's default.
///
/// A URL without a scheme is read as `http`, the usual notation for self-hosted servers
/// (`OLLAMA_HOST=127.0.0.1:11434`). The host 0.0.0.0, on which servers listen, becomes 127.0.0.1.
///
/// # Errors
/// Fails if the URL is invalid.
pub fn normalize_base_url(vendor: &Vendor, configured: Option<&str>) -> Result<String, InvalidBaseUrl> {
    let text = configured.unwrap_or(vendor.base_url).trim();
    if text.is_empty() {
        return Err(InvalidBaseUrl::Missing);
    }
    let has_scheme = text.contains("://");
    let with_scheme = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|_| InvalidBaseUrl::NotHttp(text.to_owned()))?;
    check(&url, text)?;
    if !has_scheme && !has_port(text) && vendor.default_port.is_some() {
        let _ = url.set_port(vendor.default_port);
    }
    if url.host_str() == Some("0.0.0.0") {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    if matches!(url.path(), "" | "/") {
        url.set_path(vendor.default_path);
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn has_port(text: &str) -> bool {
    let authority = text.split('/').next().unwrap_or_default();
    authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

fn check(url: &Url, text: &str) -> Result<(), InvalidBaseUrl> {
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(InvalidBaseUrl::NotHttp(text.to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidBaseUrl::Credentials);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(InvalidBaseUrl::Query);
    }
    Ok(())
}
