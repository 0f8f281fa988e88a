//! What is set up so that no connection can stand.

/// What on this side keeps a connection from standing, in contrast to a server that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The server's certificate is signed by nobody who is trusted here, or there is no list of those.
    Certificate,
    /// What answers does not speak TLS, or no kind of it that can be spoken here.
    Tls,
    /// The proxy refuses, fails, or is of a kind that cannot be used.
    Proxy,
}

impl ConnectErrorKind {
    /// What to do about it.
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
