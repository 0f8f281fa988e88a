//! The vendors that can be called, with one row for each.
//!
//! A row contains everything specific to one vendor. The protocol contains what vendors share.

mod model_table;
mod models;
mod prices;
mod table;
mod tool_table;

use std::time::Duration;

use cog_spec::{Dialect, Modality, Secret};
use thiserror::Error;
use url::Url;

use crate::{Formats, protocol_kind::ProtocolKind};

pub use self::models::{RequestLimits, ToolSettings, ToolSupport};
pub(crate) use models::has_prefix;
pub use models::{CacheMark, ModelSettings, PromptCache, Temperature};
pub use prices::{ModelPrice, ModelPrices};
pub(crate) use prices::{context_window, cost};
pub use table::VENDORS;

/// A vendor: a row of [`VENDORS`] (docs/settings.md).
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The name used in settings, `openai`.
    pub name: &'static str,
    /// The display name, `OpenAI`.
    pub title: &'static str,
    /// The vendor's wire form.
    pub protocol: ProtocolKind,
    /// The default base URL; empty if only the operator knows it.
    pub base_url: &'static str,
    /// The variables that override the base URL, in order of precedence.
    pub base_url_vars: &'static [&'static str],
    /// The variable that chooses between Chat Completions and Responses; `None` if the vendor implements neither.
    pub protocol_var: Option<&'static str>,
    /// The path to append to a base URL without a path.
    pub default_path: &'static str,
    /// The port for a base URL without scheme and port; set only if the vendor's own tools do so.
    pub default_port: Option<u16>,
    /// The variables that contain the key, in order of precedence.
    pub key_vars: &'static [&'static str],
    /// Whether calls need a key.
    pub key: AuthRequirement,
    /// The header that carries the key.
    pub auth: Auth,
    /// The model to call if none is named.
    pub default_model: Option<&'static str>,
    /// The path whose reply contains `version`, if a server at the default base URL is used without a setting.
    pub version_path: Option<&'static str>,
    /// The commands of a server on the user's machine.
    pub commands: Option<Commands>,
    /// The models that the vendor will shut down, with the date; a name also matches its versions (`o3-mini` for `o3`).
    pub retirements: &'static [(&'static str, &'static str)],
    /// The schema dialect that the vendor supports for answers.
    pub dialect: Dialect,
    /// The price list: a provider of `genai-prices`. None if the vendor has no public prices.
    pub prices: Option<&'static str>,
    /// The engine, if what it enforces of a schema was measured (`cog_schema::Enforcement`).
    pub engine: Option<&'static str>,
    /// The input modalities that its models support.
    pub input: &'static [Modality],
    /// The media formats that the vendor accepts.
    pub formats: Formats,
    /// The models that generate media; the first match for a name applies.
    pub media_models: &'static [MediaModel],
    /// The settings that its models support; the first match for a name applies.
    pub models: &'static [ModelSettings],
    /// How its models use tools; the first match for a name applies.
    pub tools: &'static [ToolSettings],
    /// The differences from its protocol.
    pub quirks: Quirks,
}

/// The commands of a server that runs on the user's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commands {
    /// Starts the server: `ollama serve`.
    pub start: &'static str,
    /// Downloads a model, whose name follows: `ollama pull`.
    pub pull: &'static str,
}

/// Models that differ from the others of their vendor in the media that they accept or generate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaModel {
    /// A substring of their names; the empty string matches every name.
    pub name_contains: &'static str,
    /// The kinds of media that they generate.
    pub output: &'static [Modality],
    /// The modalities of an input that they accept; `None` for the row's own.
    pub input: Option<&'static [Modality]>,
    /// Whether they accept a schema for an answer without media.
    pub has_schema: bool,
    /// What they accept in addition to a prompt, if they generate only images.
    pub images: ImageSettings,
    /// The wire form for these models; `None` for the row's own.
    pub protocol: Option<ProtocolKind>,
}

impl MediaModel {
    /// Any model, which may generate any media.
    pub const ANY: Self = Self {
        name_contains: "",
        output: &[Modality::Image, Modality::Audio, Modality::Video],
        input: None,
        has_schema: true,
        images: ImageSettings::NONE,
        protocol: None,
    };

    /// Returns the first entry that matches the model's name.
    pub(crate) fn find<'a>(entries: &'a [Self], model: &str) -> Option<&'a Self> {
        entries.iter().find(|entry| model.contains(entry.name_contains))
    }
}

/// Whether a vendor requires a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthRequirement {
    /// Always.
    Required,
    /// Only if the operator configured one: self-hosted servers.
    Optional,
}

/// How a key is sent. It is always a header, so that it never appears in a URL or in a log of URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `NAME: KEY`.
    Header(&'static str),
}

impl Auth {
    /// Returns the header's name, and its value for this key.
    pub fn header(self, key: &str) -> (&'static str, String) {
        match self {
            Auth::Bearer => ("authorization", format!("Bearer {key}")),
            Auth::Header(name) => (name, key.to_owned()),
        }
    }
}

/// The differences between a vendor and its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The parameter for the maximum number of output tokens.
    pub max_tokens: &'static str,
    /// The parameter for the seed, if the vendor has one.
    pub seed: Option<&'static str>,
    /// Whether the vendor supports `stream_options`.
    pub stream_options: bool,
    /// Whether the vendor can stream an answer with a schema.
    pub streams_schema: bool,
    /// Whether the vendor pads the events of a Responses stream with random text unless a request disables it.
    pub pads_events: bool,
    /// Whether the server accepts a grammar instead of a schema.
    pub grammar: bool,
    /// When the server reports the probabilities of the tokens of an answer.
    pub probabilities: TokenProbabilities,
    /// Additional fields of the body: the key, and its value as JSON.
    pub extra: &'static [(&'static str, &'static str)],
}

/// When a server reports the probabilities of the tokens of an answer. Another model refuses the request for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenProbabilities {
    /// Never, or nothing is known about it.
    Never,
    /// While it enforces a grammar.
    WithGrammar,
    /// Always.
    Always,
    /// If the model does not reason.
    WithoutReasoning,
    /// For the models whose names begin with one of these.
    Models(&'static [&'static str]),
}

impl Quirks {
    /// No differences.
    pub const NONE: Self = Self {
        max_tokens: "max_tokens",
        seed: Some("seed"),
        stream_options: true,
        streams_schema: true,
        pads_events: false,
        grammar: false,
        probabilities: TokenProbabilities::Never,
        extra: &[],
    };
}

impl Vendor {
    /// Returns the kinds of media that a model generates besides text.
    pub fn output_media(&self, model: &str) -> &'static [Modality] {
        MediaModel::find(self.media_models, model).map_or(&[], |found| found.output)
    }

    /// Returns what a model that generates only images accepts in addition to a prompt.
    pub(crate) fn image_settings(&self, model: &str) -> ImageSettings {
        MediaModel::find(self.media_models, model).map_or(ImageSettings::NONE, |found| found.images)
    }

    /// Returns the modalities that a model accepts.
    pub fn input_of(&self, model: &str) -> &'static [Modality] {
        MediaModel::find(self.media_models, model).and_then(|found| found.input).unwrap_or(self.input)
    }

    /// Returns whether one of its models accepts this modality.
    pub(crate) fn accepts(&self, modality: Modality) -> bool {
        let inputs = self.media_models.iter().filter_map(|model| model.input);
        inputs.chain([self.input]).any(|input| input.contains(&modality))
    }

    /// Returns the wire form for a model, on a server that uses `protocol`. Models that generate media use Chat
    /// Completions instead of Responses.
    pub fn protocol_of(&self, model: &str, protocol: ProtocolKind) -> ProtocolKind {
        match MediaModel::find(self.media_models, model) {
            Some(found) if protocol == ProtocolKind::OpenAiResponses => {
                found.protocol.unwrap_or(ProtocolKind::OpenAiChat)
            }
            found => found.and_then(|found| found.protocol).unwrap_or(protocol),
        }
    }

    /// Returns the date from which a model is not available, `2026-12-11`, if the vendor's row contains it.
    pub fn retires_at(&self, model: &str) -> Option<&'static str> {
        let row = self.retirements.iter().find(|(name, _)| {
            model.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        row.map(|(_, date)| *date)
    }

    /// Returns the variable that sets the model, named like the one for the base URL: `VLLM_MODEL`.
    pub fn model_var(&self) -> Option<String> {
        let stem = self.base_url_vars.iter().find_map(|name| name.strip_suffix("_BASE_URL"))?;
        Some(format!("{stem}_MODEL"))
    }

    /// Returns the variable to name in messages about the key.
    pub fn key_var(&self) -> Option<&'static str> {
        self.key_vars.first().copied()
    }
}

// The base URL of a vendor.

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
    // `OLLAMA_HOST=box` means the port 11434 to Ollama's own tools, not 80.
    if !has_scheme && !has_port(text) && vendor.default_port.is_some() {
        let _ = url.set_port(vendor.default_port);
    }
    // The variable of a server also says where it listens. Windows cannot connect to that address.
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

// The wire form that a server implements.

/// Returns the wire form of the server at a normalized base URL: the configured one, otherwise the vendor's.
///
/// A server that is not the vendor's own is a gateway. It may not implement Responses, so it gets Chat Completions.
#[cfg(feature = "http")]
pub(crate) fn protocol_at(vendor: &Vendor, base_url: &str, configured: Option<ProtocolKind>) -> ProtocolKind {
    match (configured, vendor.protocol) {
        (Some(configured), ProtocolKind::OpenAiChat | ProtocolKind::OpenAiResponses) => configured,
        (None, ProtocolKind::OpenAiResponses) if !is_own(vendor, base_url) => ProtocolKind::OpenAiChat,
        (_, own) => own,
    }
}

/// Returns whether the host of a base URL is the vendor's, or a subdomain of it, such as one for a region.
#[cfg(feature = "http")]
pub(crate) fn is_own(vendor: &Vendor, base_url: &str) -> bool {
    let Some(own) = host_of(vendor.base_url) else { return false };
    // A host that only ends with the same letters, `notopenai.com`, is somebody else's.
    let host = host_of(base_url).unwrap_or_default();
    host.strip_suffix(own.as_str()).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}

#[cfg(feature = "http")]
fn host_of(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

// The operator's settings for a vendor: key, base URL, model, limits.

/// The settings for calling a provider. They come from the operator, never from a request, a module or a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// The key.
    pub key: Option<Secret>,
    /// The base URL, if it differs from the vendor's default.
    pub base_url: Option<String>,
    /// The protocol, if it differs from the default for the base URL.
    pub protocol: Option<ProtocolKind>,
    /// The model, if it differs from the vendor's default.
    pub model: Option<String>,
    /// The operator's prices of models, which precede the vendor's list. A gateway has no list.
    pub prices: ModelPrices,
    /// Further keys of the operator, which a recording masks like its own.
    pub secrets: Vec<Secret>,
    /// The maximum number of retries before the first token (2).
    pub retries: u32,
    /// The timeout for establishing a connection (10 s).
    pub connect_timeout: Duration,
    /// The timeout for the first token (5 min, since reasoning models start slowly).
    pub first_token_timeout: Duration,
    /// The maximum time between two chunks of a reply (2 min).
    pub idle_timeout: Duration,
    /// Whether a large request is written with [`tokio::task::block_in_place`], so that other tasks continue meanwhile
    /// (false). It has no effect on a runtime with one thread. Calls within a [`tokio::task::LocalSet`] must not set
    /// it.
    pub block_in_place: bool,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            key: None,
            base_url: None,
            protocol: None,
            model: None,
            prices: ModelPrices::NONE,
            secrets: Vec::new(),
            retries: 2,
            connect_timeout: Duration::from_secs(10),
            first_token_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(120),
            block_in_place: false,
        }
    }
}

impl ProviderSettings {
    /// Reads a vendor's key, base URL and protocol from the operator's settings, by the vendor's variable names. A
    /// protocol that [`ProtocolKind::from_setting`] rejects counts as unset.
    pub fn from_variables(vendor: &Vendor, setting: impl Fn(&str) -> Option<String>) -> Self {
        let protocol = first_set(vendor.protocol_var.as_slice(), &setting);
        Self {
            key: first_set(vendor.key_vars, &setting).map(Secret::new),
            base_url: first_set(vendor.base_url_vars, &setting),
            protocol: protocol.as_deref().and_then(ProtocolKind::from_setting),
            ..Self::default()
        }
    }
}

/// Returns the first setting that is not absent or blank.
fn first_set(names: &[&str], setting: &impl Fn(&str) -> Option<String>) -> Option<String> {
    names
        .iter()
        .filter_map(|name| setting(name))
        .map(|value| value.trim().to_owned())
        .find(|value| !value.is_empty())
}

/// What a model that generates only images accepts in addition to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSettings {
    /// The sizes.
    pub sizes: ImageSizes,
    /// The styles.
    pub styles: &'static [&'static str],
}

/// The sizes of generated images, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSizes {
    /// These widths and heights.
    Listed(&'static [(u32, u32)]),
    /// All within limits.
    Within {
        /// Each side is a multiple of this.
        multiple: u32,
        /// The maximum of the longer side.
        max_side: u32,
        /// The maximum ratio of the longer side to the shorter one.
        max_ratio: u32,
        /// The minimum and maximum number of pixels.
        pixels: (u32, u32),
    },
}

impl ImageSettings {
    /// Only the prompt.
    pub const NONE: Self = Self { sizes: ImageSizes::Listed(&[]), styles: &[] };
}

impl ImageSizes {
    /// Returns whether an image may have this width and height.
    pub fn contain(&self, size: (u32, u32)) -> bool {
        let (width, height) = size;
        match *self {
            Self::Listed(sizes) => sizes.contains(&(width, height)),
            Self::Within { multiple, max_side, max_ratio, pixels: (min, max) } => {
                let long = width.max(height);
                let short = width.min(height);
                let is_multiple = width.is_multiple_of(multiple) && height.is_multiple_of(multiple);
                let pixels = u64::from(width) * u64::from(height);
                is_multiple
                    && long <= max_side
                    && u64::from(long) <= u64::from(short) * u64::from(max_ratio)
                    && (u64::from(min)..=u64::from(max)).contains(&pixels)
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "http")]
mod protocol_tests {
    use super::*;

    /// A vendor that uses Responses.
    fn vendor() -> Vendor {
        Vendor { base_url: "https://api.example/v1", ..*Vendor::by_name("openai").unwrap() }
    }

    #[test]
    fn vendors_own_server_gets_the_vendors_protocol() {
        for url in ["https://api.example/v1", "https://eu.api.example/v1", "http://api.example:8080"] {
            assert_eq!(protocol_at(&vendor(), url, None), ProtocolKind::OpenAiResponses, "{url}");
        }
    }

    #[test]
    fn gateway_gets_chat() {
        for url in ["http://127.0.0.1:4000/v1", "https://notapi.example/v1", "https://api.example.org/v1"] {
            assert_eq!(protocol_at(&vendor(), url, None), ProtocolKind::OpenAiChat, "{url}");
        }
    }

    #[test]
    fn configured_protocol_applies_to_every_server() {
        for kind in [ProtocolKind::OpenAiChat, ProtocolKind::OpenAiResponses] {
            for url in ["https://api.example/v1", "http://127.0.0.1:4000/v1"] {
                assert_eq!(protocol_at(&vendor(), url, Some(kind)), kind, "{url}");
            }
            let groq = Vendor::by_name("groq").unwrap();
            assert_eq!(protocol_at(groq, groq.base_url, Some(kind)), kind);
            let gemini = Vendor::by_name("gemini").unwrap();
            assert_eq!(protocol_at(gemini, gemini.base_url, Some(kind)), ProtocolKind::Gemini);
        }
    }
}

#[cfg(test)]
mod tests;
