//! Errors of provider calls.

use std::{path::PathBuf, time::Duration};

use cog_json::Value;
use cog_spec::{Code, ErrorBody, ErrorOrigin};
use thiserror::Error;

use crate::{
    ModelRequest, RequestError,
    vendors::{Commands, InvalidBaseUrl, VENDORS},
};

/// Why a call to a provider failed or was interrupted.
///
/// Messages include the vendor's own text in one line, truncated to a few hundred characters, and never a key.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The vendor does not support the request; nothing was sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The configured base URL is invalid; nothing was sent.
    #[error("{vendor} cannot be called: {reason}")]
    BaseUrl {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The variable to set.
        variable: &'static str,
        /// The reason the URL is invalid.
        reason: InvalidBaseUrl,
    },
    /// The vendor requires a key and none is set; nothing was sent.
    #[error("{vendor} requires an API key, but {variable} is not set")]
    NoKey {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The variable to set.
        variable: &'static str,
    },
    /// The key contains characters that are not allowed in a header; nothing was sent.
    #[error("the API key in {variable} contains a line break or another invalid character")]
    BadKey {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The variable that contains the key.
        variable: &'static str,
    },
    /// The vendor rejects the key (401, 403).
    #[error("{vendor} rejected the API key in {variable}: {message}")]
    KeyRejected {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The variable that contains the key.
        variable: &'static str,
        /// The error message of the vendor.
        message: String,
    },
    /// The vendor does not know the model, or the URL does not exist (404).
    #[error("{vendor} does not know the model `{model}`: {message}")]
    UnknownModel {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The requested model.
        model: String,
        /// The error message of the vendor.
        message: String,
    },
    /// The vendor rejects the request (other 4xx).
    #[error("{vendor} rejected the request ({status}): {message}")]
    Rejected {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The HTTP status.
        status: u16,
        /// The error message of the vendor.
        message: String,
        /// The part of the request that the message names, if the request can be sent again without it.
        part: Option<RejectedPart>,
    },
    /// The vendor's content filter or policy refuses the request, so no reply begins (ruling R70).
    #[error("{vendor} refused the request: {message}")]
    Filtered {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The error message of the vendor.
        message: String,
        /// `details.reason`: `content_filter` or `invalid_prompt`.
        reason: &'static str,
    },
    /// Too many requests (429), or the account is used up (402, or an error that says so).
    #[error("{}: {message}", limit_reached(vendor, *is_quota))]
    RateLimited {
        /// The display name of the vendor.
        vendor: &'static str,
        /// Whether it is the quota of the account, so that waiting does not help.
        is_quota: bool,
        /// The error message of the vendor.
        message: String,
        /// The wait that the vendor requests.
        retry_after: Option<Duration>,
    },
    /// The model does not accept the media of the request (E4011). Only the vendor knows: it is a gateway, or the model is
    /// not in our table.
    #[error("{vendor} does not accept these media with the model `{model}`: {message}")]
    MediaRejected {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The requested model.
        model: String,
        /// The error message of the vendor.
        message: String,
    },
    /// The conversation exceeds the context window of the model.
    #[error("the request exceeds the context window of `{model}`: {message}")]
    ContextOverflow {
        /// The requested model.
        model: String,
        /// The error message of the vendor.
        message: String,
    },
    /// The vendor is unreachable or fails (connection error, 5xx).
    #[error("{vendor} is unavailable: {message}")]
    Unavailable {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The network if there is no connection; otherwise the vendor, whose text the message contains.
        by: Interruption,
        /// What went wrong.
        message: String,
        /// The wait that the vendor requests.
        retry_after: Option<Duration>,
    },
    /// The local configuration prevents a connection: certificates, TLS, a proxy.
    #[error("cannot connect to {vendor}: {message}")]
    Connect {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The local cause.
        kind: ConnectErrorKind,
        /// What went wrong.
        message: String,
    },
    /// The circuit is open after several failures in a row; nothing was sent.
    #[error("{provider} failed several times in a row, so its circuit is open")]
    CircuitOpen {
        /// The provider's name.
        provider: String,
        /// The time until the next attempt is allowed.
        retry_after: Duration,
    },
    /// The server at the URL does not implement the protocol: it sent a web page or a redirect.
    #[error("{url} is not an API of {vendor}: it returned {found}")]
    WrongInterface {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The URL.
        url: String,
        /// A description of the reply.
        found: String,
    },
    /// The reply violates the protocol.
    #[error("{vendor} sent an invalid reply: {message}")]
    Malformed {
        /// The display name of the vendor.
        vendor: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The reply exceeds the size limit.
    #[error("the reply of {vendor} has more than {limit} bytes")]
    TooLarge {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The reply was interrupted.
    #[error("the reply of {vendor} was interrupted: {message}")]
    Interrupted {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The side that interrupted it.
        by: Interruption,
        /// What went wrong.
        message: String,
    },
    /// A deadline passed.
    #[error("{}", .deadline.message(vendor, *.limit))]
    Timeout {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The deadline that passed.
        deadline: Deadline,
        /// Its length.
        limit: Duration,
    },
    /// No recorded reply matches the request.
    #[error("no recording in {} matches the request (body {hash})", .directory.display())]
    NoRecording {
        /// The directory of the cassette.
        directory: PathBuf,
        /// The hash of the request body, shortened.
        hash: String,
    },
    /// A cassette cannot be read or written.
    #[error("cannot use the cassette {}: {message}", .path.display())]
    Cassette {
        /// The cassette, or one of its files.
        path: PathBuf,
        /// What went wrong.
        message: String,
    },
    /// An error of a provider outside this crate.
    #[error("{message}")]
    Other {
        /// The error code to report.
        code: Code,
        /// What went wrong.
        message: String,
    },
}

/// The side that interrupted a reply: `details.reason` of E2010 (ruling R40).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The vendor closed the connection or sent an error within the reply.
    Provider,
    /// The network connection failed.
    Network,
}

impl Interruption {
    /// Returns the value for `details.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Interruption::Provider => "provider",
            Interruption::Network => "network",
        }
    }
}

/// A deadline of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The deadline for the complete call.
    Total,
    /// The deadline for the first token.
    FirstToken,
    /// The maximum time between two chunks of the reply.
    Idle,
}

impl Deadline {
    fn message(self, vendor: &str, limit: Duration) -> String {
        let limit = seconds(&limit);
        match self {
            Deadline::Total => format!("the call to {vendor} took longer than {limit}"),
            Deadline::FirstToken => format!("{vendor} sent no token within {limit}"),
            Deadline::Idle => format!("{vendor} sent no data for {limit}"),
        }
    }
}

/// Returns which limit of a vendor is reached.
fn limit_reached(vendor: &str, is_quota: bool) -> String {
    match is_quota {
        true => format!("the quota of the {vendor} account is used up"),
        false => format!("rate limit of {vendor} exceeded"),
    }
}

/// Returns the commands of a vendor whose server runs on the user's machine.
fn commands(vendor: &str) -> Option<Commands> {
    VENDORS.iter().find(|row| row.title == vendor)?.commands
}

impl ProviderError {
    /// Returns the error code of the specification (docs/spec/errors.md, ruling R40).
    pub const fn code(&self) -> Code {
        match self {
            Self::Request(error) => error.code(),
            Self::RateLimited { .. } => Code::RateLimited,
            Self::ContextOverflow { .. } => Code::ContextOverflow,
            Self::MediaRejected { .. } => Code::MultimodalNotSupported,
            Self::Malformed { .. } | Self::TooLarge { .. } => Code::ParseError,
            Self::Filtered { .. } => Code::NoActionPossible,
            Self::Interrupted { .. } => Code::StreamInterrupted,
            Self::Timeout { .. } => Code::StreamTimeout,
            Self::Other { code, .. } => *code,
            Self::BaseUrl { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::KeyRejected { .. }
            | Self::UnknownModel { .. }
            | Self::Rejected { .. }
            | Self::Unavailable { .. }
            | Self::Connect { .. }
            | Self::CircuitOpen { .. }
            | Self::WrongInterface { .. }
            | Self::NoRecording { .. }
            | Self::Cassette { .. } => Code::ProviderUnavailable,
        }
    }

    /// Returns whether the same call can succeed later, or after following [`ProviderError::suggestion`].
    pub const fn recoverable(&self) -> bool {
        match self {
            Self::RateLimited { is_quota, .. } => !*is_quota,
            Self::ContextOverflow { .. }
            | Self::Unavailable { .. }
            | Self::CircuitOpen { .. }
            | Self::Interrupted { .. }
            | Self::Timeout { .. }
            | Self::UnknownModel { .. } => true,
            Self::Request(_)
            | Self::BaseUrl { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::KeyRejected { .. }
            | Self::Rejected { .. }
            | Self::MediaRejected { .. }
            | Self::Filtered { .. }
            | Self::Connect { .. }
            | Self::WrongInterface { .. }
            | Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::NoRecording { .. }
            | Self::Cassette { .. } => false,
            Self::Other { code, .. } => matches!(code.recoverable(), cog_spec::Recoverable::Yes),
        }
    }

    /// Returns whether another provider may succeed where this one failed. No part of the answer has arrived yet, and
    /// the cause is the provider and not the request, or the context window of its model.
    pub const fn allows_fallback(&self) -> bool {
        match self {
            Self::BaseUrl { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::KeyRejected { .. }
            | Self::UnknownModel { .. }
            | Self::MediaRejected { .. }
            | Self::ContextOverflow { .. }
            | Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Connect { .. }
            | Self::CircuitOpen { .. }
            | Self::WrongInterface { .. }
            | Self::Malformed { .. }
            | Self::Interrupted { .. }
            | Self::Request(RequestError::TooLarge { .. })
            | Self::Timeout { deadline: Deadline::FirstToken, .. } => true,
            Self::Request(error) => error.option().is_some() || error.is_about_tools(),
            Self::Rejected { .. }
            | Self::Filtered { .. }
            | Self::TooLarge { .. }
            | Self::Timeout { .. }
            | Self::NoRecording { .. }
            | Self::Cassette { .. } => false,
            Self::Other { code, .. } => {
                matches!(code, Code::ProviderUnavailable | Code::RateLimited | Code::StreamInterrupted)
            }
        }
    }

    /// Returns whether the call was attempted. An invalid configuration, an unsupported request and an open circuit
    /// prevent it.
    pub const fn was_attempted(&self) -> bool {
        !matches!(
            self,
            Self::Request(_)
                | Self::BaseUrl { .. }
                | Self::NoKey { .. }
                | Self::BadKey { .. }
                | Self::CircuitOpen { .. }
                | Self::NoRecording { .. }
                | Self::Cassette { .. }
        )
    }

    /// Returns who reports the error: the provider if the call was attempted, or the runtime if nothing was sent, if the local
    /// configuration prevents a connection, or if the deadline of the run passed (ruling R88).
    pub const fn origin(&self) -> ErrorOrigin {
        match self {
            Self::Connect { .. } | Self::Timeout { deadline: Deadline::Total, .. } => ErrorOrigin::Runtime,
            _ if self.was_attempted() => ErrorOrigin::Provider,
            _ => ErrorOrigin::Runtime,
        }
    }

    /// Returns the wait that the vendor requests.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            Self::CircuitOpen { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns `details.reason` for the codes that require one (ruling R40), and for errors of the account, not of the
    /// request.
    pub const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Interrupted { by, .. } => Some(by.as_str()),
            Self::Filtered { reason, .. } => Some(*reason),
            Self::RateLimited { is_quota: true, .. } => Some("quota"),
            Self::NoKey { .. } | Self::BadKey { .. } | Self::KeyRejected { .. } => Some("key"),
            Self::Unavailable { .. } => Some("unavailable"),
            Self::Request(RequestError::TooLarge { .. }) => Some("request_size"),
            _ => None,
        }
    }

    /// Returns what happened without the vendor's own text. That text may repeat a part of the request or of the reply,
    /// which belong in an envelope and never in a log.
    pub fn outline(&self) -> String {
        match self {
            Self::KeyRejected { vendor, variable, .. } => {
                format!("{vendor} rejected the API key in {variable}")
            }
            Self::UnknownModel { vendor, model, .. } => format!("{vendor} does not know the model `{model}`"),
            Self::Rejected { vendor, status, .. } => format!("{vendor} rejected the request ({status})"),
            Self::MediaRejected { vendor, model, .. } => {
                format!("{vendor} does not accept these media with the model `{model}`")
            }
            Self::Filtered { vendor, reason, .. } => format!("{vendor} refused the request ({reason})"),
            Self::RateLimited { vendor, is_quota, .. } => limit_reached(vendor, *is_quota),
            Self::ContextOverflow { model, .. } => {
                format!("the request exceeds the context window of `{model}`")
            }
            Self::Unavailable { vendor, by: Interruption::Provider, .. } => {
                format!("{vendor} is unavailable")
            }
            Self::WrongInterface { vendor, url, .. } => format!("{url} is not an API of {vendor}"),
            Self::Malformed { vendor, .. } => format!("{vendor} sent an invalid reply"),
            Self::Interrupted { vendor, by: Interruption::Provider, .. } => {
                format!("the reply of {vendor} was interrupted")
            }
            Self::Other { code, .. } => format!("the call failed with {code}"),
            Self::Request(_)
            | Self::BaseUrl { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::Unavailable { by: Interruption::Network, .. }
            | Self::Connect { .. }
            | Self::CircuitOpen { .. }
            | Self::TooLarge { .. }
            | Self::Interrupted { by: Interruption::Network, .. }
            | Self::Timeout { .. }
            | Self::NoRecording { .. }
            | Self::Cassette { .. } => self.to_string(),
        }
    }

    /// Returns what a client of a server reads instead of the message, which contains the operator's addresses and variables, and the
    /// vendor's text. None for an unsupported request, whose message is about the request alone.
    fn client_message(&self) -> Option<&'static str> {
        Some(match self {
            Self::Request(_) => return None,
            Self::RateLimited { is_quota: false, .. } => "the rate limit of the provider is exceeded",
            Self::RateLimited { is_quota: true, .. } => "the quota of the provider's account is used up",
            Self::ContextOverflow { .. } => "the request exceeds the context window of the model",
            Self::Filtered { .. } => "the provider refused the request",
            Self::Rejected { .. } => "the provider rejected the request",
            Self::Malformed { .. } | Self::TooLarge { .. } => "the provider sent an invalid reply",
            Self::Interrupted { .. } => "the reply of the provider was interrupted",
            Self::Timeout { .. } => "the provider did not reply in time",
            Self::Other { .. } => "the call to the provider failed",
            _ => "the provider is not available",
        })
    }

    /// Returns a suggestion for fixing the error.
    pub fn suggestion(&self) -> Option<String> {
        Some(match self {
            Self::Request(error) => error.suggestion(),
            Self::BaseUrl { variable, .. } => format!("Set {variable} to the base URL of the server."),
            Self::NoKey { variable, .. } => format!("Set {variable}, or use --provider offline."),
            Self::BadKey { variable, .. } => format!("Set {variable} to the key again, without line breaks."),
            Self::KeyRejected { variable, .. } => {
                format!("Check the key in {variable}, its permissions and its region.")
            }
            Self::UnknownModel { vendor, model, .. } if let Some(commands) = commands(vendor) => {
                format!("Download it with `{} {model}`, or choose a model that `cog doctor` lists.", commands.pull)
            }
            Self::UnknownModel { .. } => {
                "Choose a model that `cog doctor` lists with --model, or check the base URL.".to_owned()
            }
            Self::MediaRejected { .. } => {
                "Choose a model or a provider that accepts these media, or leave them out.".to_owned()
            }
            Self::ContextOverflow { .. } => {
                "Shorten the input, or choose a model with a larger context window.".to_owned()
            }
            Self::RateLimited { retry_after: Some(wait), is_quota: false, .. }
            | Self::Unavailable { retry_after: Some(wait), .. }
            | Self::CircuitOpen { retry_after: wait, .. } => format!("Try again in {}.", seconds(wait)),
            Self::RateLimited { is_quota: true, .. } => {
                "Check the plan and the billing of the account; waiting does not help.".to_owned()
            }
            Self::RateLimited { .. } => "Try again later, or check the limits of the account.".to_owned(),
            Self::Unavailable { vendor, .. } if let Some(commands) = commands(vendor) => {
                format!("Start the server with `{}`. `cog doctor` shows its URL.", commands.start)
            }
            Self::Unavailable { .. } => {
                "Try again later. `cog doctor` checks each provider and shows its URL.".to_owned()
            }
            Self::Connect { kind, .. } => kind.suggestion().to_owned(),
            Self::Interrupted { .. } => {
                "Try again. If it fails again, `cog run -vv` shows the reply.".to_owned()
            }
            Self::Filtered { .. } => {
                "Review what the input requests; rephrase it, or use another model.".to_owned()
            }
            Self::Rejected { .. } => "Show the request with `cog render`.".to_owned(),
            Self::Malformed { .. } => "Check the base URL, and record the reply with --record.".to_owned(),
            Self::TooLarge { .. } => "Request a shorter answer, or lower --max-tokens.".to_owned(),
            Self::WrongInterface { url, .. } if url.ends_with("/responses") => {
                "Check the base URL, or set the protocol of this provider to chat: the server may not implement Responses."
                    .to_owned()
            }
            Self::WrongInterface { .. } => {
                "Check the base URL: a path such as /v1 may be missing, or a proxy may have replied."
                    .to_owned()
            }
            Self::Timeout { deadline: Deadline::Total, .. } => {
                "Allow more time with --timeout, or request a shorter answer.".to_owned()
            }
            Self::Timeout { deadline: Deadline::FirstToken, .. } => {
                "Allow more time with COG_FIRST_TOKEN_TIMEOUT, or choose a faster model.".to_owned()
            }
            Self::Timeout { deadline: Deadline::Idle, .. } => {
                "Allow more time with COG_IDLE_TIMEOUT, or try again.".to_owned()
            }
            Self::Cassette { .. } => {
                "Use a directory that --record wrote, or record into a new one, on a disk with space.".to_owned()
            }
            Self::NoRecording { .. } => {
                "The request has changed since it was recorded; record it again with --record.".to_owned()
            }
            _ => return None,
        })
    }
}

/// Creates the `error` of an envelope: code, message and suggestion, with reason and wait in `details`.
impl From<&ProviderError> for ErrorBody {
    fn from(error: &ProviderError) -> Self {
        let wait = error.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let details = [
            ("reason", error.reason().map(serde_json::Value::from)),
            ("retry_after_ms", wait.map(serde_json::Value::from)),
        ];
        let details: serde_json::Map<_, _> =
            details.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        let mut body = ErrorBody::new(error.code(), error.to_string())
            .with_recoverable(error.recoverable())
            .with_origin(error.origin());
        body.suggestion = error.suggestion();
        body.details = (!details.is_empty()).then(|| Value::from(serde_json::Value::from(details)));
        body.client_message = error.client_message();
        body
    }
}

/// Formats a duration for display: `2 s`, `1.5 s`, `250 ms`.
fn seconds(duration: &Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else if duration.as_secs() == 0 {
        format!("{} ms", duration.subsec_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

// The parts of a request that a provider may reject, and without which it can be sent again.

/// A part of a request that the provider rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectedPart {
    /// The schema of the answer, or the form in which it is sent.
    Schema,
    /// The system role of a message.
    SystemRole,
    /// A member that the server knows only by another name.
    Name {
        /// Its name in the request.
        name: &'static str,
        /// Its other name.
        other: &'static str,
    },
    /// An optional member of the request.
    Field {
        /// Its name in the request.
        name: &'static str,
        /// The part of the model request that it belongs to.
        part: OptionalPart,
    },
}

/// A part of a model request that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionalPart {
    /// The marks for the provider's cache.
    Cache,
    /// The request for the token usage of a stream.
    StreamOptions,
    /// The request for the probabilities of tokens.
    Probabilities,
    /// A parameter of the generation.
    Setting(&'static str),
}

impl ModelRequest {
    /// Removes an optional part, and returns whether the request contained it.
    pub fn remove(&mut self, part: OptionalPart) -> bool {
        match part {
            OptionalPart::Cache => self.cache_key.take().is_some(),
            OptionalPart::StreamOptions => std::mem::take(&mut self.stream_options),
            OptionalPart::Probabilities => std::mem::take(&mut self.probabilities),
            OptionalPart::Setting(name) => self.generation.remove(name),
        }
    }

    /// Sends the system text in the first message of the user from now on. Returns false if it is sent so already.
    pub fn merge_system(&mut self) -> bool {
        !std::mem::replace(&mut self.merges_system, true)
    }

    /// Sends the limit of output tokens under its other name from now on. Returns false if it is sent so already, or if
    /// there is none.
    pub fn rename_token_limit(&mut self) -> bool {
        self.generation.max_tokens.is_some() && !std::mem::replace(&mut self.renames_token_limit, true)
    }
}

// Local configuration errors that prevent a connection.

/// The local cause of a failed connection, as opposed to a server that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The server's certificate has no trusted issuer, or the list of trusted certificates is missing.
    Certificate,
    /// The server does not support TLS, or none of the TLS versions and ciphers of this client.
    Tls,
    /// The proxy rejects the connection, fails, or is of an unsupported type.
    Proxy,
}

impl ConnectErrorKind {
    /// Returns a suggestion for fixing it.
    pub(crate) const fn suggestion(self) -> &'static str {
        match self {
            Self::Certificate => {
                "Set SSL_CERT_FILE to a file with the certificate authorities to trust, if your network uses its own; `cog doctor` checks the one that is set."
            }
            Self::Tls => "Check the base URL: the port may require http instead of https.",
            Self::Proxy => {
                "Check the URL of the proxy, with its user name and password; `curl --proxy` tests it. NO_PROXY lists the hosts to call without a proxy."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_reports_what_was_attempted() {
        let timeout =
            |deadline| ProviderError::Timeout { vendor: "A", deadline, limit: Duration::from_secs(1) };
        for (error, origin) in [
            (ProviderError::NoKey { vendor: "A", variable: "A_KEY" }, ErrorOrigin::Runtime),
            (
                ProviderError::CircuitOpen { provider: "a".to_owned(), retry_after: Duration::ZERO },
                ErrorOrigin::Runtime,
            ),
            (
                ProviderError::Connect {
                    vendor: "A",
                    kind: ConnectErrorKind::Proxy,
                    message: "no".to_owned(),
                },
                ErrorOrigin::Runtime,
            ),
            (timeout(Deadline::Total), ErrorOrigin::Runtime),
            (timeout(Deadline::Idle), ErrorOrigin::Provider),
            (
                ProviderError::Unavailable {
                    vendor: "A",
                    by: Interruption::Network,
                    message: "no".to_owned(),
                    retry_after: None,
                },
                ErrorOrigin::Provider,
            ),
            (
                ProviderError::Other { code: Code::RateLimited, message: "no".to_owned() },
                ErrorOrigin::Provider,
            ),
        ] {
            assert_eq!(ErrorBody::from(&error).origin, origin, "{error}");
        }
    }
}
