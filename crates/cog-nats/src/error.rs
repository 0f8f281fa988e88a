//! What can fail between this program and NATS.

use std::{io, path::PathBuf};

use cog_spec::Code;

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
