//! What the operator sets for a vendor: key, address, model, limits.

use std::time::Duration;

use cog_spec::Secret;
use thiserror::Error;
use url::Url;

use super::Vendor;

/// How a provider is to be asked. Comes from the operator; never from a request, a module or a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// The key.
    pub key: Option<Secret>,
    /// Another address than the vendor's own.
    pub base_url: Option<String>,
    /// Another model than the vendor's default.
    pub model: Option<String>,
    /// How often to try again before the first token (2).
    pub retries: u32,
    /// How long a connection may take to stand (10 s).
    pub connect: Duration,
    /// How long the first token may take (5 min: reasoning models are slow to begin).
    pub first_token: Duration,
    /// How long a reply may be silent once it has begun (2 min).
    pub stall: Duration,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            key: None,
            base_url: None,
            model: None,
            retries: 2,
            connect: Duration::from_secs(10),
            first_token: Duration::from_secs(300),
            stall: Duration::from_secs(120),
        }
    }
}

impl ProviderSettings {
    /// MediaCapabilities a vendor's key and address out of the operator's settings, by the vendor's variables.
    pub fn of(vendor: &Vendor, setting: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| given(setting(name)));
        Self {
            key: first(vendor.key_vars).map(Secret::new),
            base_url: first(vendor.base_url_vars),
            ..Self::default()
        }
    }
}

/// A setting that says something: neither absent nor blank.
pub(super) fn given(value: Option<String>) -> Option<String> {
    value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// An address that no vendor can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBaseUrl {
    /// None is given, and the vendor's row has none.
    #[error("no address is set")]
    Missing,
    /// It does not parse, or is neither http nor https.
    #[error("`{0}` is no http or https address")]
    NotHttp(String),
    /// It holds a name and password, which would end up in logs.
    #[error("the address holds credentials; give the key in its own variable")]
    Credentials,
    /// It holds a query or fragment, which the paths of the protocol cannot follow.
    #[error("the address must end before `?` and `#`")]
    Query,
}

/// A vendor's address without a slash at its end: `given`, else the vendor's own.
///
/// An address without a scheme is taken as `http`, since that is how servers of one's own are named
/// (`OLLAMA_HOST=127.0.0.1:11434`); 0.0.0.0, on which servers listen, becomes 127.0.0.1.
///
/// # Errors
/// An address that cannot be asked.
pub fn normal_base_url(vendor: &Vendor, given: Option<&str>) -> Result<String, InvalidBaseUrl> {
    let text = given.unwrap_or(vendor.base_url).trim();
    if text.is_empty() {
        return Err(InvalidBaseUrl::Missing);
    }
    let bare = !text.contains("://");
    let whole = if bare { format!("http://{text}") } else { text.to_owned() };
    let mut url = Url::parse(&whole).map_err(|_| InvalidBaseUrl::NotHttp(text.to_owned()))?;
    check(&url, text)?;
    if bare && !names_port(text) && vendor.bare_port.is_some() {
        let _ = url.set_port(vendor.bare_port);
    }
    if url.host_str() == Some("0.0.0.0") {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    if matches!(url.path(), "" | "/") {
        url.set_path(vendor.bare_path);
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
