//! The one settings value, read once and passed as data (docs/spec/settings.md, design decision 13).

mod duration;
mod environment;
mod file;
mod media;
mod server;
mod shown;
mod source;
mod table;
mod veil;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_provider::{
    BreakerSettings,
    vendors::{ProviderSettings, VENDORS, Vendor},
};
use cog_spec::Secret;
use thiserror::Error;

use self::file::{Content, Owner, SettingsFile};

pub(crate) use self::{
    duration::{parse as parse_duration, show as show_duration},
    environment::Environment,
    media::MediaSettings,
    server::{KNOBS, Knob, Serving},
    shown::Shown,
    source::{Setting, Source},
    table::Row,
    veil::Veil,
};

/// How long a run may take where nobody says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// What a command's flags set; the strongest source.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// `--provider`.
    pub(crate) provider: Option<String>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--timeout`.
    pub(crate) timeout: Option<Duration>,
    /// `--strict`; none where the flag is absent.
    pub(crate) strict: Option<bool>,
}

/// Every setting, each with where it came from.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The provider that was asked for, if any was.
    pub(crate) provider: Setting<Option<String>>,
    /// The model that was asked for, if any was.
    pub(crate) model: Setting<Option<String>>,
    /// The longest a run may take.
    pub(crate) timeout: Setting<Duration>,
    /// The longest the first token may take.
    pub(crate) first_token: Setting<Duration>,
    /// The longest a reply may be silent once it has begun.
    pub(crate) stall: Setting<Duration>,
    /// How often a call is tried again before its first token.
    pub(crate) retries: Setting<u32>,
    /// After how many failures in a row a provider is left alone for a while; 0 for never.
    pub(crate) breaker_failures: Setting<u32>,
    /// For how long it is left alone.
    pub(crate) breaker_pause: Setting<Duration>,
    /// Any repair is a violation (ruling R26).
    pub(crate) strict: Setting<bool>,
    /// Further folders of modules.
    pub(crate) modules: Setting<Vec<PathBuf>>,
    /// What may be opened of what inputs name.
    pub(crate) media: MediaSettings,
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
    environment: Environment,
    operator: Option<SettingsFile>,
    project: Option<SettingsFile>,
}

impl Settings {
    /// Reads flags, environment and files.
    ///
    /// # Errors
    /// A file or a variable that cannot be understood, or a file that sets what it may not.
    pub(crate) fn read(flags: Flags, environment: Environment) -> Result<Self, SettingsError> {
        let home = environment.path("HOME").or_else(|| environment.path("USERPROFILE"));
        let own = home.as_deref().map(|home| home.join(".config/cog/config.toml"));
        let layers = Layers {
            environment: &environment,
            project: SettingsFile::read(PathBuf::from("cog.toml"), Owner::Project)?,
            operator: own.map_or(Ok(None), |path| SettingsFile::read(path, Owner::Operator))?,
        };
        let text = |text: &str| Ok(text.to_owned());
        let provider = layers.pick(PROVIDER, flags.provider, text, |file| file.provider.clone())?;
        let model = layers.pick(MODEL, flags.model, text, |file| file.model.clone())?;
        let timeout = layers.pick(TIMEOUT, flags.timeout, duration::parse, |file| Some(file.timeout?.0))?;
        let first_token =
            layers.pick(FIRST_TOKEN, None, duration::parse, |file| Some(file.first_token?.0))?;
        let stall = layers.pick(STALL, None, duration::parse, |file| Some(file.stall?.0))?;
        let retries = layers.pick(RETRIES, None, count, |file| file.retries)?;
        let failures = layers.pick(BREAKER_FAILURES, None, count, |file| file.breaker_failures)?;
        let pause = layers.pick(BREAKER_PAUSE, None, duration::parse, |file| Some(file.breaker_pause?.0))?;
        let strict = layers.pick(STRICT, flags.strict, yes_or_no, |file| file.strict)?;
        let modules = layers.modules(home.as_deref());
        let media = MediaSettings::read(&layers, home.as_deref())?;
        let Layers { project, operator, .. } = layers;
        let (call, breaker) = (ProviderSettings::default(), BreakerSettings::default());
        Ok(Self {
            provider: provider.map_or_else(|| Setting::default(None), Setting::some),
            model: model.map_or_else(|| Setting::default(None), Setting::some),
            timeout: timeout.unwrap_or_else(|| Setting::default(DEFAULT_TIMEOUT)),
            first_token: first_token.unwrap_or_else(|| Setting::default(call.first_token)),
            stall: stall.unwrap_or_else(|| Setting::default(call.stall)),
            retries: retries.unwrap_or_else(|| Setting::default(call.retries)),
            breaker_failures: failures.unwrap_or_else(|| Setting::default(breaker.failures)),
            breaker_pause: pause.unwrap_or_else(|| Setting::default(breaker.pause)),
            strict: strict.unwrap_or_else(|| Setting::default(false)),
            modules,
            media,
            home,
            environment,
            operator,
            project,
        }
        .with_masked_keys())
    }

    /// Masks the keys on stderr. Reading the settings does it, so that no command can leave it out.
    fn with_masked_keys(self) -> Self {
        self.environment.veil().hide(self.keys());
        self
    }

    /// The variable that names a proxy, and no address of one: whoever asks a provider passes over it.
    pub(crate) fn unusable_proxy(&self) -> Option<&'static str> {
        let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        let value = |name: &str| self.environment.get(name);
        names.into_iter().find(|name| value(name).is_some_and(|value| !is_address(&value)))
    }

    /// The value of one of a vendor's variables: the environment's, else the operator's file's.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).or_else(|| self.of_operator(name).map(str::to_owned))
    }

    /// The key of each vendor that has one.
    fn keys(&self) -> Vec<Secret> {
        let variables = VENDORS.iter().flat_map(|vendor| vendor.key_vars);
        variables.filter_map(|name| self.variable(name)).map(Secret::new).collect()
    }

    /// The model that a file sets for one vendor; the project's file before the operator's.
    pub(crate) fn model_for(&self, vendor: &Vendor) -> Option<Setting<String>> {
        let of_file = |file: &SettingsFile| {
            let model = file.content.providers.get(vendor.name)?.model.clone()?;
            Some(Setting::of_file(model, &file.path))
        };
        self.project.as_ref().and_then(of_file).or_else(|| self.operator.as_ref().and_then(of_file))
    }

    /// The operator's file speaks for a vendor's first variable, where the environment sets none of
    /// that kind.
    fn of_operator(&self, name: &str) -> Option<&str> {
        let providers = &self.operator.as_ref()?.content.providers;
        providers.iter().find_map(|(vendor, content)| {
            let vendor = Vendor::named(vendor)?;
            let speaks_for = |variables: &[&'static str]| {
                variables.first() == Some(&name)
                    && variables.iter().all(|name| self.environment.get(name).is_none())
            };
            if speaks_for(vendor.key_vars) {
                return content.key.as_deref();
            }
            speaks_for(vendor.base_url_vars).then_some(content.base_url.as_deref()).flatten()
        })
    }
}

/// The names of one setting.
#[derive(Debug, Clone, Copy)]
struct Names {
    flag: &'static str,
    variable: &'static str,
}

const PROVIDER: Names = Names { flag: "--provider", variable: "LLM_PROVIDER" };
const MODEL: Names = Names { flag: "--model", variable: "LLM_MODEL" };
const TIMEOUT: Names = Names { flag: "--timeout", variable: "COG_TIMEOUT" };
const FIRST_TOKEN: Names = Names { flag: "", variable: "COG_FIRST_TOKEN" };
const STALL: Names = Names { flag: "", variable: "COG_STALL" };
const BREAKER_FAILURES: Names = Names { flag: "", variable: "COG_BREAKER_FAILURES" };
const BREAKER_PAUSE: Names = Names { flag: "", variable: "COG_BREAKER_PAUSE" };
const RETRIES: Names = Names { flag: "", variable: "COG_RETRIES" };
const STRICT: Names = Names { flag: "--strict", variable: "COG_STRICT" };
const MODULES: &str = "COGNITIVE_MODULES_PATH";

/// Where settings come from beside the flags.
struct Layers<'a> {
    environment: &'a Environment,
    project: Option<SettingsFile>,
    operator: Option<SettingsFile>,
}

impl Layers<'_> {
    /// The strongest value of one setting: flag, environment, project's file, operator's file.
    fn pick<T>(
        &self,
        names: Names,
        flag: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
        of_file: impl Fn(&Content) -> Option<T>,
    ) -> Result<Option<Setting<T>>, SettingsError> {
        if let Some(value) = flag {
            return Ok(Some(Setting { value, source: Source::Flag(names.flag) }));
        }
        if let Some(text) = self.environment.get(names.variable) {
            let value =
                read(&text).map_err(|message| SettingsError::Variable { name: names.variable, message })?;
            return Ok(Some(Setting { value, source: Source::Variable(names.variable) }));
        }
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        Ok(files.into_iter().find_map(|file| Some(Setting::of_file(of_file(&file.content)?, &file.path))))
    }

    fn modules(&self, home: Option<&Path>) -> Setting<Vec<PathBuf>> {
        if let Some(value) = self.environment.paths(MODULES) {
            return Setting { value, source: Source::Variable(MODULES) };
        }
        let of_file = |file: &SettingsFile| {
            let folders = file.content.modules.as_ref()?;
            let value = folders.iter().map(|folder| file.folder().join(at_home(folder, home))).collect();
            Some(Setting::of_file(value, &file.path))
        };
        self.operator.as_ref().and_then(of_file).unwrap_or_else(|| Setting::default(Vec::new()))
    }
}

/// `~/x` as a path below the user's home.
fn at_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

/// Why the settings cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SettingsError {
    /// A file is there and cannot be read.
    #[error("the settings file cannot be read: {message}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        message: String,
    },
    /// A file is not what a settings file is.
    #[error("{message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A file in the working directory sets what only the operator may.
    #[error("a settings file in the working directory may not set `{key}`")]
    Forbidden {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A table for a provider that does not exist.
    #[error("there is no provider `{name}`")]
    UnknownProvider {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A setting of the server that cannot be understood.
    #[error("{message}")]
    Server {
        /// The file that sets it; none where its name says enough.
        place: Option<String>,
        /// What is wrong with it.
        message: String,
    },
    /// A variable that cannot be understood.
    #[error("{name}: {message}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

impl SettingsError {
    /// The file, and the line where it is known.
    pub(crate) fn place(&self) -> Option<String> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Forbidden { path, .. }
            | Self::UnknownProvider { path, .. } => Some(path.display().to_string()),
            Self::Syntax { path, line, .. } => Some(format!("{}:{line}", path.display())),
            Self::Server { place, .. } => place.clone(),
            Self::Variable { .. } => None,
        }
    }

    /// What to do about it.
    pub(crate) fn suggestion(&self) -> Option<String> {
        match self {
            Self::Forbidden { .. } => Some(
                "addresses, keys, media and folders of modules are the operator's: set them in the environment or in \
                 ~/.config/cog/config.toml"
                    .to_owned(),
            ),
            Self::UnknownProvider { .. } => Some("`cog doctor --all` lists every provider".to_owned()),
            Self::Unreadable { .. } => Some("put a text file there that can be read, or take it away".to_owned()),
            Self::Syntax { .. } => Some("a settings file is TOML, as in `timeout = \"30s\"`".to_owned()),
            Self::Server { .. } => Some("`cog serve --help` shows the form of each setting".to_owned()),
            Self::Variable { name, .. } => Some(format!("set {name} to another value, or unset it")),
        }
    }
}

/// Whether a text is `[scheme://][name[:password]@]host[:port][/]`.
fn is_address(text: &str) -> bool {
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
