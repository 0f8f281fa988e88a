//! Settings of `cog serve`, from flags, `COG_SERVE_…`, `[server]` of a settings file, and defaults.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use cog_run::{ContextLimits, ModelAccess, sessions::SessionSettings};
use cog_server::{ServerSettings, SystemMessages};

use super::{Row, Setting, Settings, SettingsError, Source, file::SettingsFile};
use crate::settings::{DisplayValue, parse_duration, rows::without_credentials, show_duration, values};

/// The settings of `cog serve`.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The IP address to listen on.
    pub listen: IpAddr,
    /// The port; 0 = any free port.
    pub port: u16,
    /// The worker threads; 0 = one per processor.
    pub workers: usize,
    /// The file of tokens that clients authenticate with.
    pub token_file: Option<PathBuf>,
    /// The directory to store sessions in.
    pub state_dir: Option<PathBuf>,
    /// The NATS servers through which servers share their sessions; none shares nothing.
    pub nats: Vec<String>,
    /// Whether interrupted streams can be resumed.
    pub resume: bool,
    /// Limits of requests, streams and connections.
    pub server: ServerSettings,
    /// Limits of sessions.
    pub sessions: SessionSettings,
    /// Limits of the context that one client stores.
    pub context: ContextLimits,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            listen: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            workers: 0,
            token_file: None,
            state_dir: None,
            nats: Vec::new(),
            resume: true,
            server: ServerSettings::default(),
            sessions: SessionSettings::default(),
            context: ContextLimits::default(),
        }
    }
}

impl ServeSettings {
    /// Returns the socket address to listen on.
    pub fn socket_addr(&self) -> SocketAddr {
        SocketAddr::new(self.listen, self.port)
    }
}

/// Returns the first key that only the operator may set.
pub(super) fn operators_key(section: &toml::Table) -> Option<&str> {
    let mut keys = section.keys().map(String::as_str);
    keys.find(|key| SERVER_SETTINGS.iter().any(|setting| setting.is_operators && setting.key() == *key))
}

impl ServeSettings {
    /// Reads each setting from its strongest source; `flag` returns the value of a flag.
    ///
    /// # Errors
    /// An invalid value, or an unknown key in a settings file.
    pub fn read(
        settings: &Settings,
        flag: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<Row>), SettingsError> {
        settings.reject_unknown_server_keys()?;
        let mut serve = Self::default();
        let mut rows = Vec::new();
        for setting in SERVER_SETTINGS {
            let Setting { value, source } = settings.strongest(setting, flag(setting.flag));
            if let Some(text) = value {
                setting.set(&mut serve, &text).map_err(|message| invalid(&source, setting, message))?;
            }
            let name = format!("server.{}", setting.key());
            rows.push(Row { name, value: setting.show(&mut serve), source });
        }
        Ok((serve, rows))
    }
}

impl Settings {
    fn strongest(&self, setting: &ServerSetting, flag: Option<String>) -> Setting<Option<String>> {
        if let Some(value) = flag {
            return Setting { value: Some(value), source: Source::flag(format!("--{}", setting.flag)) };
        }
        let variable = setting.variable();
        if let Some(value) = self.environment.get(&variable) {
            return Setting { value: Some(value), source: Source::variable(variable) };
        }
        for file in [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten() {
            if let Some(value) = file.content.server.get(&setting.key()) {
                return Setting::from_file(Some(text(value)), &file.path);
            }
        }
        Setting::default(None)
    }

    fn reject_unknown_server_keys(&self) -> Result<(), SettingsError> {
        let files = [self.project.as_ref(), self.operator.as_ref()].into_iter().flatten();
        files.into_iter().try_for_each(known_keys)
    }
}

fn known_keys(file: &SettingsFile) -> Result<(), SettingsError> {
    let known: Vec<_> = SERVER_SETTINGS.iter().map(ServerSetting::key).collect();
    match file.content.server.keys().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) => {
            Err(SettingsError::UnknownKey { path: file.path.clone(), line: None, key: key.clone(), known })
        }
    }
}

/// Converts a value of a file to the form of a flag.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(is_on) => is_on.to_string(),
        toml::Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        // No setting accepts other types, and each reports it.
        other => other.type_str().to_owned(),
    }
}

fn invalid(source: &Source, setting: &ServerSetting, message: String) -> SettingsError {
    let (message, file) = match source {
        Source::Flag(name) | Source::Variable(name) => (format!("{name}: {message}"), None),
        _ => (format!("server.{}: {message}", setting.key()), Some(source.to_string())),
    };
    SettingsError::Server { file, message }
}

// The table of the settings of `cog serve`.

/// A setting of the server. The names of its key and variable follow from the flag.
pub struct ServerSetting {
    /// The flag, without its dashes.
    pub flag: &'static str,
    /// The placeholder of the value in the help.
    pub value: &'static str,
    /// The text of the help.
    pub help: &'static str,
    /// Whether only the operator may set it, and no file in the working directory.
    pub is_operators: bool,
    field: Field,
}

/// The field of [`ServeSettings`] that a setting sets.
enum Field {
    Ip(fn(&mut ServeSettings) -> &mut IpAddr),
    Port(fn(&mut ServeSettings) -> &mut u16),
    Switch(fn(&mut ServeSettings) -> &mut bool),
    Path(fn(&mut ServeSettings) -> &mut Option<PathBuf>),
    Names(fn(&mut ServeSettings) -> &mut Vec<String>),
    System(fn(&mut ServeSettings) -> &mut SystemMessages),
    Models(fn(&mut ServeSettings) -> &mut Option<ModelAccess>),
    Url(fn(&mut ServeSettings) -> &mut Option<String>),
    /// URLs that may contain credentials, which are not shown.
    Urls(fn(&mut ServeSettings) -> &mut Vec<String>),
    Count(fn(&mut ServeSettings) -> &mut usize),
    Rate(fn(&mut ServeSettings) -> &mut u32),
    Bytes(fn(&mut ServeSettings) -> &mut usize),
    Time(fn(&mut ServeSettings) -> &mut Duration),
    Limit(fn(&mut ServeSettings) -> &mut Option<u64>),
    Cost(fn(&mut ServeSettings) -> &mut Option<f64>),
}

macro_rules! server_settings {
    ($($flag:literal $kind:ident |$serve:ident| $field:expr, $help:literal $($operators:ident)?;)+) => {
        /// Every setting of the server, in the order of the help.
        pub const SERVER_SETTINGS: &[ServerSetting] = &[$(ServerSetting {
            flag: $flag,
            value: Field::$kind(|$serve| $field).placeholder(),
            help: $help,
            is_operators: server_settings!(@ $($operators)?),
            field: Field::$kind(|$serve| $field),
        }),+];
    };
    (@) => { false };
    (@ operator) => { true };
}

server_settings! {
    "listen" Ip |it| &mut it.listen,
        "IP address to listen on; non-loopback addresses require a token" operator;
    "port" Port |it| &mut it.port,
        "Port to listen on; 0 = any free port" operator;
    "workers" Count |it| &mut it.workers,
        "Worker threads; 0 = one per processor";
    "token-file" Path |it| &mut it.token_file,
        "Require a token from this file; one TOKEN or NAME:TOKEN per line, with options" operator;
    "insecure" Switch |it| &mut it.server.access.is_insecure,
        "Allow unauthenticated remote access" operator;
    "allow-host" Names |it| &mut it.server.access.hosts,
        "Additional allowed Host values, comma-separated" operator;
    "allow-origin" Names |it| &mut it.server.access.origins,
        "Allowed origins of browser requests from other sites, comma-separated" operator;
    "client-models" Models |it| &mut it.server.access.models,
        "Providers and models that a client may name, such as openai,anthropic/claude-* [default: all]" operator;
    "public-url" Url |it| &mut it.server.public_url,
        "Public base URL for links to media [default: http:// and the Host of the request]" operator;
    "openai-system" System |it| &mut it.server.openai.system,
        "System messages of OpenAI's and Anthropic's clients: append, field:NAME or refuse";
    "openai-lenient" Switch |it| &mut it.server.openai.is_lenient,
        "Accept sampling parameters of these clients without effect, with a warning";
    "mcp-skills" Switch |it| &mut it.server.mcp_skills,
        "Let MCP clients read the modules as skills, with their prompts" operator;
    "state-dir" Path |it| &mut it.state_dir,
        "Store sessions in this directory, so that they survive a restart" operator;
    "nats" Urls |it| &mut it.nats,
        "Share sessions with other servers through NATS, at these comma-separated URLs" operator;
    "max-body-bytes" Bytes |it| &mut it.server.max_body_bytes,
        "Maximum request body size";
    "max-body-bytes-total" Bytes |it| &mut it.server.max_body_bytes_total,
        "Maximum memory for all large request bodies; further ones wait";
    "max-header-bytes" Bytes |it| &mut it.server.max_header_bytes,
        "Maximum size of all request headers";
    "max-message-bytes" Bytes |it| &mut it.server.max_message_bytes,
        "Maximum WebSocket message size";
    "max-connections" Count |it| &mut it.server.max_connections,
        "Maximum open connections; further connections wait";
    "max-streams" Count |it| &mut it.server.max_streams,
        "Maximum concurrent streams";
    "max-streams-per-client" Count |it| &mut it.server.max_streams_per_client,
        "Maximum concurrent streams per client";
    "requests-per-second" Rate |it| &mut it.server.requests_per_second,
        "Rate limit per client; 0 = unlimited";
    "request-burst" Rate |it| &mut it.server.request_burst,
        "Requests that a client may send at once above the rate limit";
    "max-attempts" Rate |it| &mut it.server.max_attempts,
        "Maximum of `max_attempts` that a request may set";
    "client-max-cost" Cost |it| &mut it.server.client_budget.max_cost,
        "Maximum cost in US dollars of each client in a period [default: unlimited]" operator;
    "client-max-tokens" Limit |it| &mut it.server.client_budget.max_tokens,
        "Maximum tokens of each client in a period [default: unlimited]" operator;
    "client-max-calls" Limit |it| &mut it.server.client_budget.max_calls,
        "Maximum calls to models of each client in a period [default: unlimited]" operator;
    "client-budget-period" Time |it| &mut it.server.client_budget_period,
        "Time after which the budget of a client is full again" operator;
    "header-timeout" Time |it| &mut it.server.header_timeout,
        "Maximum time to receive request headers; also the idle timeout of connections";
    "body-timeout" Time |it| &mut it.server.body_timeout,
        "Maximum time to receive a request body";
    "keepalive-interval" Time |it| &mut it.server.keepalive_interval,
        "Time without a chunk before a keep-alive is sent on a stream";
    "websocket-idle-timeout" Time |it| &mut it.server.websocket_idle_timeout,
        "Close a WebSocket that is idle between runs for this long";
    "write-timeout" Time |it| &mut it.server.write_timeout,
        "Drop clients that stop reading for this long";
    "drain-delay" Time |it| &mut it.server.drain_delay,
        "Time to serve new connections after shutdown is requested, while /ready is 503";
    "shutdown-timeout" Time |it| &mut it.server.shutdown_timeout,
        "Time for open streams to finish after shutdown is requested";
    "max-uploads" Count |it| &mut it.server.uploads.max_files,
        "Maximum stored uploads";
    "max-uploads-per-client" Count |it| &mut it.server.uploads.max_files_per_client,
        "Maximum stored uploads per client";
    "max-upload-bytes-total" Bytes |it| &mut it.server.uploads.max_bytes,
        "Maximum disk space for all uploads";
    "max-upload-bytes-per-client" Bytes |it| &mut it.server.uploads.max_bytes_per_client,
        "Maximum disk space for the uploads of one client";
    "max-form-bytes" Bytes |it| &mut it.server.uploads.max_form_bytes,
        "Maximum total size of the files in one form";
    "upload-ttl" Time |it| &mut it.server.uploads.ttl,
        "Time before an upload expires";
    "resume" Switch |it| &mut it.resume,
        "Let clients resume interrupted streams";
    "session-ttl" Time |it| &mut it.sessions.ttl,
        "Time before a finished session expires";
    "max-sessions" Count |it| &mut it.sessions.max_sessions,
        "Maximum stored finished sessions";
    "max-session-bytes-total" Bytes |it| &mut it.sessions.max_total_bytes,
        "Maximum memory for all sessions";
    "max-session-bytes" Bytes |it| &mut it.sessions.max_session_bytes,
        "Maximum memory for one session";
    "max-context-values-per-client" Count |it| &mut it.context.max_values,
        "Maximum stored values of context per client";
    "max-context-bytes-per-client" Bytes |it| &mut it.context.max_bytes,
        "Maximum size of the stored context of one client";
}

impl Field {
    const fn placeholder(&self) -> &'static str {
        match self {
            Self::Ip(_) => "IP",
            Self::Port(_) => "PORT",
            Self::Switch(_) => "true|false",
            Self::Path(_) => "PATH",
            Self::Names(_) => "NAMES",
            Self::System(_) => "PLACE",
            Self::Models(_) => "MODELS",
            Self::Url(_) => "URL",
            Self::Urls(_) => "URLS",
            Self::Count(_) | Self::Rate(_) | Self::Limit(_) => "NUMBER",
            Self::Cost(_) => "AMOUNT",
            Self::Bytes(_) => "SIZE",
            Self::Time(_) => "TIME",
        }
    }
}

impl ServerSetting {
    /// Its key in `[server]`: `max_streams`.
    pub fn key(&self) -> String {
        self.flag.replace('-', "_")
    }

    /// Its environment variable: `COG_SERVE_MAX_STREAMS`.
    pub fn variable(&self) -> String {
        format!("COG_SERVE_{}", self.key().to_uppercase())
    }

    /// Whether its flag can be given without a value.
    pub const fn is_switch(&self) -> bool {
        matches!(self.field, Field::Switch(_))
    }

    /// Sets it to the value that `text` names.
    pub fn set(&self, serve: &mut ServeSettings, text: &str) -> Result<(), String> {
        match self.field {
            Field::Ip(field) => *field(serve) = ip_address(text)?,
            Field::Port(field) => {
                *field(serve) =
                    text.parse().map_err(|_| format!("`{text}` is not a valid port: use 0 to 65535"))?;
            }
            Field::Switch(field) => *field(serve) = values::switch(text)?,
            Field::Path(field) => *field(serve) = Some(PathBuf::from(text)),
            Field::Names(field) | Field::Urls(field) => *field(serve) = values::names(text),
            Field::System(field) => *field(serve) = text.parse()?,
            Field::Models(field) => *field(serve) = Some(models(text)?),
            Field::Url(field) => *field(serve) = Some(url(text)?),
            Field::Count(field) => *field(serve) = values::count(text)?,
            Field::Rate(field) => *field(serve) = values::count(text)?,
            Field::Bytes(field) => *field(serve) = values::bytes(text)?,
            Field::Time(field) => *field(serve) = parse_duration(text)?,
            Field::Limit(field) => *field(serve) = Some(values::count(text)?),
            Field::Cost(field) => *field(serve) = Some(values::cost(text)?),
        }
        Ok(())
    }

    /// Returns its value in the form in which it is set.
    pub fn show(&self, serve: &mut ServeSettings) -> DisplayValue {
        match self.field {
            Field::Ip(field) => DisplayValue::Text(field(serve).to_string()),
            Field::Port(field) => DisplayValue::Count(u64::from(*field(serve))),
            Field::Switch(field) => DisplayValue::Switch(*field(serve)),
            Field::Names(field) => DisplayValue::list(field(serve).iter()),
            Field::Urls(field) => DisplayValue::list(field(serve).iter().map(|url| without_credentials(url))),
            Field::System(field) => DisplayValue::Text(field(serve).to_string()),
            Field::Models(field) => DisplayValue::maybe(field(serve).as_ref()),
            Field::Url(field) => DisplayValue::maybe(field(serve).as_ref()),
            Field::Path(field) => DisplayValue::path(field(serve).as_ref()),
            Field::Count(field) => DisplayValue::Count(*field(serve) as u64),
            Field::Rate(field) => DisplayValue::Count(u64::from(*field(serve))),
            Field::Bytes(field) => DisplayValue::Text(values::show_bytes(*field(serve))),
            Field::Time(field) => DisplayValue::Text(show_duration(*field(serve))),
            Field::Limit(field) => field(serve).map_or(DisplayValue::Nothing, DisplayValue::Count),
            Field::Cost(field) => DisplayValue::maybe(*field(serve)),
        }
    }
}

/// Parses a list of providers and models.
fn models(text: &str) -> Result<ModelAccess, String> {
    ModelAccess::parse(text)
        .map_err(|entry| format!("`{entry}` is not valid: use PROVIDER, PROVIDER/MODEL or PROVIDER/PREFIX*"))
}

/// Parses the base URL of a server and removes a trailing slash.
fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    // It becomes part of links in answers: a query, a user name or a quote would end up in each.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte));
    match rest {
        Some(rest) if is_plain && !rest.is_empty() && !rest.starts_with('/') => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err(format!("`{text}` is not a valid base URL: use a form such as https://cog.example")),
    }
}

/// Parses an IP address, or `localhost`.
fn ip_address(text: &str) -> Result<IpAddr, String> {
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
mod tests;
