//! Finds the causes of connection errors.

use std::{error::Error, io};

use crate::ConnectErrorKind;

impl ConnectErrorKind {
    /// Finds the local cause in an error chain; returns `None` for any other error.
    pub(super) fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(cause) = next {
            if let Some(kind) = Self::from_cause(cause) {
                return Some(kind);
            }
            // The `source` of an `io::Error` skips the error that it wraps.
            let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            next = wrapped.map(|cause| cause as _).or_else(|| cause.source());
        }
        None
    }

    fn from_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        match cause.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::General(_)) => Some(Self::Certificate),
            Some(_) => Some(Self::Tls),
            None => is_proxy_error(&cause.to_string()).then_some(Self::Proxy),
        }
    }
}

/// Returns the innermost cause, which is the informative one: `connection refused`, not `error sending request`.
pub(super) fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Returns whether an error text is about a proxy. The client reports proxy errors only as text.
fn is_proxy_error(text: &str) -> bool {
    text.starts_with("tunnel error") || text.starts_with("unsupported scheme socks")
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;

    #[test]
    fn finds_certificate_error_in_wrapped_errors() {
        let error = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(ConnectErrorKind::find(&error), Some(ConnectErrorKind::Certificate));
    }

    #[test]
    fn other_tls_errors_are_not_certificate_errors() {
        let error = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert_eq!(ConnectErrorKind::find(&error), Some(ConnectErrorKind::Tls));
    }

    #[test]
    fn refused_connection_has_no_local_cause() {
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(ConnectErrorKind::find(&error), None);
    }
}
