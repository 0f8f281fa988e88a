//! The server on this machine that is used if no provider is configured.

use cog_provider::{
    ListedModel,
    vendors::{VENDORS, Vendor},
};
use serde::Deserialize;

use super::values;

/// Where to look for a running Ollama if no provider is configured; none if that is off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DetectUrl(
    /// The base URL.
    pub Option<String>,
);

impl DetectUrl {
    /// Parses `on`, `off`, or a URL.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self(Some(text.to_owned())));
        }
        match values::switch(text) {
            Ok(true) => Ok(Self::default()),
            Ok(false) => Ok(Self(None)),
            Err(_) => Err(format!("`{text}` is not valid: use `on`, `off` or a URL")),
        }
    }
}

impl Default for DetectUrl {
    fn default() -> Self {
        Self(detectable().map(|vendor| vendor.base_url.to_owned()))
    }
}

impl TryFrom<String> for DetectUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

/// A running server that was found without a setting.
#[derive(Debug, Clone)]
pub struct DetectedServer {
    /// Its row.
    pub vendor: &'static Vendor,
    /// Its base URL.
    pub base_url: String,
    /// Its models.
    pub models: Vec<ListedModel>,
}

impl DetectedServer {
    /// Returns the model to call if none is set: the vendor's default if it is installed, otherwise the first one that is
    /// not an embedding model.
    pub fn model(&self) -> Option<&str> {
        let default = self.vendor.default_model.unwrap_or_default();
        let generates =
            |model: &&ListedModel| !model.name.contains("embed") && !model.name.contains("minilm");
        let preferred = self.models.iter().find(|model| model.is_named(default));
        let model = preferred.or_else(|| self.models.iter().find(generates))?;
        Some(&model.name)
    }
}

/// Returns the row of the server that can be found without a setting.
pub fn detectable() -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.version_path.is_some())
}
