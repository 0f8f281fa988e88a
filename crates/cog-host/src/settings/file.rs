//! The settings files: `./cog.toml`, and the operator's `~/.config/cog/config.toml`.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
};

use cog_media::{AllowRule, Proxy};
use cog_module::files::{self, FileError};
use cog_provider::vendors::{ModelPrice, Vendor};
use cog_spec::{Ask, Effort, ServiceTier, Verbosity};
use serde::Deserialize;

use super::{
    DetectUrl, SettingsError,
    values::{self, Span},
};

/// The maximum size of a settings file.
const LIMIT: u64 = 256 * 1024;

/// A settings file.
#[derive(Debug)]
pub(super) struct SettingsFile {
    /// Its path.
    pub(super) path: PathBuf,
    /// Its settings.
    pub(super) content: Content,
}

/// The keys of a settings file. An unknown key is an error, so that no misspelt key is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) timeout: Option<Span>,
    pub(super) first_token_timeout: Option<Span>,
    pub(super) idle_timeout: Option<Span>,
    pub(super) retries: Option<u32>,
    pub(super) breaker_failures: Option<u32>,
    pub(super) breaker_reset_timeout: Option<Span>,
    pub(super) strict: Option<bool>,
    pub(super) effort: Option<Effort>,
    pub(super) verbosity: Option<Verbosity>,
    pub(super) service_tier: Option<ServiceTier>,
    pub(super) ask: Option<Ask>,
    pub(super) trust: Option<bool>,
    pub(super) modules: Option<Vec<PathBuf>>,
    pub(super) detect_ollama: Option<DetectUrl>,
    #[serde(default)]
    pub(super) media: MediaContent,
    #[serde(default)]
    pub(super) logs: LogsContent,
    #[serde(default)]
    pub(super) tools: ToolsContent,
    #[serde(default)]
    pub(super) budget: BudgetContent,
    #[serde(default)]
    pub(super) cache: CacheContent,
    #[serde(default)]
    pub(super) nats: NatsContent,
    #[cfg(feature = "mcp")]
    #[serde(default)]
    pub(super) mcp: BTreeMap<String, McpContent>,
    #[serde(default)]
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "the key is known, and no program here has a server")
    )]
    pub(super) server: toml::Table,
    #[serde(default)]
    pub(super) providers: BTreeMap<String, VendorContent>,
}

/// `[providers.NAME]` of a settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VendorContent {
    pub(super) key: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) protocol: Option<String>,
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) prices: BTreeMap<String, PriceContent>,
}

/// `[providers.NAME.prices."MODEL"]` of a settings file: US dollars per million tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceContent {
    pub(super) input: Price,
    pub(super) output: Price,
    pub(super) cached_input: Option<Price>,
    pub(super) cache_write: Option<Price>,
}

impl fmt::Display for PriceContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "input {}, output {}", self.input.0, self.output.0)?;
        if let Some(price) = self.cached_input {
            write!(f, ", cached_input {}", price.0)?;
        }
        if let Some(price) = self.cache_write {
            write!(f, ", cache_write {}", price.0)?;
        }
        Ok(())
    }
}

impl From<PriceContent> for ModelPrice {
    fn from(content: PriceContent) -> Self {
        Self {
            input: content.input.0,
            output: content.output.0,
            cached_input: content.cached_input.map(|price| price.0),
            cache_write: content.cache_write.map(|price| price.0),
        }
    }
}

/// A price, which is not negative.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Price(f64);

impl TryFrom<f64> for Price {
    type Error = String;

    fn try_from(price: f64) -> Result<Self, String> {
        match price.is_finite() && price >= 0.0 {
            true => Ok(Self(price)),
            false => Err(format!("{price} is not a price: use US dollars per million tokens")),
        }
    }
}

/// The owner of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The author of the working directory. Not trusted.
    Project,
    /// The operator.
    Operator,
}

impl SettingsFile {
    /// Reads a settings file, if it exists.
    pub(super) fn read(path: PathBuf, owner: Owner) -> Result<Option<Self>, SettingsError> {
        let text = match files::read_text(&path, LIMIT) {
            Ok(text) => text,
            Err(FileError::Missing | FileError::Empty) => return Ok(None),
            Err(error) => return Err(SettingsError::Unreadable { path, message: error.to_string() }),
        };
        let content = toml::from_str(&text).map_err(|error| syntax(&path, &text, &error))?;
        let file = Self { path, content };
        if owner == Owner::Project
            && let Some(key) = file.operator_key()
        {
            return Err(SettingsError::Forbidden { path: file.path, key });
        }
        file.reject_unknown_providers()?;
        file.reject_unknown_protocols()?;
        Ok(Some(file))
    }

    /// Returns whether it contains a key, a password or a token.
    pub(super) fn has_secret(&self) -> bool {
        let content = &self.content;
        #[cfg(feature = "mcp")]
        if content.mcp.values().any(|server| {
            let has_client_secret = server.oauth.client_secret.is_some();
            server.token.is_some()
                || has_client_secret
                || !server.env.is_empty()
                || !server.headers.is_empty()
        }) {
            return true;
        }
        content.nats.password.is_some() || content.providers.values().any(|vendor| vendor.key.is_some())
    }

    /// Returns the file's directory, where its relative paths start.
    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// Returns the first key that only the operator may set (docs/settings.md): one that decides where data goes, which files are
    /// read, what a run may cost or which programs start. Whoever wrote the working directory must not decide that.
    fn operator_key(&self) -> Option<String> {
        let content = &self.content;
        let sections = [
            ("trust", content.trust.is_some()),
            ("modules", content.modules.is_some()),
            ("detect_ollama", content.detect_ollama.is_some()),
            ("media", content.media != MediaContent::default()),
            ("logs", content.logs != LogsContent::default()),
            ("tools", content.tools != ToolsContent::default()),
            ("cache", content.cache != CacheContent::default()),
            ("nats", content.nats != NatsContent::default()),
            ("budget", content.budget != BudgetContent::default()),
        ];
        if let Some((key, _)) = sections.into_iter().find(|(_, is_set)| *is_set) {
            return Some(key.to_owned());
        }
        #[cfg(feature = "mcp")]
        if let Some(name) = content.mcp.keys().next() {
            return Some(format!("mcp.{name}"));
        }
        #[cfg(feature = "server")]
        if let Some(key) = super::server::operators_key(&content.server) {
            return Some(format!("server.{key}"));
        }
        content.providers.iter().find_map(|(name, vendor)| {
            let VendorContent { key, base_url, protocol, model: _, prices } = vendor;
            // A price of 0 would switch the operator's budgets off.
            let keys = [
                ("key", key.is_some()),
                ("base_url", base_url.is_some()),
                ("protocol", protocol.is_some()),
                ("prices", !prices.is_empty()),
            ];
            let (key, _) = keys.into_iter().find(|(_, is_set)| *is_set)?;
            Some(format!("providers.{name}.{key}"))
        })
    }

    fn reject_unknown_providers(&self) -> Result<(), SettingsError> {
        match self.content.providers.keys().find(|name| Vendor::by_name(name).is_none()) {
            Some(name) => Err(SettingsError::UnknownProvider { path: self.path.clone(), name: name.clone() }),
            None => Ok(()),
        }
    }

    fn reject_unknown_protocols(&self) -> Result<(), SettingsError> {
        for (name, content) in &self.content.providers {
            let (Some(vendor), Some(protocol)) = (Vendor::by_name(name), &content.protocol) else { continue };
            let problem = match vendor.protocol_var {
                None => Some(format!("{} has only one protocol", vendor.title)),
                Some(_) => values::protocol(protocol).err(),
            };
            if let Some(problem) = problem {
                let message = format!("`providers.{name}.protocol`: {problem}");
                return Err(SettingsError::Syntax { path: self.path.clone(), line: None, message });
            }
        }
        Ok(())
    }
}

fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> SettingsError {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| before.lines().count().max(1) + usize::from(before.ends_with('\n')));
    let path = path.to_owned();
    let message = error.message().replace('\n', " ");
    match unknown_key(&message) {
        Some((key, known)) => SettingsError::UnknownKey { path, line, key, known },
        None => SettingsError::Syntax { path, line, message },
    }
}

/// Returns the keys that the parser knows in a section.
#[cfg(test)]
pub(super) fn known_keys(section: &str) -> Vec<String> {
    let text = format!("{section}\nnot-a-key = 1\n");
    let error = toml::from_str::<Content>(&text).unwrap_err();
    let (key, known) = unknown_key(&error.message().replace('\n', " ")).unwrap();
    assert_eq!(key, "not-a-key");
    known
}

/// Returns the key and the known keys of the parser's message "unknown field `a`, expected one of `b`, `c`".
fn unknown_key(message: &str) -> Option<(String, Vec<String>)> {
    // The parser's word for a key is `field`, which no user has written.
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

/// `[media]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MediaContent {
    pub(super) fetch: Option<bool>,
    pub(super) by_url: Option<bool>,
    pub(super) strip_metadata: Option<bool>,
    pub(super) allow: Option<Vec<Parsed<AllowRule>>>,
    pub(super) proxy: Option<Parsed<Proxy>>,
    pub(super) timeout: Option<Span>,
    pub(super) redirects: Option<u32>,
    pub(super) cache: Option<Size>,
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) ffmpeg: Option<PathBuf>,
}

/// A value that is read from a string by its own rules.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err: Display>")]
pub(super) struct Parsed<T>(pub(super) T);

impl<T: FromStr> TryFrom<String> for Parsed<T> {
    type Error = T::Err;

    fn try_from(text: String) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

/// A size, written `256MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Size(pub(super) usize);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        values::bytes(&text).map(Size)
    }
}

/// `[budget]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetContent {
    pub(super) max_cost: Option<f64>,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_calls: Option<u64>,
}

/// `[cache]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheContent {
    pub(super) directory: Option<PathBuf>,
    pub(super) max_age: Option<Span>,
    pub(super) max_bytes: Option<Size>,
}

/// `[logs]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsContent {
    pub(super) enabled: Option<bool>,
    pub(super) server: Option<bool>,
    pub(super) contents: Option<bool>,
    pub(super) max_bytes: Option<Size>,
    pub(super) directory: Option<PathBuf>,
}

/// `[nats]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NatsContent {
    pub(super) url: Option<String>,
    pub(super) credentials: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) ca: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) replicas: Option<usize>,
    pub(super) ack_wait: Option<Span>,
    pub(super) max_deliveries: Option<u64>,
    pub(super) module_wait: Option<Span>,
    pub(super) max_age: Option<Span>,
}

/// `[tools]` of a settings file.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsContent {
    pub(super) confirm: Option<Vec<String>>,
    pub(super) max_rounds: Option<u32>,
    pub(super) max_calls: Option<u32>,
    pub(super) max_parallel: Option<usize>,
    pub(super) call_timeout: Option<Span>,
    pub(super) max_result_bytes: Option<Size>,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_cost: Option<f64>,
    pub(super) state_dir: Option<PathBuf>,
}

/// `[mcp.NAME]` of a settings file.
#[cfg(feature = "mcp")]
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpContent {
    pub(super) command: Option<PathBuf>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) directory: Option<PathBuf>,
    pub(super) url: Option<String>,
    pub(super) token: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) oauth: OAuthContent,
    pub(super) startup_timeout: Option<Span>,
    pub(super) call_timeout: Option<Span>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) confirm: Option<Confirm>,
    pub(super) parallel: Option<bool>,
    #[serde(default)]
    pub(super) sampling: bool,
    pub(super) roots: Option<Vec<PathBuf>>,
    pub(super) protocol: Option<McpProtocol>,
    #[serde(default)]
    pub(super) required: bool,
}

/// Which tools of a server need a confirmation: all or none, or a list.
#[cfg(feature = "mcp")]
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Confirm {
    All(bool),
    Tools(Vec<String>),
}

/// `[mcp.NAME.oauth]` of a settings file.
#[cfg(feature = "mcp")]
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuthContent {
    pub(super) grant: Option<OAuthGrant>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    pub(super) issuer: Option<String>,
    pub(super) callback_port: Option<u16>,
}

/// Who signs in: a person, or the client as itself.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OAuthGrant {
    AuthorizationCode,
    ClientCredentials,
}

/// With which request a connection begins.
#[cfg(feature = "mcp")]
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum McpProtocol {
    Auto,
    Initialize,
}
