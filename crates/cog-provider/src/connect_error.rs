//! Local configuration errors that prevent a connection.

/// The local cause of a failed connection, as opposed to a server that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The server's certificate has no trusted issuer, or the list of trusted certificates is missing.
    Certificate,
    /// The server does not speak TLS, or no TLS version and cipher that this client supports.
    Tls,
    /// The proxy rejects the connection, fails, or is of an unsupported type.
    Proxy,
}

impl ConnectErrorKind {
    /// Returns a suggestion for fixing it.
    pub(crate) const fn suggestion(self) -> &'static str {
        match self {
            Self::Certificate => {
                "Name the file of the authorities to trust in SSL_CERT_FILE, where a company or a test has its own."
            }
            Self::Tls => "Check the address: does that port speak http, and not https?",
            Self::Proxy => {
                "Check HTTPS_PROXY (http:// or https://, with its password); NO_PROXY names hosts to ask without it."
            }
        }
    }
}
