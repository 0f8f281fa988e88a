//! Local configuration errors that prevent a connection.

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
                "Set SSL_CERT_FILE to a file with the certificate authorities to trust, if your network uses its own."
            }
            Self::Tls => "Check the base URL: the port may require http instead of https.",
            Self::Proxy => {
                "Check HTTPS_PROXY: an http:// or https:// URL, with its password. NO_PROXY lists hosts to call without a proxy."
            }
        }
    }
}
