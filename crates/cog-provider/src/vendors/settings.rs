//! The operator's settings for a vendor: key, base URL, model, limits.

use std::time::Duration;

use cog_spec::Secret;
use thiserror::Error;
use url::Url;

use super::Vendor;

/// The settings for calling a provider. They come from the operator, never from a request, a module or a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// The key.
    pub key: Option<Secret>,
    /// The base URL, if it differs from the vendor's default.
    pub base_url: Option<String>,
    /// The model, if it differs from the vendor's default.
    pub model: Option<String>,
    /// The maximum number of retries before the first token (2).
    pub retries: u32,
    /// The timeout for establishing a connection (10 s).
    pub connect_timeout: Duration,
    /// The timeout for the first token (5 min, since reasoning models start slowly).
    pub first_token_timeout: Duration,
    /// The maximum time between two chunks of a reply (2 min).
    pub idle_timeout: Duration,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            key: None,
            base_url: None,
            model: None,
            retries: 2,
            connect_timeout: Duration::from_secs(10),
            first_token_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(120),
        }
    }
}

impl ProviderSettings {
    /// Reads a vendor's key and base URL from the operator's settings, by the vendor's variable names.
    pub fn from_variables(vendor: &Vendor, setting: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| given(setting(name)));
        Self {
            key: first(vendor.key_vars).map(Secret::new),
            base_url: first(vendor.base_url_vars),
            ..Self::default()
        }
    }
}

/// Returns a setting unless it is absent or blank.
pub(super) fn given(value: Option<String>) -> Option<String> {
    value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The reason that a base URL is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBaseUrl {
    /// No URL is configured, and the vendor's row has none.
    #[error("no address is set")]
    Missing,
    /// The URL does not parse, or is neither http nor https.
    #[error("`{0}` is no http or https address")]
    NotHttp(String),
    /// The URL contains a name and password, which would be written to logs.
    #[error("the address holds credentials; give the key in its own variable")]
    Credentials,
    /// The URL contains a query or fragment, so the protocol's path cannot be appended.
    #[error("the address must end before `?` and `#`")]
    Query,
}

/// Normalizes a vendor's base URL, without a trailing slash: `given`, otherwise the vendor's default.
///
/// A URL without a scheme is read as `http`, the usual notation for self-hosted servers
/// (`OLLAMA_HOST=127.0.0.1:11434`). The host 0.0.0.0, on which servers listen, becomes 127.0.0.1.
///
/// # Errors
/// Fails if the URL is invalid.
pub fn normal_base_url(vendor: &Vendor, given: Option<&str>) -> Result<String, InvalidBaseUrl> {
    let text = given.unwrap_or(vendor.base_url).trim();
    if text.is_empty() {
        return Err(InvalidBaseUrl::Missing);
    }
    let bare = !text.contains("://");
    let with_scheme = if bare { format!("http://{text}") } else { text.to_owned() };
    let mut url = Url::parse(&with_scheme).map_err(|_| InvalidBaseUrl::NotHttp(text.to_owned()))?;
    check(&url, text)?;
    if bare && !names_port(text) && vendor.default_port.is_some() {
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

fn names_port(bare: &str) -> bool {
    let authority = bare.split('/').next().unwrap_or_default();
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
