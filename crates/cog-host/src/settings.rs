//! Settings: read once from flags, environment and files, then passed as data (docs/settings.md).

mod certificates;
mod detected;
mod directories;
mod error;
mod file;
#[cfg(feature = "mcp")]
mod mcp;
mod media;
mod nats;
mod rows;
mod runs;
mod schema;
#[cfg(feature = "server")]
mod server;
mod sources;
mod storage;
#[cfg_attr(not(feature = "telemetry"), path = "settings/telemetry/absent.rs")]
mod telemetry;
mod values;

use std::{path::PathBuf, sync::OnceLock, time::Duration};

use cog_provider::{
    BreakerSettings,
    vendors::{ModelPrices, ProviderSettings, VENDORS, Vendor},
};
use cog_run::events::SpanContext;
use cog_spec::Secret;
use cog_store::private;

use self::{
    file::{Owner, SettingsFile},
    sources::{Layers, Names},
    telemetry::TelemetryExport,
};

pub(crate) use self::detected::detect;
#[cfg(feature = "mcp")]
pub(crate) use self::mcp::DEPTH as MCP_DEPTH;
#[cfg(feature = "server")]
pub use self::server::{SERVER_SETTINGS, ServeSettings, ServerSetting};
pub use self::{
    certificates::CertificateSource,
    detected::{DetectUrl, DetectedServer, detectable},
    directories::UserDirectories,
    error::SettingsError,
    media::MediaSettings,
    nats::NatsSettings,
    rows::{DisplayValue, Row, without_credentials},
    runs::{BudgetSettings, GenerationSettings, ToolsSettings},
    schema::settings_schema,
    sources::{Environment, Redactor, Setting, Source},
    storage::{CacheSettings, LogsSettings},
    values::{duration as parse_duration, show_duration},
};

/// The default maximum run time.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// A settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// Its path.
    pub path: PathBuf,
    /// Whether it exists and was read.
    pub is_read: bool,
}

/// The settings that the flags of a command set; the strongest source.
#[derive(Debug, Default)]
pub struct Flags {
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--strict`, if given.
    pub strict: Option<bool>,
    /// `--trust`, if given.
    pub trust: Option<bool>,
}

/// Every setting with its source.
#[derive(Debug)]
pub struct Settings {
    /// The provider, if one is selected.
    pub provider: Setting<Option<String>>,
    /// The model, if one is selected.
    pub model: Setting<Option<String>>,
    /// The maximum run time.
    pub timeout: Setting<Duration>,
    /// The maximum time to the first token.
    pub first_token_timeout: Setting<Duration>,
    /// The maximum time without data after the first token.
    pub idle_timeout: Setting<Duration>,
    /// The maximum retries of a call before its first token.
    pub retries: Setting<u32>,
    /// The consecutive failures after which a provider is skipped for a while; 0 = never.
    pub breaker_failures: Setting<u32>,
    /// The time for which it is skipped.
    pub breaker_reset_timeout: Setting<Duration>,
    /// Whether any repair is a violation (ruling R26).
    pub strict: Setting<bool>,
    /// Whether modules of every working directory may call tools.
    pub trust: Setting<bool>,
    /// Additional module directories.
    pub modules: Setting<Vec<PathBuf>>,
    /// Where to look for a running Ollama if no provider is configured.
    pub detect_ollama: Setting<DetectUrl>,
    /// The server that was found there, once it was looked for.
    pub detected: OnceLock<Option<DetectedServer>>,
    /// The parameters of the generation that runs prefer.
    pub generation: GenerationSettings,
    /// Which media of an input may be opened.
    pub media: MediaSettings,
    /// The log of runs.
    pub logs: LogsSettings,
    /// The limits of tool calls, and the tools that need a confirmation.
    pub tools: ToolsSettings,
    /// The budget of each run.
    pub budget: BudgetSettings,
    /// The cache of answers.
    pub cache: CacheSettings,
    /// The connection to NATS.
    pub nats: NatsSettings,
    /// The MCP servers.
    #[cfg(feature = "mcp")]
    pub mcp: Vec<cog_mcp::McpServer>,
    /// The user's directories.
    pub directories: UserDirectories,
    /// Where spans and metrics are exported.
    pub(crate) telemetry: TelemetryExport,
    environment: Environment,
    /// The operator's settings file, if its directory cannot be entered.
    unreachable: Option<PathBuf>,
    operator: Option<SettingsFile>,
    project: Option<SettingsFile>,
}

impl Settings {
    /// Reads flags, environment and files.
    ///
    /// # Errors
    /// An invalid variable or file, or a file that sets what only the operator may set; [`SettingsError::Reader`] in a process
    /// that [`cog_media::Tool`] started, whose program should have called [`cog_media::internal_media`].
    pub fn read(flags: Flags, environment: Environment) -> Result<Self, SettingsError> {
        if environment.get(cog_media::READER_VARIABLE).is_some() {
            return Err(SettingsError::Reader);
        }
        let directories = UserDirectories::read(&environment);
        let own = directories.config.as_deref().map(|directory| directory.join("config.toml"));
        // A service may run as another user, with the home directory of the one who started it.
        let (own, unreachable) = match own {
            Some(path) if path.try_exists().is_err() => (None, Some(path)),
            own => (own, None),
        };
        let layers = Layers {
            environment: &environment,
            project: SettingsFile::read(PathBuf::from("cog.toml"), Owner::Project)?,
            operator: own.map_or(Ok(None), |path| SettingsFile::read(path, Owner::Operator))?,
            directories: &directories,
        };
        check_protocols(&environment)?;
        let call = ProviderSettings::default();
        let breaker = BreakerSettings::default();
        let text = values::text;
        let span = values::duration;
        // Every source is read now, so that an invalid value of a setting that this command does not use is reported too.
        let settings = Self {
            provider: layers.optional(PROVIDER, flags.provider, text, |file| file.provider.clone())?,
            model: layers.optional(MODEL, flags.model, text, |file| file.model.clone())?,
            timeout: layers.setting(
                TIMEOUT,
                flags.timeout,
                span,
                |file| Some(file.timeout?.0),
                DEFAULT_TIMEOUT,
            )?,
            first_token_timeout: layers.setting(
                FIRST_TOKEN_TIMEOUT,
                None,
                span,
                |file| Some(file.first_token_timeout?.0),
                call.first_token_timeout,
            )?,
            idle_timeout: layers.setting(
                IDLE_TIMEOUT,
                None,
                span,
                |file| Some(file.idle_timeout?.0),
                call.idle_timeout,
            )?,
            retries: layers.setting(RETRIES, None, values::count, |file| file.retries, call.retries)?,
            breaker_failures: layers.setting(
                BREAKER_FAILURES,
                None,
                values::count,
                |file| file.breaker_failures,
                breaker.failures,
            )?,
            breaker_reset_timeout: layers.setting(
                BREAKER_RESET_TIMEOUT,
                None,
                span,
                |file| Some(file.breaker_reset_timeout?.0),
                breaker.reset_timeout,
            )?,
            strict: layers.setting(STRICT, flags.strict, values::switch, |file| file.strict, false)?,
            trust: layers.setting(TRUST, flags.trust, values::switch, |file| file.trust, false)?,
            modules: layers.directories(MODULES, |file| file.modules.as_ref()),
            detect_ollama: layers.setting(
                DETECT_OLLAMA,
                None,
                DetectUrl::parse,
                |file| file.detect_ollama.clone(),
                DetectUrl::default(),
            )?,
            detected: OnceLock::new(),
            generation: GenerationSettings::read(&layers)?,
            media: MediaSettings::read(&layers)?,
            logs: LogsSettings::read(&layers)?,
            tools: ToolsSettings::read(&layers)?,
            budget: BudgetSettings::read(&layers)?,
            cache: CacheSettings::read(&layers)?,
            nats: NatsSettings::read(&layers)?,
            #[cfg(feature = "mcp")]
            mcp: mcp::servers(layers.operator.as_ref(), &environment, &directories)?,
            telemetry: TelemetryExport::read(&environment),
            unreachable,
            project: layers.project,
            operator: layers.operator,
            environment,
            directories,
        };
        Ok(settings.with_masked_keys())
    }

    /// Masks the keys on stderr. Reading the settings does it, so that no command can leave it out.
    fn with_masked_keys(self) -> Self {
        self.environment.redactor().hide(self.keys());
        self
    }

    /// Selects the provider of the run that continues and its model, unless flags select others. The providers after it in the list
    /// stay its fallbacks.
    pub fn continue_with(&mut self, provider: &str, model: Option<&str>) {
        // Only a flag is a decision about this run. A variable is the default of every run.
        if matches!(self.provider.source, Source::Flag(_)) {
            return;
        }
        let others = self.provider.value.iter().flat_map(|names| names.split(',')).map(str::trim);
        let earlier: Vec<&str> = provider.split(',').map(str::trim).collect();
        let others = others.filter(|name| !earlier.contains(name));
        let names: Vec<&str> = earlier.iter().copied().chain(others).collect();
        self.provider = Setting { value: Some(names.join(",")), source: Source::EarlierRun };
        if let Some(model) = model.filter(|_| !matches!(self.model.source, Source::Flag(_))) {
            self.model = Setting { value: Some(model.to_owned()), source: Source::EarlierRun };
        }
    }

    /// Returns the keys that no message and no log contains.
    pub fn redactor(&self) -> &Redactor {
        self.environment.redactor()
    }

    /// Returns the proxy variable whose value is not a valid URL; calls to providers ignore it.
    pub fn unusable_proxy(&self) -> Option<&'static str> {
        PROXIES.into_iter().find(|name| self.environment.get(name).is_some_and(|value| !is_proxy_url(&value)))
    }

    /// Returns the settings files, the strongest first, and whether each was read.
    pub fn files(&self) -> Vec<FileUse> {
        let project = FileUse { path: PathBuf::from("cog.toml"), is_read: self.project.is_some() };
        let own = self.directories.config.as_deref().map(|directory| directory.join("config.toml"));
        let own = own.map(|path| FileUse { path, is_read: self.operator.is_some() });
        [project].into_iter().chain(own).collect()
    }

    /// Returns what is wrong with the settings and yet does not prevent a run, for commands that call providers. Reads files.
    pub fn warnings(&self) -> Vec<String> {
        let unreachable = self.unreachable.as_ref().map(|path| {
            format!("the settings file {} was not read: its directory cannot be entered", path.display())
        });
        let exposed = self.operator.iter().filter(|file| file.has_secret()).map(|file| &file.path);
        let exposed = exposed.filter(|path| private::is_readable_by_others(path)).map(|path| {
            let path = path.display();
            format!("other users of this machine can read the keys in {path}; run `chmod 600 {path}`")
        });
        unreachable.into_iter().chain(exposed).chain(self.certificate_warnings()).collect()
    }

    /// Returns the proxy variables that are set, without user names and passwords, and says which is not usable.
    pub fn proxies(&self) -> Vec<(&'static str, String)> {
        let unusable = self.unusable_proxy();
        let set = PROXIES.into_iter().chain(["NO_PROXY", "no_proxy"]).filter_map(|name| {
            let value = rows::without_credentials(&self.environment.get(name)?);
            let value = if unusable == Some(name) { format!("{value} (not a URL: ignored)") } else { value };
            Some((name, value))
        });
        set.collect()
    }

    /// Returns a variable of the environment that is no setting, such as `LANG`.
    pub fn environment_variable(&self, name: &str) -> Option<String> {
        self.environment.get(name)
    }

    /// Returns notes about variables of telemetry that are not supported.
    pub fn telemetry_notes(&self) -> &[String] {
        self.telemetry.notes()
    }

    /// Returns where spans and metrics are exported; none if they are off.
    pub fn telemetry_target(&self) -> Option<String> {
        self.telemetry.target()
    }

    /// Returns the span of the program that started this one (`TRACEPARENT`), if telemetry is on.
    pub fn parent_span(&self) -> Option<SpanContext> {
        let state = self.environment.get("TRACESTATE");
        let parent = self.environment.get("TRACEPARENT").filter(|_| self.telemetry.target().is_some())?;
        SpanContext::parse(&parent, state.as_deref())
    }

    /// Exports what is left of spans and metrics. Returns what the collector did not receive, as a note. Dropping the settings
    /// does the same without the note.
    pub fn close_telemetry(&self) -> Option<String> {
        self.telemetry.close()
    }

    /// Returns a provider's variable from the environment, or from the operator's file.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).or_else(|| self.in_operator_file(name).map(str::to_owned))
    }

    /// Returns what a text contains of the secrets of this process: the name of a variable, or `a key` for one that stands elsewhere.
    pub fn secret_in(&self, text: &str) -> Option<String> {
        let is_key = || self.redactor().redact(text) != text;
        self.environment.secret_in(text).or_else(|| is_key().then(|| "a key".to_owned()))
    }

    /// Returns the API keys of all configured providers.
    fn keys(&self) -> Vec<Secret> {
        let variables = VENDORS.iter().flat_map(|vendor| vendor.key_vars);
        let keys = variables.filter_map(|name| self.variable(name)).map(Secret::new);
        let keys = keys.chain(self.nats.password.value.clone());
        #[cfg(feature = "mcp")]
        let keys = keys.chain(self.mcp.iter().flat_map(|server| server.secrets().cloned()));
        keys.chain(self.telemetry.keys()).collect()
    }

    /// Returns the model that a variable or a file sets for one provider. The variable wins, then the project's file.
    pub fn model_for(&self, vendor: &Vendor) -> Option<Setting<String>> {
        if let Some(name) = vendor.model_var()
            && let Some(value) = self.environment.get(&name)
        {
            return Some(Setting { value, source: Source::variable(name) });
        }
        [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten().find_map(|file| {
            let model = file.content.providers.get(vendor.name)?.model.clone()?;
            Some(Setting::from_file(model, &file.path))
        })
    }

    /// Returns the prices that the operator's file sets for the models of one provider.
    pub fn prices_for(&self, vendor: &Vendor) -> ModelPrices {
        let file = self.operator.as_ref().and_then(|file| file.content.providers.get(vendor.name));
        let prices = file.into_iter().flat_map(|content| &content.prices);
        prices.map(|(model, price)| (model.clone(), (*price).into())).collect()
    }

    /// Returns the value that the operator's file sets for a provider's first variable, unless the environment sets one
    /// of that kind: a vendor may have several names for its key, and any of them is stronger than the file.
    fn in_operator_file(&self, name: &str) -> Option<&str> {
        let providers = &self.operator.as_ref()?.content.providers;
        providers.iter().find_map(|(vendor, content)| {
            let vendor = Vendor::by_name(vendor)?;
            let kinds = [
                (vendor.key_vars, &content.key),
                (vendor.protocol_var.as_slice(), &content.protocol),
                (vendor.base_url_vars, &content.base_url),
            ];
            let (variables, value) = kinds.into_iter().find(|(names, _)| names.first() == Some(&name))?;
            let is_set = variables.iter().any(|name| self.environment.get(name).is_some());
            value.as_deref().filter(|_| !is_set)
        })
    }
}

const PROVIDER: Names = Names { flag: "--provider", variable: "LLM_PROVIDER" };
const MODEL: Names = Names { flag: "--model", variable: "LLM_MODEL" };
const TIMEOUT: Names = Names { flag: "--timeout", variable: "COG_TIMEOUT" };
const FIRST_TOKEN_TIMEOUT: Names = Names::variable("COG_FIRST_TOKEN_TIMEOUT");
const IDLE_TIMEOUT: Names = Names::variable("COG_IDLE_TIMEOUT");
const BREAKER_FAILURES: Names = Names::variable("COG_BREAKER_FAILURES");
const BREAKER_RESET_TIMEOUT: Names = Names::variable("COG_BREAKER_RESET_TIMEOUT");
const RETRIES: Names = Names::variable("COG_RETRIES");
const STRICT: Names = Names { flag: "--strict", variable: "COG_STRICT" };
const TRUST: Names = Names { flag: "--trust", variable: "COG_TRUST" };
const DETECT_OLLAMA: Names = Names::variable("COG_DETECT_OLLAMA");
const MODULES: &str = "COGNITIVE_MODULES_PATH";

/// The variables that name a proxy.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Rejects a variable that names an unknown protocol.
fn check_protocols(environment: &Environment) -> Result<(), SettingsError> {
    for name in VENDORS.iter().filter_map(|vendor| vendor.protocol_var) {
        if let Some(text) = environment.get(name) {
            values::protocol(&text).map_err(|message| SettingsError::Variable { name, message })?;
        }
    }
    Ok(())
}

/// Whether a string is `[scheme://][name[:password]@]host[:port][/]`.
fn is_proxy_url(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (host, "0"),
    };
    !host.is_empty() && host.chars().all(|c| c.is_ascii_graphic()) && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests;
