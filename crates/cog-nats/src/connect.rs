//! The connection.

use std::{
    error::Error as _,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::{Client, ClientError, ConnectError, ConnectErrorKind, ConnectOptions, Event};
use cog_spec::{Code, Secret};
use url::Url;

/// The address of a NATS server, and what the operator has set for the connection.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NatsOptions {
    /// The URLs of one or more servers of a cluster, separated by commas: `nats://host:4222`, or `tls://` for TLS.
    pub url: String,
    /// The credentials file (`.creds`) of an account.
    pub credentials: Option<PathBuf>,
    /// The name of the user.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<Secret>,
    /// A file with the certificates that the server's must be signed by.
    pub ca: Option<PathBuf>,
}

/// The time for one attempt to connect.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a server. The connection is made again whenever it is lost.
///
/// # Errors
/// See [`NatsError`].
pub async fn connect(options: &NatsOptions) -> Result<Client, NatsError> {
    let (servers, is_tls) = servers(&options.url)?;
    let shown = shown(&servers);
    let outage = Arc::new(Mutex::new(Outage::default()));
    let mut connection = ConnectOptions::new()
        .name("cog")
        .connection_timeout(TIMEOUT)
        // A file of certificates says that the connection is to be encrypted.
        .require_tls(is_tls || options.ca.is_some())
        .event_callback(move |event| {
            let outage = Arc::clone(&outage);
            async move { outage.lock().unwrap_or_else(PoisonError::into_inner).report(&event) }
        });
    if let Some(path) = &options.ca {
        readable(path)?;
        connection = connection.add_root_certificates(path.clone());
    }
    if let (Some(user), Some(password)) = (&options.user, &options.password) {
        connection = connection.user_and_password(user.clone(), password.expose().to_owned());
    }
    if let Some(path) = &options.credentials {
        let opened = connection.credentials_file(path).await;
        connection = opened.map_err(|source| NatsError::File { path: path.clone(), source })?;
    }
    connection.connect(servers).await.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => NatsError::Rejected {
            server: shown,
            reason: "the credentials are missing or not valid".to_owned(),
        },
        ConnectErrorKind::Tls => NatsError::Tls { server: shown, reason: error.to_string() },
        _ if is_tls_error(&error) => NatsError::Tls { server: shown, reason: error.to_string() },
        _ => NatsError::Unreachable { server: shown, reason: error.to_string() },
    })
}

/// Returns whether the handshake of TLS failed, such as for a certificate. The client reports it as an error of I/O.
fn is_tls_error(error: &ConnectError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns the servers, and whether TLS is required. Credentials are not allowed in the URL, which other users can see.
fn servers(urls: &str) -> Result<(Vec<async_nats::ServerAddr>, bool), NatsError> {
    // A password may contain commas, so no part of such a URL is shown.
    if urls.contains('@') {
        let settings = "COG_NATS_USER and COG_NATS_PASSWORD, or COG_NATS_CREDENTIALS";
        return Err(NatsError::Url { reason: format!("it contains credentials; set {settings}") });
    }
    let mut servers = Vec::new();
    for text in urls.split(',').map(str::trim) {
        let server = server(text).ok_or_else(|| match text {
            "" => NatsError::Url { reason: format!("a part of `{urls}` is empty") },
            _ => NatsError::Url { reason: format!("`{text}` is not of the form nats://HOST:4222") },
        })?;
        servers.push(server);
    }
    let is_tls = servers.iter().any(async_nats::ServerAddr::tls_required);
    Ok((servers, is_tls))
}

/// Returns the server of a URL that has a host and the scheme `nats` or `tls`.
fn server(text: &str) -> Option<async_nats::ServerAddr> {
    let url = Url::parse(text).ok()?;
    let is_valid = matches!(url.scheme(), "nats" | "tls") && url.has_host();
    async_nats::ServerAddr::from_url(url).ok().filter(|_| is_valid)
}

fn shown(servers: &[async_nats::ServerAddr]) -> String {
    let names: Vec<_> = servers.iter().map(|server| format!("{}:{}", server.host(), server.port())).collect();
    names.join(", ")
}

fn readable(path: &PathBuf) -> Result<(), NatsError> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(source) => Err(NatsError::File { path: path.clone(), source }),
    }
}

/// What was logged about the connection since it was lost.
#[derive(Debug, Default)]
struct Outage {
    is_lost: bool,
    last_error: Option<String>,
}

impl Outage {
    /// Logs an event. Attempts that fail as the one before are logged only for debugging.
    fn report(&mut self, event: &Event) {
        match event {
            Event::Connected if self.is_lost => {
                *self = Self::default();
                tracing::warn!("the connection to NATS is back");
            }
            Event::Connected => tracing::info!("connected to NATS"),
            Event::Disconnected => {
                self.is_lost = true;
                tracing::warn!("the connection to NATS is lost; connecting again");
            }
            Event::ServerError(error) => tracing::warn!(%error, "NATS reports an error"),
            Event::ClientError(error) if self.is_new(error) => {
                tracing::warn!(%error, "the connection to NATS has an error");
            }
            event => tracing::debug!(%event, "NATS"),
        }
    }

    /// Returns whether an error is another one than the last of this outage.
    fn is_new(&mut self, error: &ClientError) -> bool {
        let error = Some(error.to_string());
        let is_new = self.last_error != error;
        self.last_error = error;
        is_new
    }
}

// What can fail between this program and NATS.

/// An error of the connection to NATS, or of JetStream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// The URL cannot be used.
    #[error("the NATS URL cannot be used: {reason}")]
    Url {
        /// The reason. It does not repeat the URL.
        reason: String,
    },
    /// The name of the queue cannot be used.
    #[error("`{name}` is not a name of a queue: use 1 to 32 of a-z, 0-9 and -")]
    Name {
        /// The name.
        name: String,
    },
    /// A file of the settings cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server cannot be reached.
    #[error("cannot reach NATS at {server}: {reason}")]
    Unreachable {
        /// The host and the port.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The server rejects the connection.
    #[error("NATS at {server} rejects the connection: {reason}")]
    Rejected {
        /// The host and the port.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The encrypted connection fails.
    #[error("the TLS connection to NATS at {server} fails: {reason}")]
    Tls {
        /// The host and the port.
        server: String,
        /// The reason.
        reason: String,
    },
    /// JetStream rejects an operation, or does not reply.
    #[error("NATS JetStream: cannot {operation}: {reason}")]
    JetStream {
        /// The operation, such as `create the stream cog-jobs`.
        operation: String,
        /// The reason.
        reason: String,
    },
    /// A job is over the maximum of the server.
    #[error("the job of {bytes} bytes is over the maximum of the NATS server, {limit}")]
    TooLarge {
        /// The size of the job, in bytes.
        bytes: usize,
        /// The maximum size of a message, in bytes.
        limit: usize,
    },
}

impl NatsError {
    pub(crate) fn jet_stream(operation: impl Into<String>, reason: &dyn std::error::Error) -> Self {
        Self::JetStream { operation: operation.into(), reason: reason.to_string() }
    }

    /// Returns what makes an error of JetStream from an error of the client, for `map_err`.
    pub(crate) fn cannot<E: std::error::Error>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        |reason| Self::jet_stream(operation, &reason)
    }

    /// Returns whether the same call can succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::JetStream { .. })
    }

    /// Returns the code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Url { .. } | Self::Name { .. } => Code::UnsupportedValue,
            Self::File { .. } => Code::InvalidReference,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::Rejected { .. } | Self::Tls { .. } => Code::PermissionDenied,
            Self::Unreachable { .. } | Self::JetStream { .. } => Code::ProviderUnavailable,
        }
    }

    /// Returns what to do about the error.
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Url { .. } => "Use a URL such as nats://host:4222 or tls://host:4222.",
            Self::Name { .. } => "Set COG_NATS_NAME to a valid name.",
            Self::File { .. } => "Set COG_NATS_CREDENTIALS and COG_NATS_CA to files that you can read.",
            Self::Unreachable { .. } => "Check that nats-server runs there, and the firewall.",
            Self::Rejected { .. } => {
                "Set COG_NATS_CREDENTIALS to a credentials file, or COG_NATS_USER and COG_NATS_PASSWORD."
            }
            Self::Tls { .. } => {
                "Set COG_NATS_CA to the certificates that the server's is signed by. Without it and with nats://, a server \
                 without TLS is used."
            }
            Self::TooLarge { .. } => "Raise max_payload of nats-server, or name media by URLs.",
            Self::JetStream { reason, .. } if reason.contains("replicas") => {
                "Set COG_NATS_REPLICAS to at most the number of servers in the cluster."
            }
            Self::JetStream { .. } => {
                "Start nats-server with JetStream (-js), and allow the account its streams (docs/nats.md)."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_an_outage_is_new_once() {
        let refused = ClientError::Other("connection refused".to_owned());
        let mut outage = Outage::default();
        outage.report(&Event::Disconnected);
        assert!(outage.is_new(&refused) && !outage.is_new(&refused));
        assert!(outage.is_new(&ClientError::Other("no route".to_owned())));
        outage.report(&Event::Connected);
        assert!(!outage.is_lost && outage.is_new(&ClientError::Other("no route".to_owned())));
    }

    #[test]
    fn url_names_servers_without_credentials() {
        let (found, is_tls) = servers("nats://one:4222, nats://two").unwrap();
        assert_eq!((shown(&found).as_str(), is_tls), ("one:4222, two:4222", false));
        assert!(servers("tls://one").unwrap().1);
        for url in ["", "one:4222", "http://one", "nats://me:secret@one", "nats://token@one"] {
            let error = servers(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && !error.contains("token@"), "{error}");
        }
    }

    #[test]
    fn error_of_a_url_names_the_part_that_is_wrong() {
        for (urls, expected) in [
            ("foo", "`foo` is not of the form nats://HOST:4222"),
            ("127.0.0.1:4222", "`127.0.0.1:4222` is not of the form nats://HOST:4222"),
            ("nats://one, http://two", "`http://two` is not of the form nats://HOST:4222"),
            ("nats://", "`nats://` is not of the form nats://HOST:4222"),
            ("nats://one,", "a part of `nats://one,` is empty"),
            (
                "nats://one, nats://me:se,cret@two",
                "it contains credentials; set COG_NATS_USER and COG_NATS_PASSWORD, or COG_NATS_CREDENTIALS",
            ),
        ] {
            let error = servers(urls).unwrap_err();
            assert_eq!(error.to_string(), format!("the NATS URL cannot be used: {expected}"));
        }
    }
}
