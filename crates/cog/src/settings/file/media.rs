//! `[media]` of a settings file.

use std::path::PathBuf;

use cog_media::{AllowRule, Proxy, ProxyError, RuleError};
use serde::Deserialize;

use crate::settings::{amount, duration::Span};

/// `[media]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaContent {
    pub(crate) fetch: Option<bool>,
    pub(crate) by_url: Option<bool>,
    pub(crate) strip_metadata: Option<bool>,
    pub(crate) allow: Option<Vec<Rule>>,
    pub(crate) proxy: Option<ProxyUrl>,
    pub(crate) timeout: Option<Span>,
    pub(crate) redirects: Option<u32>,
    pub(crate) cache: Option<Size>,
    pub(crate) roots: Option<Vec<PathBuf>>,
    pub(crate) ffmpeg: Option<PathBuf>,
}

/// A rule, as a string.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Rule(pub(crate) AllowRule);

impl TryFrom<String> for Rule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse().map(Rule)
    }
}

/// A proxy, as a string.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ProxyUrl(pub(crate) Proxy);

impl TryFrom<String> for ProxyUrl {
    type Error = ProxyError;

    fn try_from(text: String) -> Result<Self, ProxyError> {
        text.parse().map(ProxyUrl)
    }
}

/// A size, written `256MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) usize);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        amount::bytes(&text).map(Size)
    }
}
